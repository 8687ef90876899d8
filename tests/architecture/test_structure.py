"""The shape of the tree, by its graph of imports and its folders. The order of packages is in `pyproject.toml`."""

from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.architecture.reading import LAYERS
from tests.places import ROOT, TESTS

MODULES_PER_PACKAGE = 30


def imports() -> dict[str, set[str]]:
    """Every module with the modules that it imports, also inside of functions."""
    graph = grimp.build_graph(*LAYERS, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(reversed(circle.args[1])))


def test_a_package_holds_as_many_modules_as_a_reader_can_survey() -> None:
    sizes: dict[str, int] = defaultdict(int)
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*.py"):
            if path.name != "__init__.py" and "migrations" not in path.parts:
                sizes[str(path.parent.relative_to(ROOT))] += 1
    assert {package: size for package, size in sizes.items() if size > MODULES_PER_PACKAGE} == {}


@pytest.mark.parametrize("kind", ["unit", "integration"])
def test_tests_stand_where_their_subject_stands(kind: str) -> None:
    """tests/<kind>/<layer>/<concept>: the concept is a package or a module of the layer, at any depth. What tests are
    made of (`tests/worlds`, `tests/benchmarks`) is tested in folders of its own name."""
    folders = [path for path in (TESTS / kind).rglob("*") if path.is_dir() and path.name != "__pycache__"]
    tops = {path.name for path in folders if path.parent.name == kind}
    assert tops <= {*LAYERS, "worlds", "benchmarks"}
    for layer in tops & set(LAYERS):
        nouns = {path.stem for path in (ROOT / layer).rglob("*") if path.is_dir() or path.suffix == ".py"}
        concepts = {path.name for path in folders if (TESTS / kind / layer) in path.parents}
        assert concepts <= nouns


def test_no_test_lies_about() -> None:
    assert [*(TESTS / "unit").glob("test_*.py"), *(TESTS / "integration").glob("test_*.py")] == []
