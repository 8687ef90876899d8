"""What a message says of many tickets: some are described, the others are named to machines and counted for people."""

from __future__ import annotations

from incidents.domain.messages import MOST_SHOWN, Told, compose


def told(number: int) -> Told:
    at = f"https://dossier/incidents/{number}"
    return Told(
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
