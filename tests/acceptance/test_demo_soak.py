"""Alice tries the demo on an empty machine, and Charlie keeps killing its web process while she looks."""

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from deploy.demo.notes import Notes
from deploy.demo.world import Demo
from deploy.embedded import Home
from tests.acceptance.stack import Stack, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]
SPEED = "100"


@pytest.fixture(scope="module")
def demo() -> Iterator[Stack]:
    home = Path(tempfile.mkdtemp(prefix="dossier-d-")) / "home"
    stack = Stack(home, "demo", "--speed", SPEED)
    stack.start()
    wait_for((home / "demo.json").exists, 60, "the demo's user and key")
    yield stack
    stack.stop(signal.SIGKILL)
    wait_for(lambda: not stack.processes(), 15)
    Home(home).forget()
    shutil.rmtree(home.parent)


def notes(demo: Stack) -> Notes:
    kept = Notes.load(demo.home / "demo.json")
    assert kept is not None
    return kept


def blamed(demo: Stack) -> set[str]:
    """Components that analyzers blame in what the demo sends; incidents of the week before it have verdicts, too."""
    known = notes(demo)
    found = demo.get("/api/v1/incidents?limit=200", known.key)["results"]
    begun = [one for one in found if datetime.fromisoformat(one["opened_at"]) >= known.start]
    return {one["component"] for one in begun if one["verdict"] is not None}


def kill_web(demo: Stack) -> None:
    for pid in demo.processes():
        if Path(f"/proc/{pid}/comm").read_text().startswith("web-"):
            os.kill(pid, signal.SIGKILL)


def test_all_stories_name_the_culprits_and_nobody_else(demo: Stack) -> None:
    truth = {component for story in Demo(notes(demo).start).stories for component in story.components}
    kill_web(demo)
    wait_for(lambda: demo.answers() and truth <= blamed(demo), 600, "the incidents")
    assert blamed(demo) == truth
    wait_for(lambda: "every component at fault has its incident" in demo.said, 10, "the last line")


def test_nothing_was_lost_or_doubled_by_the_kill(demo: Stack) -> None:
    world = Demo(notes(demo).start)
    wait_for(lambda: (notes(demo).sent or 0) >= world.minutes, 300, "the end of the stories")
    sent = sum(len(batch.rows) for n in range(world.minutes) for batch in world.minute(n))
    sent += sum(len(batch.rows) for batch in world.inventory())
    query = "SELECT sum(rows) FROM telemetry_receipt WHERE last < %s"
    assert json.loads(counted(demo, query, world.world.end.isoformat())) == sent


def test_a_second_start_goes_on_with_the_same_tickets(demo: Stack) -> None:
    before, sent = blamed(demo), notes(demo).sent
    demo.stop(signal.SIGINT)
    demo.start()
    time.sleep(5)
    assert blamed(demo) == before
    assert (notes(demo).sent or 0) >= (sent or 0)
    assert demo.said.count("World: inventory") <= 6


def counted(demo: Stack, query: str, *values: str) -> str:
    program = (
        "from django.db import connection; c = connection.cursor();"
        f"c.execute({query!r}, {list(values)!r}); print(c.fetchone()[0])"
    )
    return demo.manage("shell", "-v0", "-c", program)
