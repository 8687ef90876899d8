"""Alice validates a change on her own machine: the example of the documentation, exit codes, files that are wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.places import ROOT
from tests.worlds.rela import CASES, FAULTS, make

PAGE = (ROOT / "frontend" / "docs" / "analyzers" / "rela.md").read_text()


@pytest.fixture(autouse=True)
def _example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = re.findall(r"^`([a-z]+\.[a-z]+)`.*?```\w+\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    for name, text in files:
        Path(name).write_text(text)
    assert len(files) == 3


def test_the_example_of_the_documentation_says_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("validate_change", "before.csv", "after.csv", "--spec", "drain.rela")
    shown = re.search(r"```text\n(violated.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert (ended.value.code, capsys.readouterr().out) == (1, shown[1])


def test_a_change_of_nothing_holds(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("validate_change", "before.csv", "before.csv")
    assert capsys.readouterr().out.startswith("holds: 0 of 2 traffic classes")


def test_a_wrong_file_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("validate_change", "before.csv", "drain.rela")
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("drain.rela: neither JSON nor CSV")


@pytest.mark.parametrize("case", CASES)
def test_exactly_the_classes_that_break_the_plan_are_violated(case: str) -> None:
    from analyzers.rela import check, read_snapshot

    for fault in FAULTS:
        world = make(1, case, fault)
        found = check(read_snapshot("b", world.before), read_snapshot("a", world.after), world.specification)
        assert {name for one in found["violations"] for name in one["classes"]} == world.broken
