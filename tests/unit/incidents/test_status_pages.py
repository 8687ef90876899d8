"""Status pages: folds of notices, strips of days, drafts without internal names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from incidents.domain.status_pages import (
    Notice,
    Publish,
    StatusUpdate,
    internal_names,
    publish,
    services_from,
    states_of,
    strips,
)
from incidents.domain.values import CommandRefusedError, InvalidValueError

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
LONG_AGO = NOON - timedelta(days=400)
KEYS = ("storage", "network")


def notice(*updates: tuple[int, str, dict[str, str]], kind: str = "incident", **fields: Any) -> Notice:
    """Updates as hours before NOON, status and states."""
    made = [
        StatusUpdate(place + 1, NOON - timedelta(hours=hours), status, "Text.", states)
        for place, (hours, status, states) in enumerate(updates)
    ]
    return Notice("id", "cloud", kind, "Title", None, tuple(made), **fields)


def test_a_service_has_the_worst_state_of_all_open_notices() -> None:
    slow = notice((2, "identified", {"storage": "degraded_performance", "network": "maintenance"}))
    down = notice((1, "investigating", {"storage": "major_outage"}))
    over = notice((5, "investigating", {"network": "major_outage"}), (4, "resolved", {}))
    assert states_of(KEYS, [slow, down, over]) == {"storage": "major_outage", "network": "maintenance"}


@pytest.mark.parametrize(("status", "state"), [("scheduled", "operational"), ("in_progress", "maintenance")])
def test_a_maintenance_changes_states_once_it_has_begun(status: str, state: str) -> None:
    planned = notice((1, status, {"network": "maintenance"}), kind="maintenance")
    assert states_of(KEYS, [planned])["network"] == state


def test_a_strip_has_the_worst_state_of_each_day_that_an_update_lasted() -> None:
    long = notice(
        (50, "investigating", {"storage": "major_outage"}),
        (49, "identified", {"storage": "degraded_performance"}),
        (20, "resolved", {}),
    )
    strip = strips(KEYS, [long], NOON, LONG_AGO)["storage"]
    assert len(strip) == 90
    assert strip[-1].day == NOON.date()
    assert [one.state for one in strip[-4:]] == [
        "operational",
        "major_outage",
        "degraded_performance",
        "operational",
    ]


def test_a_withdrawn_notice_leaves_no_day_and_one_that_began_earlier_fills_the_strip() -> None:
    open_for_long = notice((24 * 200, "investigating", {"network": "partial_outage"}))
    withdrawn = notice((3, "investigating", {"storage": "major_outage"}), withdrawn=True)
    found = strips(KEYS, [open_for_long, withdrawn], NOON, LONG_AGO)
    assert {one.state for one in found["network"]} == {"partial_outage"}
    assert {one.state for one in found["storage"]} == {"operational"}


def test_days_before_the_page_was_made_have_no_data_unless_a_notice_says_something() -> None:
    early = notice((24 * 9, "investigating", {"network": "partial_outage"}), (24 * 9 - 1, "resolved", {}))
    found = strips(KEYS, [early], NOON, NOON - timedelta(days=3))
    assert [one.state for one in found["storage"]] == ["no_data"] * 86 + ["operational"] * 4
    assert [one.state for one in found["network"]][-10:-8] == ["partial_outage", "no_data"]
    assert found["storage"][0].words.endswith(": no data")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Volumes are slow.", []),
        ("Seen on tor/dc1-t12, see #12.", ["tor/dc1-t12", "#12"]),
        ("Ask Alice.", ["alice"]),
        ("https://example.com/rack/r1 has the plan", []),
        ("Reads and/or writes fail", ["and/or"]),
        ("malice", []),
    ],
)
def test_internal_names_are_found_in_a_text(text: str, found: list[str]) -> None:
    assert internal_names(text, None, ["alice", "bo"]) == found


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (Publish("resolved", "", {}, title="A"), "text"),
        (Publish("resolved", "Over.", {}), "title"),
        (Publish("completed", "Over.", {}, title="A"), "status"),
        (Publish("identified", "B", {"disk": "operational"}, title="A"), "services"),
        (Publish("identified", "B", {"storage": "broken"}, title="A"), "services"),
        (Publish("identified", "B", {}, kind="party", title="A"), "kind"),
    ],
)
def test_what_cannot_be_published_names_its_field(command: Publish, field: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        publish(None, "id", "cloud", KEYS, command)
    assert refused.value.field == field


def test_a_withdrawn_notice_gets_no_further_update() -> None:
    gone = notice((1, "investigating", {}), withdrawn=True)
    with pytest.raises(CommandRefusedError):
        publish(gone, "id", "cloud", KEYS, Publish("resolved", "Over.", {}))


def test_keys_are_made_of_names_and_services_match_by_slug_and_glob() -> None:
    (one,) = services_from([{"name": "Block storage (EU)", "covers": ["storage-api", "disk/*"]}])
    assert one.key == "block-storage-eu"
    assert one.stands_for({"storage-api"}, ())
    assert one.stands_for((), {"disk/d1"})
    assert not one.stands_for({"disk"}, {"tor/t1"})
