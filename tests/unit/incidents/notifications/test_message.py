"""Messages about many incidents: some are described, the others are named to machines and counted for
people.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from incidents.domain.notifications.message import MOST_SHOWN, MessageLine, compose


def told(number: int) -> MessageLine:
    at = f"https://dossier/incidents/{number}"
    return MessageLine(
        str(number), number, f"Disk {number}", "error", "open", "storage", None, None, None, "on call", at
    )


def test_a_machine_is_told_every_ticket_once() -> None:
    body = compose("m", [told(number) for number in range(1, 101)], "https://dossier").body
    named = [one["id"] for one in (*body["incidents"], *body["others"])]
    assert named == [str(number) for number in range(1, 101)]
    assert len(body["incidents"]) == MOST_SHOWN


def test_people_are_told_how_many_more_there_are() -> None:
    message = compose("m", [told(number) for number in range(1, 101)], "https://dossier")
    assert message.text.count("Severity:") == MOST_SHOWN
    assert f"And {100 - MOST_SHOWN} more" in message.text


def test_a_call_says_what_its_reader_needs_to_begin() -> None:
    one = replace(
        told(7),
        description="p99 of writes above 2 s for 10 minutes",
        labels={"alertname": "DiskSlow", "rack": "r3"},
        links=(
            {"href": "https://wiki/disks", "text": "Runbook"},
            {"href": "https://prom/graph", "text": "Query"},
        ),
        opened_at=datetime(2026, 1, 5, 3, 12, tzinfo=UTC),
        alerts=4,
        firing=3,
    )
    lines = compose("m", [one], "https://dossier").text.splitlines()
    assert lines[1] == "p99 of writes above 2 s for 10 minutes"
    assert {
        "Since: 2026-01-05 03:12 UTC",
        "Alerts: 3 of 4 firing",
        "Labels: alertname=DiskSlow, rack=r3",
        "Runbook: https://wiki/disks",
        "Query: https://prom/graph",
    } <= set(lines)
    assert not any(line.startswith(("Verdict:", "Component:")) for line in lines)


def test_what_needs_somebody_stands_before_what_is_over() -> None:
    message = compose("m", [replace(told(1), severity="critical", over=True), told(2)], "https://dossier")
    assert (message.subject, message.severity) == ("[error] #2 Disk 2 and 1 more", "error")
