"""Analyzers come in by one endpoint and know nothing of Django or of each other."""

import ast
import functools
import tomllib
from pathlib import Path

from tests.architecture.reading import statements
from tests.places import ROOT

BUILTIN = ROOT / "analyzers" / "builtin"
PURE = [BUILTIN, ROOT / "analyzers" / "simulators"]
PURE_FILES = ["contract", "registry", "runner", "testing"]


@functools.cache
def imports(path: Path) -> frozenset[str]:
    found = set()
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return frozenset(found)


def declared_analyzers() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return set(project["entry-points"]["dossier.analyzers"])


def test_every_builtin_analyzer_has_its_entry_point() -> None:
    packages = {path.parent.name for path in BUILTIN.glob("*/__init__.py") if "ANALYZER" in path.read_text()}
    assert declared_analyzers() == packages


def test_no_builtin_analyzer_imports_another() -> None:
    """Modules beside them that are no analyzers hold the mathematics that several share."""
    analyzers = declared_analyzers()
    for path in sorted(BUILTIN.rglob("*.py")):
        own = path.relative_to(BUILTIN).parts[0].removesuffix(".py")
        others = {name for name in imports(path) if name.startswith("analyzers.builtin.")}
        assert analyzers & {name.split(".")[2] for name in others} <= {own}, path


def test_methods_and_simulators_know_no_django() -> None:
    files = [path for folder in PURE for path in folder.rglob("*.py")]
    files += [ROOT / "analyzers" / f"{name}.py" for name in PURE_FILES]
    touching = {path.name for path in files if any(name.split(".")[0] == "django" for name in imports(path))}
    assert touching == set()


def test_methods_read_no_clock() -> None:
    clocked = {
        path.name for path in BUILTIN.rglob("*.py") if imports(path) & {"time", "random", "secrets", "uuid"}
    }
    assert clocked == set()
