"""Cards of Microsoft Teams: facts, links, and nothing of an alert that is formatted."""

from __future__ import annotations

import json
from typing import Any

from incidents.domain.notifications import message
from incidents.domain.notifications.message import compose
from incidents.domain.notifications.teams_card import teams_message
from tests.unit.incidents.notifications.test_push import ID, line

BASE = "https://dossier.example.com"


def card(*lines: Any) -> dict[str, Any]:
    (attached,) = teams_message(compose("m", lines, BASE))["attachments"]
    assert attached["contentType"] == "application/vnd.microsoft.card.adaptive"
    found: dict[str, Any] = attached["content"]
    return found


def links(found: dict[str, Any]) -> list[str]:
    assert {one["type"] for one in found["actions"]} <= {"Action.OpenUrl"}
    return [one["url"] for one in found["actions"]]


def test_a_card_to_a_person_has_the_facts_and_two_links() -> None:
    found = card(line())
    title, facts = found["body"]
    assert (title["text"], title["color"]) == (r"\[error\] \#12 Disks are slow", "Attention")
    assert {one["title"]: one["value"] for one in facts["facts"]} == {
        "Severity": "error",
        "State": "open",
        "Team": "storage",
        "Component": "disk/7",
        "Verdict": "disk/7 is likely at fault",
        "Reason": "you are on call",
    }
    assert links(found) == [f"{BASE}/answer/abc.def", f"{BASE}/incidents/12"]


def test_a_card_without_a_person_and_one_that_it_is_over_answer_nothing() -> None:
    assert links(card(line(answer_url=""))) == [f"{BASE}/incidents/12"]
    over = card(line(over=True, answer_url="", resolved_by="bob", confirmed_cause="disk/7"))
    assert over["body"][0]["color"] == "Good"
    facts = {one["title"]: one["value"] for one in over["body"][1]["facts"]}
    assert (facts["State"], facts["Cause"]) == ("resolved by bob", "disk/7")


def test_several_incidents_are_lines_of_one_card_that_leads_to_the_inbox() -> None:
    found = card(*(line(id=ID.replace("1", str(n)), number=n, title=f"Rack {n}") for n in range(2, 9)))
    assert [one["text"] for one in found["body"][1:3]] == [r"\#2 Rack 2 \(error\)", r"\#3 Rack 3 \(error\)"]
    assert links(found) == [BASE]


def test_a_title_cannot_format_a_card_or_bring_a_link_along() -> None:
    title = card(line(title="[Sign in](https://evil.example) **now**\n# really <at>all</at>"))["body"][0][
        "text"
    ]
    assert "](" not in title
    assert "**" not in title
    assert "\n" not in title
    assert "<" not in title.replace(r"\<", "")


def test_a_card_of_the_longest_texts_is_smaller_than_teams_takes() -> None:
    long = "*" * 5_000
    lines = [line(id=ID.replace("1", str(n)), title=long, verdict=long, reason=long) for n in range(2, 10)]
    assert len(json.dumps(teams_message(compose("m", lines, BASE)))) < 28_000
    assert len(json.dumps(teams_message(compose("m", lines[:1], BASE)))) < 28_000


def test_a_test_message_is_a_card_too() -> None:
    (attached,) = teams_message(message.test_message("m", "alice", BASE))["attachments"]
    assert attached["content"]["body"][0]["text"] == "Dossier test message"
    assert links(attached["content"]) == [BASE]
