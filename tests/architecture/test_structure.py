"""The shape of the tree, by its graph of imports and its folders. The order of packages is in `pyproject.toml`."""

from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.architecture.reading import LAYERS, sources
from tests.places import ROOT, TESTS

MODULES_PER_PACKAGE = 30
TIERS = {
    "rules": "incidents/domain",
    "tables": "incidents",
    "API": "incidents/api",
    "pages": "frontend/views",
    "templates": "frontend/templates/frontend",
}
"""Folders in which a concept of incidents stands, under the same noun."""
PACKAGES_PER_CONCEPT = 2
"""Packages of a tier that have files of one concept: its own, and that of the aggregate (`incident`)."""
SHOWN_WITH_OTHERS = {
    ("incident", "templates"): "parts of incidents are on pages of components and of comparisons"
}
"""Concepts with files in more packages than that."""
FILES_PER_CONCEPT = 15
"""Files of one concept on one tier."""
LARGE = {
    ("incident", "rules"): "the aggregate: a file for each group of commands and events",
    ("incident", "templates"): "one page of many parts, each fetched alone",
    ("notifications", "tables"): "the queue, and a file for each kind of channel",
    ("reports", "tables"): "rules, tables, pictures, mail and API of reports stand in one package",
}
TOP_OF_INCIDENTS = {
    "apps": "Django's registration",
    "events": "event types of all concepts",
    "commands": "facade: what changes an incident",
    "queries": "facade: what is read of incidents",
    "bulk": "facade: one command on several incidents",
    "follower": "findings and alerts of the log, to all concepts",
    "timers": "what time does to alerts and incidents",
}
"""Modules beside the packages of `incidents`, each with its reason. A concept is a package."""
SHORT = 25
"""Lines below which a file needs a reason."""
SHORT_NAMES = {
    "__main__.py": "Python runs it by name",
    "apps.py": "Django's registration",
    "calibration.py": "constants that were measured, beside the method that reads them",
    "events.py": "the event types of a package, for all to import",
    "models.py": "Django's tables",
    "tasks.py": "Celery finds it by name",
    "urls.py": "addresses of a package",
}
SHORT_PLACES = {
    "ingest/telemetry/kinds": "a telemetry kind is one declaration, and one file",
    "deploy/management/commands": "Django runs a command by the name of its file",
}
SHORT_FILES = {
    "analyzers/builtin/stats/medians.py": "two analyzers share it",
    "analyzers/builtin/tor_availability/analyzer.py": "each method has it: the entry point names it",
    "analyzers/runs/system_checks.py": "Django's checks, imported when all apps are ready",
    "deploy/offline.py": "a settings module, found by its name",
    "deploy/version.py": "read before anything else is imported",
    "frontend/views/settings/settings.py": "the first page of its area",
    "incidents/chat/errors.py": "what both chat services raise; imports neither",
    "incidents/chat/queries.py": "what health and lists ask of workspaces",
    "incidents/domain/csv.py": "one guard for every CSV that leaves",
    "incidents/domain/incident/flapping.py": "the rule of flap detection, which two packages apply",
    "incidents/incident/telemetry_horizon.py": "keeps the analyzers out of the repository",
    "incidents/worker/memory.py": "no Django, so that its test is a process of its own",
    "incidents/security/refusals.py": "one way onto the audit for what four packages refuse",
    "ingest/api/redact.py": "imports nothing: loggers use it before Django is there",
    "ingest/telemetry/management/commands/shard_telemetry.py": "a command is a file of its own",
}


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
    made of (`tests/worlds`, `tests/databases`) is tested in folders of its own name."""
    folders = [path for path in (TESTS / kind).rglob("*") if path.is_dir() and path.name != "__pycache__"]
    tops = {path.name for path in folders if path.parent.name == kind}
    assert tops <= {*LAYERS, "worlds", "benchmarks", "databases"}
    for layer in tops & set(LAYERS):
        nouns = {path.stem for path in (ROOT / layer).rglob("*") if path.is_dir() or path.suffix == ".py"}
        concepts = {path.name for path in folders if (TESTS / kind / layer) in path.parents}
        assert concepts <= nouns


def test_no_test_lies_about() -> None:
    assert [*(TESTS / "unit").glob("test_*.py"), *(TESTS / "integration").glob("test_*.py")] == []


def concepts() -> set[str]:
    """The nouns of incidents: its packages and modules, without the tiers, the facades and what serves all concepts."""
    nouns = {
        path.stem
        for path in (ROOT / "incidents").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    return nouns - TOP_OF_INCIDENTS.keys() - {"__init__", "api", "domain", "security", "worker"}


@cache
def files_by_name(tier: str) -> dict[str, set[Path]]:
    """Paths below the tier's folder by each of their names: of the folders that they are in, and of the file."""
    root = ROOT / TIERS[tier]
    found: dict[str, set[Path]] = defaultdict(set)
    for path in [*root.rglob("*.py"), *root.rglob("*.html")]:
        inside = path.relative_to(root)
        names = {*inside.parts[:-1], path.stem}
        aside = tier == "tables" and inside.parts[0] in {"api", "domain"}
        if not (aside or path.name == "__init__.py" or {"migrations", "management"} & names):
            for name in names:
                found[name].add(inside)
    return found


def files_of(concept: str, tier: str) -> set[Path]:
    """Paths below the tier's folder that have the noun, in either number, as the name of a folder or of the file."""
    files = files_by_name(tier)
    return files.get(concept, set()) | files.get(concept.removesuffix("s"), set())


@pytest.mark.parametrize("tier", TIERS)
def test_a_concept_stands_in_at_most_two_packages_of_a_tier(tier: str) -> None:
    packages = {
        noun: {path.parts[0] for path in files_of(noun, tier) if path.parts[1:]} for noun in concepts()
    }
    spread = {noun for noun, found in packages.items() if len(found) > PACKAGES_PER_CONCEPT}
    assert spread == {noun for noun, where in SHOWN_WITH_OTHERS if where == tier}


@pytest.mark.parametrize("tier", TIERS)
def test_a_concept_has_as_many_files_as_a_reader_can_survey(tier: str) -> None:
    sizes = {noun: len(files_of(noun, tier)) for noun in concepts()}
    large = {noun for noun, size in sizes.items() if size > FILES_PER_CONCEPT}
    assert large == {noun for noun, where in LARGE if where == tier}


def test_concepts_are_found_on_all_tiers() -> None:
    """The measures above see files: a renamed folder would leave them with nothing to measure."""
    found = {tier for tier in TIERS if sum(len(files_of(noun, tier)) for noun in concepts()) > 10}
    assert found == TIERS.keys()


def test_modules_beside_the_packages_of_incidents_have_a_reason() -> None:
    modules = {path.stem for path in (ROOT / "incidents").glob("*.py")} - {"__init__"}
    assert modules == TOP_OF_INCIDENTS.keys()


def test_a_short_file_has_a_reason() -> None:
    short = {
        str(path.relative_to(ROOT))
        for path in sources()
        if path.name not in {"__init__.py", *SHORT_NAMES}
        and str(path.parent.relative_to(ROOT)) not in SHORT_PLACES
        and len(path.read_text().splitlines()) < SHORT
    }
    assert short == SHORT_FILES.keys()
