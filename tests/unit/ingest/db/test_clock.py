"""Time by Postgres' clock, from readings of both."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from ingest.db import database

LOCAL = 1_800_000_000.0


@pytest.fixture(autouse=True)
def local_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(database, "local_time", lambda: LOCAL)
    database._measured.clear()
    yield
    database._measured.clear()


def measure(ahead: float, journey: float = 0.01) -> None:
    """This machine is so many seconds ahead of the server."""
    middle = datetime.fromtimestamp(LOCAL - ahead, UTC)
    database.measured(middle, LOCAL - journey / 2, LOCAL + journey / 2)


def test_an_unmeasured_clock_is_the_local_one() -> None:
    assert database.now() == datetime.fromtimestamp(LOCAL, UTC)
    assert database.skew() is None


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_a_wrong_clock_is_corrected(ahead: float) -> None:
    measure(ahead)
    assert abs(database.now() - datetime.fromtimestamp(LOCAL - ahead, UTC)) < timedelta(milliseconds=1)
    assert database.is_wrong()


def test_a_small_difference_is_left_alone() -> None:
    measure(0.3)
    assert database.now() == datetime.fromtimestamp(LOCAL, UTC)
    assert not database.is_wrong()


def test_of_several_measurements_the_quickest_counts() -> None:
    measure(2.0, journey=0.001)
    measure(2.9, journey=1.0)
    assert database.skew() == pytest.approx(2.0)


def test_a_clock_that_was_set_counts_at_once() -> None:
    measure(0.0, journey=0.001)
    measure(3600.0, journey=0.1)
    assert database.skew() == pytest.approx(3600.0)
