"""The parts we take from others: exactly those of the lock, from nowhere in particular, and psycopg2 alone."""

import importlib.util
import re
import tomllib

import pytest
from django.db.backends.postgresql.psycopg_any import is_psycopg3

from tests.places import ROOT

LOCKS = ["requirements.lock", "requirements-dev.lock"]


def test_psycopg_3_is_not_in_use() -> None:
    assert not is_psycopg3
    assert importlib.util.find_spec("psycopg") is None


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_hashes_and_no_addresses(lock: str) -> None:
    text = (ROOT / lock).read_text()
    requirements = re.findall(r"^[a-z0-9][^\n]*==", text, flags=re.MULTILINE)
    assert len(requirements) > 50
    assert text.count("--hash=sha256:") >= len(requirements)
    assert "://" not in text


def test_the_development_lock_holds_every_version_of_the_other() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^([a-z0-9._-]+==[^\s;\\]+)", (ROOT / lock).read_text(), flags=re.MULTILINE))

    assert pins("requirements.lock") <= pins("requirements-dev.lock")


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_what_builds_the_project_itself(lock: str) -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["build"]
    names = {re.split(r"[<>=]", one)[0] for one in asked}
    assert names <= set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / lock).read_text(), flags=re.MULTILINE))
