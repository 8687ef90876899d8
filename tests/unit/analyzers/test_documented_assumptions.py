"""Pages of analyzers: what each assumes, and what its verdict does where that fails."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzers import registry
from tests.places import ROOT

PAGES = ROOT / "frontend" / "docs" / "analyzers"
SECTION = re.compile(r"^## What it assumes$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PACKAGES = ROOT / "analyzers" / "builtin"
BUILT_IN = sorted(name for name in registry.installed() if (PACKAGES / name).is_dir())


def rows(page: str) -> Iterator[list[str]]:
    """Cells of the tables in the section on assumptions, without the lines below their heads."""
    found = SECTION.search(page)
    assert found is not None
    for line in found[1].splitlines():
        if line.startswith("| ") and not line.startswith("| --- "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def checked_in(package: Path) -> set[str]:
    """Names of the assumptions that modules of a package state literally."""
    return {
        str(call.args[0].value)
        for module in package.glob("*.py")
        for call in ast.walk(ast.parse(module.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "Assumption"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_page_of_an_analyzer_says_what_it_assumes_and_what_follows_where_that_fails(name: str) -> None:
    head, *stated = rows((PAGES / f"{name}.md").read_text())
    assert (head[0], head[-1]) == ("assumption", "otherwise")
    assert all(row[-1] for row in stated)
    assert checked_in(PACKAGES / name) <= {row[0].split("`")[1] for row in stated}
