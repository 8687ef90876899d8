"""The pools of memory of a process with threads, counted in its map of memory."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from tests.places import ROOT

COUNT = """
import re, sys, threading
from incidents.worker.memory import share_pools

if sys.argv[1] == "shared":
    assert share_pools()
together = threading.Barrier(12)

def work():
    kept = [bytes(2_000) for _ in range(50)]
    together.wait()

threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
starts = re.findall("^([0-9a-f]+)-[0-9a-f]+ rw", open("/proc/self/maps").read(), re.MULTILINE)
print(sum(int(start, 16) % (64 << 20) == 0 for start in starts))
"""


def pools(how: str) -> int:
    """Pools of further threads: glibc begins each at a multiple of 64 MB."""
    command = [sys.executable, "-c", COUNT, how]
    return int(subprocess.run(command, cwd=ROOT, env={}, check=True, capture_output=True).stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="needs glibc")
def test_threads_share_one_pool_of_memory() -> None:
    assert pools("shared") <= 1 < pools("apart")
