"""Processes that share a directory agree who has which cores; one that ends leaves its place to the next."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.supervisor.cpu_affinity import share

PROGRAM = """
import os, sys
from pathlib import Path
from deploy.supervisor.cpu_affinity import keep_to_share
keep_to_share(Path(sys.argv[1]), 2)
print(*sorted(os.sched_getaffinity(0)), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("cores", "of"), [(2, 2), (8, 2), (7, 3), (64, 5)])
def test_every_core_is_somebodys_and_nobody_has_much_more(cores: int, of: int) -> None:
    shares = [share(range(cores), place, of) for place in range(of)]
    assert sorted(core for one in shares for core in one) == list(range(cores))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_of_more_processes_than_cores_each_has_one() -> None:
    assert [share((4, 6), place, 5) for place in range(5)] == [{4}, {6}, {4}, {6}, {4}]


@contextmanager
def process(places: Path) -> Iterator[set[int]]:
    """The cores of a process that keeps to its share while the block lasts."""
    command = [sys.executable, "-c", PROGRAM, str(places)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        yield set(map(int, started.stdout.readline().split()))
        started.kill()


def test_processes_keep_to_different_cores_and_a_new_one_takes_over_what_is_free(tmp_path: Path) -> None:
    all_ = sorted(os.sched_getaffinity(0))
    first, second = share(all_, 0, 2), share(all_, 1, 2)
    with process(tmp_path) as one:
        with process(tmp_path) as other, process(tmp_path) as third:
            assert (one, other, third) == (first, second, set(all_))
        with process(tmp_path) as again:
            assert again == second


def test_where_they_cannot_agree_nothing_is_changed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with process(tmp_path / "file") as one:
        assert one == os.sched_getaffinity(0)


WOKEN = """
import os, threading
from deploy.supervisor.cpu_affinity import let_running_go_on
begin, told = threading.Event(), []
def tell(): begin.wait(); told.append(os.sched_getscheduler(0))
before = threading.Thread(target=tell)
before.start()
let_running_go_on()
after = threading.Thread(target=tell)
after.start()
begin.set()
before.join()
after.join()
print(*told, os.sched_getscheduler(0))
"""


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="this system has no SCHED_BATCH")
def test_no_thread_of_a_web_process_takes_the_place_of_one_that_runs() -> None:
    told = subprocess.run([sys.executable, "-c", WOKEN], capture_output=True, text=True, check=True).stdout
    assert told.split() == [str(os.SCHED_BATCH)] * 3
