"""A review is drafted from the log, written by people, published, and its actions are tracked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from pypdf import PdfReader

from incidents import commands, queries
from incidents.domain.incident.commands import Report
from incidents.notifications.contact_methods import add_method
from incidents.people.commands import set_member
from incidents.reports.compose import compose
from incidents.reports.csv import csv_of
from incidents.reports.models import ReportSchedule
from incidents.reports.periods import period_at
from incidents.reviews import commands as reviews
from incidents.reviews.models import ActionReminder
from incidents.reviews.reminders import remind
from incidents.teams.models import Team
from ingest.api import keys
from ingest.queries import Context, configured, watermark
from tests.integration.incidents.notifications.cases import MailSink

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")


@pytest.fixture
def number() -> int:
    """A resolved incident with a comment that looks like Markdown."""
    alice = User.objects.create_user("alice", email="alice@example.com", password="x" * 12, is_staff=True)
    set_member(Team.objects.get(slug="storage"), alice, "responder", Context("system:test"))
    made = commands.open_incident(
        Report("Disk `slow` | <b>", component="disk/d1", severity="error"), Context("key:mon")
    )
    id_ = made.incident.id
    commands.acknowledge(id_, ALICE)
    commands.comment(id_, "swapped [it](x)", ALICE)
    commands.resolve(id_, "disk/d1", "swapped", ALICE)
    return made.incident.number


def test_the_draft_has_what_the_log_knows_and_asks_for_the_rest(number: int) -> None:
    row = reviews.begin(str(number), ALICE)
    assert row.text.startswith(f"# Review of incident {number}: Disk \\`slow\\` \\| \\<b\\>\n")
    for told in (
        "| acknowledged |",
        "| resolved |",
        "alice: ",
        "confirmed by alice",
        "No one was called.",
        "_What ended it?",
    ):
        assert told in row.text, told
    assert reviews.begin(str(number), ALICE).text == row.text
    (event,) = configured("review", str(number))
    assert (event.actor, event.body["before"]) == ("user:alice", None)


def test_code_in_a_sentence_of_the_timeline_is_code_on_the_page_and_in_the_pdf(number: int) -> None:
    commands.comment(queries.get(str(number)).incident.id, "`dd` and [it](x) *here*", ALICE)
    row = reviews.begin(str(number), ALICE)
    assert "`dd` and \\[it\\](x) \\*here\\*" in row.text
    client = Client()
    client.force_login(User.objects.get(username="alice"))
    page = client.get(f"/incidents/{number}/review").content.decode()
    assert "<code>dd</code> and [it](x) *here*" in page
    pdf = PdfReader(BytesIO(client.get(f"/incidents/{number}/review.pdf").content))
    assert "dd and [it](x) *here*" in " ".join(" ".join(one.extract_text() for one in pdf.pages).split())


def test_over_http_a_review_is_written_and_its_actions_are_tracked(number: int) -> None:
    key = keys.create("bot", ["incidents:read", "incidents:write"])
    client = Client(headers={"Authorization": f"Bearer {key}"})
    path = f"/api/v1/incidents/{number}/review"

    def send(method: str, to: str, status: int = 200, **body: Any) -> Any:
        answer = getattr(client, method)(to, body, content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json()

    assert "draft it first" in client.get(path).json()["detail"]
    assert "draft it first" in send("patch", path, 404, published=True)["detail"]
    first = send("post", path)
    changed = send("patch", path, text="# Mine\n", edition=first["edition"])
    assert (changed["text"], changed["updated_by"]) == ("# Mine", "key:bot")
    assert (
        "changed in the meantime" in send("patch", path, 409, text="late", edition=first["edition"])["detail"]
    )
    assert "edition" in send("patch", path, 400, text="late")["errors"]
    assert send("patch", path, published=True)["published_at"]
    for body, field in (
        ({"text": ""}, "text"),
        ({"text": "a", "due": "soon"}, "due"),
        ({"text": "a", "owner": "nobody"}, "owner"),
        ({"text": "a", "done": True}, "done"),
    ):
        assert field in send("post", f"{path}/actions", 400, **body)["errors"], body
    send("post", f"{path}/actions", text="Buy spares", due="2026-12-24", owner="alice")
    send("post", f"{path}/actions", text="Alert earlier", due="2026-12-01")
    listed = client.get("/api/v1/review_actions").json()["results"]
    assert [(one["text"], one["owner"], one["incident"]) for one in listed] == [
        ("Alert earlier", "", number),
        ("Buy spares", "alice", number),
    ]
    done = send("patch", f"{path}/actions/1", done=True)["actions"][0]
    assert (done["done_by"], bool(done["done_at"])) == ("key:bot", True)
    assert [one["id"] for one in client.get("/api/v1/review_actions").json()["results"]] == [2]
    assert client.get("/api/v1/review_actions", {"owner": "alice"}).json()["results"] == []
    assert "no action 9" in send("patch", f"{path}/actions/9", 404, done=True)["detail"]
    assert [one["id"] for one in client.delete(f"{path}/actions/2").json()["actions"]] == [1]


def test_the_console_drafts_edits_and_keeps_what_was_typed(number: int) -> None:
    client, address = Client(), f"/incidents/{number}/review"
    client.force_login(User.objects.get(username="alice"))
    assert "No review yet" in client.get(address).content.decode()
    assert client.get(f"{address}.md").status_code == 404
    client.post(f"{address}/draft")
    page = client.get(address).content.decode()
    assert "<h3>Who was called</h3>" in page or "Who was called</h" in page
    assert "<b>" not in page.partition('class="md"')[2].partition("</section>")[0]
    client.post(f"{address}/add", {"text": "Buy spares", "owner": "alice", "due": "2020-01-01"})
    assert "overdue since" in client.get(address).content.decode()
    refused = client.post(f"{address}/add", {"text": "Kept text", "owner": "nobody"})
    assert (refused.status_code, "Kept text" in refused.content.decode()) == (400, True)
    assert client.post(f"{address}/write", {"text": "old", "edition": "1"}).status_code == 409
    assert "Buy spares" in client.get("/reviews").content.decode()
    client.post(f"{address}/done", {"action": "1"})
    assert "Open actions</h2>" not in client.get("/reviews").content.decode()
    assert client.get(f"{address}.md").content.decode().startswith(f"# Review of incident {number}")
    bob = User.objects.create_user("bob")
    client.force_login(bob)
    assert client.post(f"{address}/publish").status_code == 403
    assert (
        'action="'
        not in client.get(address).content.decode().partition("<aside>")[2].partition("</aside>")[0]
    )


def test_a_review_is_exported_as_pdf_with_its_actions(number: int) -> None:
    client = Client(headers={"Authorization": f"Bearer {keys.create('reader', ['incidents:read'])}"})
    path = f"/api/v1/incidents/{number}/review/pdf"
    missing = client.get(path)
    assert (missing.status_code, "draft it first" in missing.json()["detail"]) == (404, True)
    reviews.begin(str(number), ALICE)
    reviews.add_action(str(number), {"text": "Buy *spares*", "owner": "alice", "due": "2026-12-24"}, ALICE)
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/pdf")
    assert answer["Content-Disposition"] == f'attachment; filename="review-{number}.pdf"'
    text = _text_of(answer.content)
    for told in ("Disk `slow` | <b>", "Who was called", "Buy *spares* alice 2026-12-24 open"):
        assert told in text, told
    key = keys.create("sender", ["alerts"])
    assert Client(headers={"Authorization": f"Bearer {key}"}).get(path).status_code == 403
    console = Client()
    console.force_login(User.objects.get(username="alice"))
    reviews.write(str(number), "- a\n" * 3_000 + "- b", 2, ALICE)
    assert "at most 3,000 lines" in client.get(path).json()["detail"]
    refused = console.get(f"/incidents/{number}/review.pdf")
    assert (refused.status_code, "at most 3,000 lines" in refused.content.decode()) == (409, True)
    reviews.write(str(number), "## Who was called\n", 3, ALICE)
    assert f"/incidents/{number}/review.pdf" in console.get(f"/incidents/{number}/review").content.decode()
    assert "Who was called" in _text_of(console.get(f"/incidents/{number}/review.pdf").content)
    assert "| Buy \\*spares\\* | alice |" in console.get(f"/incidents/{number}/review.md").content.decode()


def _text_of(pdf: bytes) -> str:
    text = " ".join(page.extract_text() for page in PdfReader(BytesIO(pdf)).pages)
    return " ".join(text.split())


def test_reports_remind_of_actions_that_are_due(number: int) -> None:
    reviews.begin(str(number), ALICE)
    for text, owner, due in (
        ("Buy spares", "alice", "2026-11-20"),
        ("Alert earlier", "", "2026-11-22"),
        ("Later", "alice", "2026-11-23"),
        ("Some day", "alice", ""),
    ):
        reviews.add_action(str(number), {"text": text, "owner": owner, "due": due}, ALICE)
    week = period_at("weekly", datetime(2026, 11, 18, tzinfo=UTC), "UTC")
    assert (week.first.isoformat(), week.last.isoformat()) == ("2026-11-16", "2026-11-22")
    weekly = ReportSchedule(name="weekly", title="Weekly", cadence="weekly")
    before = watermark()
    due = compose(weekly, week, before)["review_actions"]
    assert [(one["due"], one["owner"], one["text"], one["number"]) for one in due["actions"]] == [
        ("2026-11-20", "alice", "Buy spares", number),
        ("2026-11-22", "", "Alert earlier", number),
    ]
    for team, count in (("storage", 2), ("network", 0)):
        of_team = ReportSchedule(name="t", title="T", cadence="weekly", team=team)
        assert len((compose(of_team, week, before)["review_actions"] or {"actions": ()})["actions"]) == count
    reviews.change_action(str(number), 1, {"done": True}, ALICE)
    made = compose(weekly, week, watermark())
    assert [one["text"] for one in made["review_actions"]["actions"]] == ["Alert earlier"]
    assert compose(weekly, week, before)["review_actions"] == due, "a past report comes out the same"
    assert "review action,#" in csv_of(made)
    for template in ("reports/page.html", "reports/mail.txt"):
        shown = render_to_string(template, {"report": made, "base": "", "leave": ""})
        assert "Due actions of reviews" in shown, template
        assert "Alert earlier" in shown, template


def test_the_owner_of_an_action_gets_one_mail_on_the_day_it_is_due(number: int, mails: MailSink) -> None:
    reviews.begin(str(number), ALICE)
    for text, owner in (("Buy spares", "alice"), ("Check racks", "alice"), ("Nobody's", "")):
        reviews.add_action(str(number), {"text": text, "owner": owner, "due": "2026-12-24"}, ALICE)
    reviews.add_action(str(number), {"text": "Later", "owner": "alice", "due": "2026-12-26"}, ALICE)
    reviews.change_action(str(number), 2, {"done": True}, ALICE)
    assert remind(datetime(2026, 12, 23, 23, 59, tzinfo=UTC)) == 0
    due = datetime(2026, 12, 24, 0, 1, tzinfo=UTC)
    assert [remind(due + timedelta(hours=hours)) for hours in (0, 1, 30)] == [1, 0, 0]
    (mail,) = mails.mails
    assert (mail["To"], mail["Subject"]) == ("alice@example.com", "Due 2026-12-24: Buy spares")
    assert f"/incidents/{number}/review" in mail.get_content()


def test_without_a_mail_server_no_reminder_waits_for_one(number: int) -> None:
    reviews.begin(str(number), ALICE)
    reviews.add_action(str(number), {"text": "Buy spares", "owner": "alice", "due": "2026-12-24"}, ALICE)
    assert remind(datetime(2026, 12, 24, 9, tzinfo=UTC)) == 0
    assert not ActionReminder.objects.exists()


def test_a_reminder_goes_to_the_contact_methods_and_not_after_the_action_is_done(
    number: int, mails: MailSink
) -> None:
    alice = User.objects.get(username="alice")
    add_method(alice, {"name": "work", "kind": "email", "address": "work@example.com"}, ALICE)
    reviews.begin(str(number), ALICE)
    for text in ("Buy spares", "Check racks"):
        reviews.add_action(str(number), {"text": text, "owner": "alice", "due": "2026-12-24"}, ALICE)
    due = datetime(2026, 12, 24, 9, tzinfo=UTC)
    mails.answers = ["451 later"]  # to the first
    assert remind(due) == 1
    reviews.change_action(str(number), 1, {"done": True}, ALICE)
    assert remind(due + timedelta(minutes=5)) == 0
    assert [(mail["To"], mail["Subject"]) for mail in mails.mails] == [
        ("work@example.com", "Due 2026-12-24: Check racks")
    ]
    states = ActionReminder.objects.order_by("action").values_list("state", flat=True)
    assert list(states) == ["refused", "sent"]
