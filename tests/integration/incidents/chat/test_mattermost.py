"""Incidents in Mattermost, against a local server that speaks its wire format: messages, threads, buttons, commands."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.contrib.auth import get_user_model
from django.core import signing
from django.test import Client
from pytest_django import Settings

from incidents import commands
from incidents.chat import commands as chat_commands
from incidents.chat import mattermost
from incidents.chat.commands import change, create, link
from incidents.chat.dispatcher import RECEIPTS_FOR, step
from incidents.chat.mattermost import BUTTON_LASTS
from incidents.chat.models import ChatMessage, ChatWorkspace
from incidents.chat.queries import broken_workspaces
from incidents.commands import Report
from incidents.follower import follower
from incidents.incident.models import IncidentRow
from incidents.teams.models import Silence
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.integrations.normalized import Alert, Parsed
from ingest.queries import Context, configured, now_utc
from tests.following import follow_to_the_end
from tests.integration.incidents.chat.mattermost_server import (
    COMMAND_TOKEN,
    FORM,
    ROOM,
    TOKEN,
    MattermostServer,
    command,
    mattermost_server,
    press,
    said,
    trigger,
    typed,
)

pytestmark = pytest.mark.usefixtures("log_database", "workspace")
CHARLIE = Context("user:charlie")


@pytest.fixture
def server(settings: Settings) -> Iterator[MattermostServer]:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    with mattermost_server() as server:
        yield server


@pytest.fixture
def workspace(server: MattermostServer) -> ChatWorkspace:
    """With the account u1 linked to alice."""
    get_user_model().objects.create(username="alice", is_staff=True)
    row = made(server, "acme")
    link(row, "u1", "alice", Context("user:alice"))
    return row


def made(server: MattermostServer, name: str) -> ChatWorkspace:
    fields = {
        "name": name,
        "platform": "mattermost",
        "url": server.url,
        "token": TOKEN,
        "signing_secret": COMMAND_TOKEN,
        "channel": ROOM,
    }
    return create(fields, CHARLIE)


def opened(title: str = "Disks are slow") -> IncidentRow:
    row = IncidentRow.objects.get(pk=commands.open_incident(Report(title), CHARLIE).incident.id)
    send_all()
    return row


def firing() -> IncidentRow:
    """An incident of an alert, whose labels a silence can match."""
    alert = Alert("d7", "firing", "d7 is slow", component="storage_cluster/s1", labels={"disk": "d7"})
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    send_all()
    return IncidentRow.objects.get()


def send_all(**later: float) -> None:
    now = now_utc() + timedelta(**later)
    while step(now):
        pass


def post_of(row: IncidentRow) -> str:
    return ChatMessage.objects.get(incident=row.pk).ts


# Messages
# ----------------------------------------------------------------------------------------------------------
def test_an_incident_has_one_message_that_changes_with_it(server: MattermostServer) -> None:
    row = opened()
    assert server.buttons()[:2] == ["acknowledge", "assign"]
    commands.acknowledge(str(row.pk), CHARLIE)
    send_all()
    assert "acknowledged by charlie" in server.text()
    assert "acknowledge" not in server.buttons()
    assert server.replies == [(post_of(row), "Charlie acknowledged the incident")]
    assert len(server.posts) == 1


def test_a_resolved_incident_has_no_buttons(server: MattermostServer) -> None:
    commands.resolve(str(opened().pk), "none", "over", CHARLIE)
    send_all()
    assert server.buttons() == []


def test_what_does_not_change_the_message_sends_no_update(server: MattermostServer) -> None:
    row = opened()
    secret = server.secret("acknowledge")
    commands.comment(str(row.pk), "looking", CHARLIE)
    send_all()
    assert server.secret("acknowledge") == secret
    assert server.replies == [(post_of(row), "**charlie**: looking")]


def test_a_title_and_a_comment_call_nobody_and_format_nothing(server: MattermostServer) -> None:
    row = opened("@channel *now*")
    commands.comment(str(row.pk), "see @all and [this](http://example.com)", CHARLIE)
    send_all()
    assert "@channel" not in server.text()
    assert "@all" not in server.replies[-1][1]
    assert r"\[this\]\(http" in server.replies[-1][1]


def test_a_rate_limit_delays_the_message_and_loses_nothing(
    server: MattermostServer, workspace: ChatWorkspace
) -> None:
    server.errors["posts"] = [(429, {"Retry-After": "30"}, "limit exceeded")]
    opened()
    assert server.posts == {}
    workspace.refresh_from_db()
    assert workspace.retry_at is not None
    assert workspace.retry_at > now_utc() + timedelta(seconds=20)
    send_all(seconds=31)
    assert len(server.posts) == 1
    assert broken_workspaces() == []


def test_a_wrong_token_says_so_and_what_it_missed_is_shown_with_the_right_one(
    server: MattermostServer, workspace: ChatWorkspace
) -> None:
    change(workspace, {"token": "x" * 26}, CHARLIE)
    opened()
    assert "create an access token of the bot account" in broken_workspaces()[0]
    change(workspace, {"token": TOKEN}, CHARLIE)
    send_all()
    assert len(server.posts) == 1


def test_a_channel_without_the_bot_stops_no_other_incident(server: MattermostServer) -> None:
    server.errors["posts"] = [(403, {}, "You do not have the appropriate permissions.")]
    opened("one")
    opened("two")
    assert ["two" in server.text(), len(server.posts)] == [True, 1]


def test_a_message_that_was_deleted_in_the_chat_is_posted_again(server: MattermostServer) -> None:
    row = opened()
    server.posts.clear()
    commands.acknowledge(str(row.pk), CHARLIE)
    send_all()
    assert "acknowledged" in server.text()


def test_a_test_message_names_its_channel(workspace: ChatWorkspace) -> None:
    assert chat_commands.test(workspace, "user:alice") == ROOM


def test_an_address_that_is_not_allowed_is_not_called(
    server: MattermostServer, workspace: ChatWorkspace, settings: Settings
) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = []
    opened()
    assert server.posts == {}
    assert "is a loopback address" in broken_workspaces()[0]
    assert workspace.active


# Buttons
# ----------------------------------------------------------------------------------------------------------
def test_the_button_acknowledges_in_the_name_of_the_linked_person(server: MattermostServer) -> None:
    row = opened()
    assert said(press(server.secret("acknowledge"), post_of(row))) == ""
    row.refresh_from_db()
    assert (row.state, row.acknowledged_by) == ("acknowledged", "alice")


def test_the_button_assigns_to_the_person_who_pressed_it(server: MattermostServer) -> None:
    row = opened()
    press(server.secret("assign"), post_of(row))
    row.refresh_from_db()
    assert row.owner == "alice"


def test_the_menu_hands_over(server: MattermostServer) -> None:
    row = opened()
    press(server.secret("handover"), post_of(row), chosen="storage")
    row.refresh_from_db()
    assert row.team == "storage"


def test_the_menu_silences_what_the_firing_alerts_share(server: MattermostServer) -> None:
    row = firing()
    assert 'disk="d7"' in said(press(server.secret("silence"), post_of(row), chosen="2h"))
    assert Silence.objects.get().created_by == "alice"
    row.refresh_from_db()
    assert row.state == "snoozed"


def test_a_choice_that_no_menu_has_is_refused(server: MattermostServer) -> None:
    row = firing()
    assert "Not done: duration must be" in said(press(server.secret("silence"), post_of(row), chosen="soon"))
    assert not Silence.objects.exists()


def test_an_account_that_is_not_linked_is_told_how_and_may_press_again_once_it_is(
    server: MattermostServer, workspace: ChatWorkspace
) -> None:
    row = opened()
    secret = server.secret("acknowledge")
    assert "Type `/dossier link`" in said(press(secret, post_of(row), user="u9"))
    link(workspace, "u9", "alice", CHARLIE)
    assert said(press(secret, post_of(row), user="u9")) == ""
    row.refresh_from_db()
    assert row.state == "acknowledged"


# Buttons that are refused
# ----------------------------------------------------------------------------------------------------------
def refusals(reason: str) -> list[str]:
    return [one.body["after"]["outcome"] for one in configured("chat_request", f"acme/{reason}")]


def test_a_button_that_was_used_does_nothing_again(server: MattermostServer) -> None:
    row = opened()
    secret = server.secret("acknowledge")
    press(secret, post_of(row))
    commands.unacknowledge(str(row.pk), CHARLIE)
    assert "was used before" in said(press(secret, post_of(row)))
    row.refresh_from_db()
    assert row.state == "open"
    assert refusals("repeated") == ["refused: repeated"]
    send_all()
    assert said(press(server.secret("acknowledge"), post_of(row))) == ""


def test_a_button_expires(server: MattermostServer, monkeypatch: pytest.MonkeyPatch) -> None:
    row = opened()
    monkeypatch.setattr(mattermost, "BUTTON_LASTS", timedelta(seconds=-1))
    assert "expired after 7 days" in said(press(server.secret("acknowledge"), post_of(row)))
    row.refresh_from_db()
    assert row.state == "open"
    assert refusals("expired") == ["refused: expired"]


def test_what_was_used_is_known_for_longer_than_a_button_lasts() -> None:
    assert RECEIPTS_FOR > BUTTON_LASTS


@pytest.mark.parametrize("salt", ["incidents.chat_button", "incidents.chat_link"])
def test_a_button_that_was_not_made_here_is_refused_and_on_the_audit(
    server: MattermostServer, workspace: ChatWorkspace, salt: str
) -> None:
    row = opened()
    with_key = signing.dumps([workspace.pk, str(row.pk), "acknowledge", "x"], key="k" * 50, salt=salt)
    for forged in (server.secret("acknowledge")[:-2] + "xx", with_key):
        answer = press(forged, post_of(row))
        assert (answer.status_code, b"not made here" in answer.content) == (401, True)
    row.refresh_from_db()
    assert row.state == "open"
    assert refusals("forged") == ["refused: forged"]


def test_a_button_without_a_secret_is_refused() -> None:
    assert press("", post_of(opened())).status_code == 401
    assert refusals("unsigned") == ["refused: unsigned"]


def test_a_button_of_another_workspace_is_refused(server: MattermostServer) -> None:
    made(server, "other")
    row = opened()
    post = ChatMessage.objects.get(workspace__name="acme").ts
    secret = server.secret("acknowledge", list(server.posts).index(post))
    answer = press(secret, post, name="other")
    assert (answer.status_code, b"of another workspace" in answer.content) == (401, True)
    (refusal,) = configured("chat_request", "other/forged")
    assert refusal.body["after"]["outcome"] == "refused: forged"
    row.refresh_from_db()
    assert row.state == "open"
    assert said(press(secret, post)) == ""


def test_a_button_of_one_message_acts_on_no_other_incident(server: MattermostServer) -> None:
    other = opened("other")
    row = opened()
    assert "message is not that of this incident" in said(press(server.secret("acknowledge"), post_of(row)))
    other.refresh_from_db()
    assert other.state == "open"


@pytest.mark.parametrize(
    ("id_", "status", "reason"),
    [
        (lambda: trigger("u2"), 401, "forged"),
        (lambda: trigger(age=400.0), 401, "expired"),
        (lambda: "nonsense", 401, "unsigned"),
        (lambda: "", 401, "unsigned"),
    ],
)
def test_a_button_whose_trigger_is_not_fresh_or_of_another_account_is_refused(
    server: MattermostServer, id_: object, status: int, reason: str
) -> None:
    row = opened()
    answer = press(server.secret("acknowledge"), post_of(row), trigger_id=id_())  # type: ignore[operator]
    assert answer.status_code == status
    row.refresh_from_db()
    assert row.state == "open"
    assert refusals(reason) == [f"refused: {reason}"]


# Typed commands
# ----------------------------------------------------------------------------------------------------------
def test_typed_commands_list_and_act(workspace: ChatWorkspace) -> None:
    number = opened("Disk_1 is slow").number
    assert f"/incidents/{number}) warning, open" in typed("list")
    assert r"Disk\_1 is slow" in typed("list")
    assert "acknowledged." in typed(f"ack {number}")
    assert "acknowledged" in typed(f"show #{number}")
    assert typed(f"ack {number}").startswith("Not done:")
    assert typed("who") == "No on-call schedules."
    assert "handed over to storage" in typed(f"handover {number} storage it is the disks")
    assert "/dossier ack 12" in typed("")
    assert workspace.accounts.count() == 1


def test_a_typed_silence_matches_what_the_firing_alerts_share() -> None:
    assert 'silenced for 2h: `disk="d7"`' in typed(f"silence {firing().number} 2h known")
    assert Silence.objects.get().created_by == "alice"


def test_the_typed_link_is_of_the_account_that_typed_it() -> None:
    assert "/chat/link/" in typed("link", user="u7")
    assert "not linked" in typed("list", user="u7")
    assert refusals("account not linked") == ["refused: account not linked"]


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"token": "x" * 26}, 401, "forged"),
        ({"token": ""}, 401, "unsigned"),
        ({"trigger_id": trigger(age=10_000_000.0)}, 401, "expired"),
        ({"trigger_id": trigger("u2")}, 401, "forged"),
        ({"trigger_id": ""}, 401, "unsigned"),
    ],
)
def test_a_command_that_is_not_of_the_server_is_refused_and_on_the_audit(
    fields: dict[str, str], status: int, reason: str
) -> None:
    row = opened()
    for _ in range(2):
        assert command(f"ack {row.number}", **fields).status_code == status
    row.refresh_from_db()
    assert row.state == "open"
    assert refusals(reason) == [f"refused: {reason}"]


def test_a_command_is_carried_out_once() -> None:
    once = trigger()
    assert command("list", trigger_id=once).status_code == 200
    answer = command("list", trigger_id=once)
    assert (answer.status_code, b"already received" in answer.content) == (409, True)
    assert refusals("repeated") == ["refused: repeated"]


# Requests that are not Mattermost's
# ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"", FORM), (b"text=a", FORM), (b"{}", "application/json"), (b"nonsense", "application/json")],
)
def test_nonsense_is_a_clear_error_and_on_the_audit(body: bytes, kind: str) -> None:
    answer = Client().post("/chat/mattermost/acme", body, content_type=kind)
    assert (answer.status_code, b"is not a request of Mattermost" in answer.content) == (400, True)
    assert refusals("malformed") == ["refused: malformed"]


def test_a_command_of_nobody_is_refused_and_on_the_audit() -> None:
    row = opened()
    answer = command(f"ack {row.number}", user="")
    assert (answer.status_code, b"user_id" in answer.content) == (400, True)
    row.refresh_from_db()
    assert row.state == "open"
    assert refusals("malformed") == ["refused: malformed"]


def test_a_body_that_is_not_utf_8_is_a_clear_error() -> None:
    answer = Client().post("/chat/mattermost/acme", b"\xff\xfe", content_type=FORM)
    assert (answer.status_code, b"not UTF-8" in answer.content) == (400, True)


def test_a_workspace_that_is_not_there_off_or_of_slack_answers_404(workspace: ChatWorkspace) -> None:
    assert command("list", name="other").status_code == 404
    assert Client().post("/chat/slack/acme", b"{}", content_type="application/json").status_code == 404
    change(workspace, {"active": False}, CHARLIE)
    assert command("list").status_code == 404
