"""Stories of the demo besides Deepview's: a month of outages, a lossy link, last week's incidents."""

import threading
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest

from analyzers.rela import check, read_snapshot
from deploy.demo.last_week import draw
from deploy.demo.month import DAYS
from deploy.demo.network import SINCE
from deploy.demo.screen import Screen
from deploy.demo.sender import Sender
from deploy.demo.witness import Witness
from deploy.demo.world import Demo

pytestmark = pytest.mark.simulated

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo(START)


def test_the_month_ends_where_the_demo_starts(demo: Demo) -> None:
    starts = [datetime.fromisoformat(row["start"]) for row in demo.month.outages()]
    assert START - timedelta(days=DAYS) <= min(starts) < max(starts) < START


def test_the_two_bad_tors_go_out_more_than_all_others_together(demo: Demo) -> None:
    unplanned = [row["device"] for row in demo.month.outages() if not row.get("planned")]
    bad = sum(device in demo.month.culprits for device in unplanned)
    assert len(demo.month.culprits) == 2
    assert bad > len(unplanned) / 2


def test_only_the_bad_link_loses_packets_and_not_before_its_time(demo: Demo) -> None:
    lossy = [row for n in range(SINCE, SINCE + 10) for row in demo.network.minute(n) if row["lost"]]
    assert len(lossy) > 20
    assert all(demo.network.culprit in row["hops"] for row in lossy)
    assert sum(row["lost"] for row in demo.network.minute(SINCE - 1)) <= 1


def test_the_drain_before_the_loss_breaks_its_specification_on_the_bad_link_alone(demo: Demo) -> None:
    drain = demo.network.drain()
    before, after = (read_snapshot("x", text.encode()) for text in (drain.before, drain.after))
    found = check(before, after, drain.specification)
    assert (found["classes"], found["classes_violated"]) == (56, 7)
    for one in found["violations"]:
        rack, spine, _ = (name.partition("/")[2] for name in one["witness"])
        assert demo.network.culprit == f"link/{spine}~{rack}"


def test_no_story_has_a_component_of_another(demo: Demo) -> None:
    named = [component for story in demo.stories for component in story.components]
    assert len(named) == len(set(named)) == 9


def test_last_weeks_tickets_are_resolved_in_order_of_time_before_today() -> None:
    for ticket in (trouble.incident for trouble in draw(START, 7)):
        times = [ticket.opened_at, *(at for at, _ in ticket.steps)]
        assert times == sorted(times)
        assert times[-1] < START


def test_some_of_last_weeks_tickets_were_passed_on() -> None:
    assert any(len(trouble.incident.steps) > 2 for trouble in draw(START, 7))


def test_the_truth_is_told_of_the_stories_tickets_and_not_of_last_weeks(demo: Demo) -> None:
    out = StringIO()
    witness = Witness(Sender("http://localhost", "key", threading.Event()), Screen(out), demo)
    last_week = [told(n, trouble.incident.opened_at) for n, trouble in enumerate(draw(START, demo.seed))]
    witness.look([told(900, START + timedelta(hours=3)), told(901, START), *last_week])
    said = [line for line in out.getvalue().splitlines() if "Incident" in line]
    assert [line.split()[1] for line in said] == ["#901", "#900"]


def told(number: int, opened: datetime) -> dict[str, Any]:
    """An incident that a verdict opened, as the incident API gives it."""
    return {
        "id": str(number),
        "number": number,
        "team": "storage",
        "component": "storage_cluster/d1-s3",
        "confidence": 0.99,
        "verdict": "…",
        "opened_at": opened.isoformat(),
        "url": "…",
    }
