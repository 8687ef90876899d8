"""Second generators stay independent of what they judge."""

import ast

from tests.architecture.reading import statements
from tests.places import ROOT

WORLDS = ROOT / "tests" / "worlds"


def test_worlds_import_neither_analyzers_nor_their_simulators() -> None:
    for path in WORLDS.rglob("*.py"):
        for node in statements(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith(
                    ("analyzers.builtin", "analyzers.simulators", "tests.benchmarks")
                ), path
