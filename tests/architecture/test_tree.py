"""The tree: its top level, and the named process boundaries that may catch everything."""

import subprocess

import pytest

from tests.architecture.reading import LAYERS, survey
from tests.places import ROOT

TOP = {
    *LAYERS,
    ".ci", ".gitignore", "ARCHITECTURE.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
    "README.md", "manage.py", "pyproject.toml", "requirements-dev.lock", "requirements.lock", "tests",
}  # fmt: skip
BROAD_EXCEPTS = {
    "ingest/log/read.py": "a handler that raises keeps its place and is recorded, and the other followers go on",
    "ingest/db/database.py": "one that cannot go on is found and told of; the others of its batch go on",
    "incidents/worker/parts.py": "a part of `manage.py deliver` fails, the others go on",
    "deploy/asgi.py": "a thread that reads the log for browsers goes on beyond what it cannot read",
    "deploy/supervisor/children.py": "what ends a forked process is in its log; the supervisor does not go on in it",
    "deploy/supervisor/supervisor.py": "a migration may raise anything; it is named in one line",
    "analyzers/runner.py": "a crash of an analyzer, whoever wrote it, is recorded and never becomes a verdict",
    "analyzers/registry.py": "importing a plugin can raise anything; it becomes a problem with a name and a cure",
}


def test_nothing_else_stands_at_the_top() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("not a git checkout")
    assert {line.split("/", 1)[0] for line in listed.splitlines()} <= TOP


def test_nothing_holds_two_versions_at_once() -> None:
    """Marks of a merge are text to a template, and go out to people."""
    marks = ["git", "grep", "-nE", "^(<{7} |>{7} )"]
    found = subprocess.run(marks, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert found.splitlines() == []


def test_only_the_shells_catch_everything() -> None:
    assert survey().broad == BROAD_EXCEPTS.keys()
