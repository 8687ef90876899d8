"""Freed memory goes back to the system."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from deploy.celery import give_back


def anonymous() -> float:
    """MiB of this process that no file backs."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Anonymous:"))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can give freed memory back")
def test_memory_below_what_is_still_in_use_goes_back_to_the_system() -> None:
    arrays = [np.ones(8_000) for _ in range(1_000)]
    last = arrays[-1]
    arrays.clear()
    before = anonymous()
    give_back()
    assert anonymous() < before - 30
    assert last.all()
