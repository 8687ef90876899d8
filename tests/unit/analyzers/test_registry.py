"""The registry: a plugin that cannot be used is named with reason and cure, and stops no other."""

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from analyzers import registry
from analyzers.builtin.deepview import ANALYZER
from analyzers.contract import Analyzer, AsOf, Count, Deferred, Input, Param, Reduction, Sum
from analyzers.registry import GROUP, Loaded, RegistryError, UnknownAnalyzerError, faults_of

BROKEN = replace(ANALYZER, name="broken", version="1")
MISNAMED = replace(ANALYZER, name="other")
NOT_ONE = "just a text"


TYPED = replace(ANALYZER, name="typed", version=1)  # type: ignore[arg-type]


def reading(kind: str, group_by: tuple[str, ...] = ("components",), **changes: Any) -> tuple[Input, ...]:
    """Inputs of one reduction; what is no property of a reduction is an aggregate."""
    sums = {name: change for name, change in changes.items() if isinstance(change, Sum)}
    rest = {name: change for name, change in changes.items() if name not in sums}
    return (Input("only", (Reduction("sums", kind, group_by, {"rows": Count(), **sums}, **rest),)),)


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


def test_of_two_plugins_of_one_name_none_is_used() -> None:
    problem = only_problem(point("other", f"{__name__}:MISNAMED"), point("other", f"{__name__}:BROKEN"))
    assert "two analyzers are called other" in problem
    assert "none is used. Uninstall or rename one" in problem


def test_a_plugin_cannot_take_the_name_of_a_built_in_analyzer() -> None:
    loaded = registry.load(
        [point("deepview", "analyzers.builtin.deepview:ANALYZER"), point("deepview", f"{__name__}:MISNAMED")]
    )
    assert loaded.analyzers == {"deepview": ANALYZER}
    assert "the built-in one is used. Uninstall or rename the other" in str(loaded.problems[0])


def test_an_entry_point_that_leads_nowhere_is_a_problem() -> None:
    problem = only_problem(point("gone", "analyzers.no_such_module:ANALYZER"))
    assert "gone" in problem
    assert "cannot be loaded" in problem
    assert "Restart Dossier" not in problem


def test_a_package_that_this_process_cannot_see_yet_asks_for_a_restart() -> None:
    problem = only_problem(point("later", "installed_while_running:ANALYZER"))
    assert (
        "Restart Dossier if the package was installed while it ran. Otherwise repair or uninstall" in problem
    )


def test_reductions_that_are_no_tuple_are_named() -> None:
    with pytest.raises(TypeError, match=r"reductions of input only must be a tuple, such as \(PATHS,\)"):
        Input("only", Reduction("sums", "path_outcome", ("components",), {}))  # type: ignore[arg-type]


@pytest.mark.parametrize("raised", ["RuntimeError('no licence')", "SystemExit('no licence')"])
def test_a_module_that_ends_its_own_import_is_a_problem(
    raised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"plugin_of_{raised[:6].lower()}"
    (tmp_path / f"{name}.py").write_text(f"raise {raised}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "no licence" in only_problem(point("gone", f"{name}:ANALYZER"))


def test_a_declaration_of_wrong_types_is_a_problem() -> None:
    assert "cannot be loaded (TypeError" in only_problem(point("typed", f"{__name__}:TYPED"))


def test_an_entry_point_to_something_else_is_a_problem() -> None:
    assert "is str, not an Analyzer" in only_problem(point("text", f"{__name__}:NOT_ONE"))


def test_an_analyzer_under_another_name_is_a_problem() -> None:
    assert "Give both the same name" in only_problem(point("deepview", f"{__name__}:MISNAMED"))


def test_a_malformed_analyzer_is_a_problem() -> None:
    assert "version '1' is not major.minor.patch" in only_problem(point("broken", f"{__name__}:BROKEN"))


def test_no_analyzer_at_all_is_a_problem() -> None:
    assert "no analyzer is installed" in only_problem()


def test_a_bad_analyzer_stops_no_good_one(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = registry.load(
        [point("deepview", "analyzers.builtin.deepview:ANALYZER"), point("gone", "nowhere:ANALYZER")]
    )
    monkeypatch.setattr(registry, "_installed", lambda: loaded)
    assert list(registry.installed()) == ["deepview"]
    assert registry.get("deepview") is ANALYZER
    with pytest.raises(RegistryError, match="nowhere:ANALYZER cannot be loaded"):
        registry.get("gone")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "Deep View"}, "is not lower case"),
        ({"title": " "}, "the title is empty"),
        ({"history": -1}, "not a count of windows"),
        ({"inputs": ()}, "declares no input"),
        ({"inputs": (Input("empty", ()),)}, "has no reduction"),
        ({"inputs": ANALYZER.inputs + ANALYZER.inputs[:1]}, "input placement is declared 2 times"),
        (
            {"inputs": reading("path_outcomes")},
            r"no telemetry kind path_outcomes (did you mean path_outcome?)",
        ),
        (
            {"inputs": reading("path_outcome", failed=Sum("failure"))},
            "path_outcome has no field failure of type count or amount (did you mean failures?);"
            " there are attempts, failures, weight",
        ),
        ({"inputs": reading("path_outcome", group_by=("hops",))}, "path_outcome has no field hops"),
        ({"inputs": reading("path_outcome", where="lost")}, "path_outcome has no field lost"),
        (
            {"inputs": reading("log_count", where="severity", group_by=("component",))},
            "field severity of log_count has the type choice, which cannot be used there; possible fields: count",
        ),
        (
            {"inputs": reading("log_count", "component")},  # type: ignore[arg-type]
            "group_by of reduction sums of input only must be a tuple of names, such as ('component',)",
        ),
        ({"inputs": Input("empty", ())}, "inputs must be a tuple; a tuple of one ends with a comma: (ONE,)"),
        ({"params": Param("x", 1, "one")}, "params must be a tuple"),
        (
            {"inputs": reading("unit_failure", as_of=AsOf("placement", "host"))},
            "unit_failure cannot be joined to placement",
        ),
        ({"analyze": Deferred("nowhere.method:analyze")}, "analyze leads to 'nowhere.method:analyze'"),
        ({"analyze": Deferred("analyzers.contract")}, "which is no `package.module:function`"),
        ({"params": (Param("x", 2.0, "too large", high=1),)}, "must be a number of at most 1"),
        ({"params": (Param("x", "c", "not a choice", choices=("a", "b")),)}, 'must be one of "a", "b"'),
        ({"params": (Param("x", 1, ""),)}, "has no help"),
        ({"params": (Param("x", 1, "one"), Param("x", 2, "two"))}, "parameter x is declared 2 times"),
    ],
)
def test_each_malformed_part_is_named(change: dict[str, object], fault: str) -> None:
    malformed: Analyzer = replace(ANALYZER, **change)  # type: ignore[arg-type]
    assert any(fault in said for said in faults_of(malformed))
