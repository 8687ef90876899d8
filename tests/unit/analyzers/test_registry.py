"""The registry: strict, and it says plugin, reason and cure."""

from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from analyzers import registry
from analyzers.builtin.deepview import ANALYZER
from analyzers.contract import Analyzer, Input, Param
from analyzers.registry import GROUP, Loaded, RegistryError, UnknownAnalyzerError, faults_of

BROKEN = replace(ANALYZER, name="broken", version="1")
MISNAMED = replace(ANALYZER, name="other")
NOT_ONE = "just a text"


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def only_problem(*points: EntryPoint) -> str:
    loaded: Loaded = registry.load(points)
    assert len(loaded.problems) == 1
    return str(loaded.problems[0])


def test_deepview_is_installed() -> None:
    assert registry.get("deepview") is ANALYZER


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownAnalyzerError, match="Did you mean deepview"):
        registry.get("deepviev")


def test_nothing_is_wrong_with_what_is_installed() -> None:
    assert registry.problems() == ()


def test_two_analyzers_of_one_name_are_a_problem() -> None:
    value = "analyzers.builtin.deepview:ANALYZER"
    problem = only_problem(point("deepview", value), point("deepview", f"{__name__}:MISNAMED"))
    assert "two analyzers are called deepview" in problem
    assert "Uninstall or rename one" in problem


def test_an_entry_point_that_leads_nowhere_is_a_problem() -> None:
    problem = only_problem(point("gone", "analyzers.no_such_module:ANALYZER"))
    assert "gone" in problem
    assert "cannot be loaded" in problem


def test_an_entry_point_to_something_else_is_a_problem() -> None:
    assert "is str, not an Analyzer" in only_problem(point("text", f"{__name__}:NOT_ONE"))


def test_an_analyzer_under_another_name_is_a_problem() -> None:
    assert "Give both the same name" in only_problem(point("deepview", f"{__name__}:MISNAMED"))


def test_a_malformed_analyzer_is_a_problem() -> None:
    assert "version '1' is not major.minor.patch" in only_problem(point("broken", f"{__name__}:BROKEN"))


def test_no_analyzer_at_all_is_a_problem() -> None:
    assert "no analyzer is installed" in only_problem()


def test_a_good_analyzer_is_listed_beside_a_bad_one_but_not_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = registry.load(
        [point("deepview", "analyzers.builtin.deepview:ANALYZER"), point("gone", "nowhere:ANALYZER")]
    )
    monkeypatch.setattr(registry, "_installed", lambda: loaded)
    assert list(loaded.analyzers) == ["deepview"]
    with pytest.raises(RegistryError, match="gone"):
        registry.get("deepview")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "Deep View"}, "is not lower case"),
        ({"title": " "}, "the title is empty"),
        ({"history": -1}, "not a count of windows"),
        ({"inputs": ()}, "declares no input"),
        ({"inputs": (Input("empty", ()),)}, "has no reduction"),
        ({"inputs": ANALYZER.inputs + ANALYZER.inputs[:1]}, "input placement is declared 2 times"),
        ({"params": (Param("x", 2.0, "too large", high=1),)}, "must be a number of at most 1"),
        ({"params": (Param("x", "c", "not a choice", choices=("a", "b")),)}, 'must be one of "a", "b"'),
        ({"params": (Param("x", 1, ""),)}, "has no help"),
        ({"params": (Param("x", 1, "one"), Param("x", 2, "two"))}, "parameter x is declared 2 times"),
    ],
)
def test_each_malformed_part_is_named(change: dict[str, object], fault: str) -> None:
    malformed: Analyzer = replace(ANALYZER, **change)  # type: ignore[arg-type]
    assert any(fault in said for said in faults_of(malformed))
