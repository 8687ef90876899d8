"""Faults around a command are one line; a mistake of ours keeps its traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg2
import pytest

from deploy import env
from deploy.embedded import Home
from deploy.supervisor.preflight import complaint


def raised(by: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:
        by()
    return caught.value


def test_a_database_that_is_not_there_is_named(tmp_path: Path) -> None:
    line = complaint(raised(lambda: psycopg2.connect(host=str(tmp_path), user="alice")))
    assert line is not None
    assert line.startswith("No database: connection to server")
    assert "\n" not in line


def test_a_malformed_variable_is_named() -> None:
    line = complaint(raised(lambda: env.database("nonsense")))
    assert line is not None
    assert line.startswith("DATABASE_URL is malformed")


def test_a_home_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOSSIER_HOME", "/proc/alice")
    line = complaint(raised(lambda: Home(Path("/proc/alice")).claim()))
    assert line == "/proc/alice: No such file or directory. DOSSIER_HOME is the directory of Dossier's data."


def test_a_mistake_of_ours_is_not_explained_away(tmp_path: Path) -> None:
    assert complaint(raised(lambda: int("nowhere"))) is None
    assert complaint(raised(lambda: (tmp_path / "nowhere").open())) is None
