"""Free space: from which share on it is warned of, telemetry is refused, and nothing is promised."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.db import disk
from ingest.db.disk import Space

GIB, MIB = 2**30, 2**20


@pytest.mark.parametrize(
    ("free", "size", "low", "scarce", "full"),
    [
        (10 * GIB, 100 * GIB, False, False, False),
        (10 * GIB - 1, 100 * GIB, True, False, False),
        (5 * GIB, 100 * GIB, True, False, False),
        (5 * GIB - 1, 100 * GIB, True, True, False),
        (10 * GIB, 1000 * GIB, True, False, False),  # one per cent of a large disk is still a lot
        (10 * GIB - 1, 1000 * GIB, True, True, False),
        (16 * MIB, 100 * GIB, True, True, False),
        (16 * MIB - 1, 100 * GIB, True, True, True),
        (0, 100 * GIB, True, True, True),
        (0, 0, False, False, False),  # nothing is known
    ],
)
def test_thresholds(free: int, size: int, low: bool, scarce: bool, full: bool) -> None:
    space = Space(free, size)
    assert (space.low, space.scarce, space.full) == (low, scarce, full)
    assert bool(space.warning) == low


def test_the_warning_says_how_much_is_left_and_what_is_refused() -> None:
    assert Space(8 * GIB, 100 * GIB).warning == "disk: 8.0% free (8.0 GiB); below 5% telemetry is refused"
    assert Space(2 * GIB, 100 * GIB).warning == "disk: 2.0% free (2.0 GiB); telemetry is refused"


def test_a_measurement_is_of_the_file_system_of_the_path(tmp_path: Path) -> None:
    space = disk.measure(tmp_path)
    assert 0 <= space.free <= space.size


def test_a_path_that_is_not_there_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.measure(tmp_path / "nowhere")
