"""Hand-overs, snoozes and merges by the forms of an incident's page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from incidents import commands, queries
from incidents.commands import Report
from incidents.teams.models import Team
from ingest.queries import Context

pytestmark = pytest.mark.django_db
BOB = Context("user:bob")


@pytest.fixture
def alice() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    return client


def opened(title: str = "Rack 12 loses packets") -> int:
    return commands.open_incident(Report(title, component="tor/t12"), BOB).incident.number


def one(number: int) -> queries.Incident:
    return queries.get(str(number)).incident


def handed_over() -> int:
    number = opened()
    commands.hand_over(one(number).id, "storage", "the disks time out", BOB)
    return number


def test_a_ticket_that_was_handed_over_says_by_whom_and_why(alice: Client) -> None:
    body = alice.get(f"/incidents/{handed_over()}").content.decode()
    assert "bob (Network) handed this incident over to Storage" in body
    assert "the disks time out" in body


def test_a_hand_over_is_accepted_bounced_or_undone(alice: Client) -> None:
    numbers = {verb: handed_over() for verb in ("accept", "bounce", "undo")}
    for verb, number in numbers.items():
        alice.post(f"/incidents/{number}/{verb}", {"reason": "the disks are fine"})
    found = {verb: (one(number).team, one(number).hops) for verb, number in numbers.items()}
    assert found == {"accept": ("storage", 1), "bounce": ("network", 2), "undo": ("network", 0)}


def test_an_update_of_the_page_leaves_the_message_to_the_answer_of_the_action(alice: Client) -> None:
    page = f"/incidents/{opened()}"
    alice.post(f"{page}/acknowledge")
    update = alice.get(page, headers={"Dossier-Update": "1"})
    assert ("Acknowledged #" in update.content.decode(), "messages" in update.cookies) == (False, False)
    assert "Acknowledged #" in alice.get(page).content.decode()


def test_the_page_shows_how_long_each_team_had_the_ticket(alice: Client) -> None:
    body = alice.get(f"/incidents/{handed_over()}/details").content.decode()
    assert "Time per team" in body
    assert "<span>Network</span><span>under 1 min</span>" in body


@pytest.mark.parametrize(("chosen", "hours"), [("1", 1), ("72", 72)])
def test_a_ticket_is_snoozed_for_some_hours(alice: Client, chosen: str, hours: int) -> None:
    number = opened()
    alice.post(f"/incidents/{number}/snooze", {"for": chosen})
    until = one(number).snoozed_until
    assert until is not None
    assert abs(until - timezone.now() - timedelta(hours=hours)) < timedelta(minutes=1)


def test_a_ticket_is_snoozed_until_a_time_in_utc(alice: Client) -> None:
    number, day = opened(), (timezone.now() + timedelta(days=2)).date()
    alice.post(f"/incidents/{number}/snooze", {"for": "time", "time": f"{day}T09:30"})
    assert str(one(number).snoozed_until) == f"{day} 09:30:00+00:00"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"for": "time", "time": "soon"}, "Time must be a date and a time"),
        ({"for": "time", "time": "2020-01-01T00:00"}, "Until must be later than now"),
        ({"for": "9"}, "Duration has to be chosen"),
        ({}, "Duration has to be chosen"),
    ],
)
def test_a_snooze_that_makes_no_sense_is_refused_in_words(
    alice: Client, form: dict[str, str], said: str
) -> None:
    response = alice.post(f"/incidents/{opened()}/snooze", form)
    assert response.status_code == 400
    assert said in response.content.decode()


def test_a_snoozed_ticket_is_woken_by_hand(alice: Client) -> None:
    number = opened()
    alice.post(f"/incidents/{number}/snooze", {"for": "change"})
    assert "until it changes" in alice.get(f"/incidents/{number}").content.decode()
    alice.post(f"/incidents/{number}/undo", {"what": "snooze"})
    assert one(number).state == "open"


def undone(alice: Client, number: int, what: str) -> list[str]:
    answer = alice.post(f"/incidents/{number}/undo", {"what": what}, follow=True)
    return [str(one) for one in answer.context["messages"]]


def test_the_message_after_an_undo_names_what_was_undone(alice: Client) -> None:
    number, target, moved = opened(), opened(), handed_over()
    alice.post(f"/incidents/{number}/snooze", {"for": "1"})
    assert undone(alice, number, "snooze")[-1] == f"Snooze of #{number} ended."
    commands.snooze(one(number).id, None, "maintenance", Context("system:incidents"))
    assert undone(alice, number, "snooze") == [f"Notifications of #{number} resumed."]
    assert undone(alice, moved, "hand_over") == [f"Hand-over of #{moved} undone."]
    commands.merge(one(number).id, one(target).id, "", BOB)
    assert undone(alice, number, "merge")[0].startswith(f"Merge of #{number} undone.")


def test_a_ticket_is_merged_by_number_and_both_pages_lead_to_each_other(alice: Client) -> None:
    target, source = opened("Rack 12"), opened("Row 12")
    alice.post(f"/incidents/{source}/merge", {"into": f"#{target}"})
    assert f'Merged into <a href="/incidents/{target}">' in alice.get(f"/incidents/{source}").content.decode()
    assert (
        f'<a href="/incidents/{source}">#{source}</a> Row 12'
        in alice.get(f"/incidents/{target}").content.decode()
    )


def test_a_merged_ticket_is_split_off_again(alice: Client) -> None:
    target, source = opened(), opened()
    alice.post(f"/incidents/{source}/merge", {"into": str(target)})
    alice.post(f"/incidents/{source}/split")
    assert (one(source).state, one(target).merged) == ("open", {})


def test_a_merge_with_no_ticket_is_refused_in_words(alice: Client) -> None:
    response = alice.post(f"/incidents/{opened()}/merge", {"into": "99999"})
    assert response.status_code == 400
    assert "no incident 99999" in response.content.decode()


def test_title_and_links_are_set(alice: Client) -> None:
    number = opened()
    alice.post(f"/incidents/{number}/set_title", {"title": "Row 12 loses packets"})
    alice.post(f"/incidents/{number}/link", {"href": "https://wiki.example/row12", "text": "Plan of row 12"})
    assert one(number).title == "Row 12 loses packets"
    assert "Plan of row 12</a>" in alice.get(f"/incidents/{number}").content.decode()


def test_a_related_ticket_is_linked_by_number_on_both(alice: Client) -> None:
    one_number, other = opened("Rack 12"), opened("Row 12")
    alice.post(f"/incidents/{one_number}/link", {"href": f"#{other}"})
    assert [link["text"] for link in one(one_number).links] == [f"#{other} Row 12"]
    assert [link["text"] for link in one(other).links] == [f"#{one_number} Rack 12"]


def test_a_comment_is_shown_as_markdown_with_its_link(alice: Client) -> None:
    number = opened()
    form = {"text": "**Two** optics\n<b>x</b>", "href": "https://logs.example/t12", "link_text": "Log of t12"}
    alice.post(f"/incidents/{number}/comment", form)
    body = alice.get(f"/incidents/{number}").content.decode()
    assert "<strong>Two</strong> optics" in body
    assert ">Log of t12</a>" in body
    assert "<b>x" not in body


def test_a_button_that_came_too_late_says_so_without_a_form(alice: Client) -> None:
    number = handed_over()
    seen = queries.get(str(number)).position
    commands.bounce(one(number).id, "not ours", BOB)
    response = alice.post(f"/incidents/{number}/accept", {"seen": seen})
    assert response.status_code == 409
    assert "bob rejected the hand-over from storage to network: not ours" in response.content.decode()


def test_a_ticket_whose_team_was_removed_says_why_it_stays_resolved(alice: Client) -> None:
    team = Team.objects.create(slug="lamps", name="Lamps")
    number = opened()
    commands.hand_over(one(number).id, "lamps", "it is dark", BOB)
    commands.resolve(one(number).id, "none", "", BOB)
    team.delete()
    shown = alice.get(f"/incidents/{number}").content.decode()
    assert "This incident cannot be reopened: its team lamps was removed" in shown
    assert f'action="/incidents/{number}/reopen"' not in shown
    answer = alice.post(f"/incidents/{number}/reopen")
    assert (answer.status_code, one(number).state) == (409, "resolved")
    assert "stays resolved: its team lamps was removed" in answer.content.decode()
    Team.objects.create(slug="lamps", name="Lamps")
    alice.post(f"/incidents/{number}/reopen")
    assert one(number).state == "open"
