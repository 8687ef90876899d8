"""Incidents in Slack, against a local server that speaks its wire format: messages, threads, buttons, commands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django import Settings

from deploy.observability.health import advice
from incidents import commands, queries
from incidents.chat.commands import change, create, link
from incidents.chat.dispatcher import step
from incidents.chat.models import ChatMessage, ChatWorkspace
from incidents.chat.queries import broken_workspaces, lag_of
from incidents.commands import Report
from incidents.follower import follower
from incidents.incident.models import IncidentRow
from incidents.teams.models import Silence
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.integrations.normalized import Alert, Parsed
from ingest.queries import Context, Position, configured, now_utc
from tests.following import follow_to_the_end
from tests.integration.incidents.chat.slack_server import (
    ROOM,
    SECRET,
    TOKEN,
    SlackServer,
    pressed,
    send,
    slack_server,
    submitted,
    typed,
    written_in_thread,
)

pytestmark = pytest.mark.usefixtures("log_database", "workspace")
CHARLIE = Context("user:charlie")


@pytest.fixture
def slack(settings: Settings) -> Iterator[SlackServer]:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    with slack_server() as server:
        settings.SLACK_API_URL = server.url
        yield server


@pytest.fixture
def workspace(slack: SlackServer) -> ChatWorkspace:
    """With the account U1 linked to alice."""
    del slack
    get_user_model().objects.create(username="alice", is_staff=True)
    row = create({"name": "acme", "token": TOKEN, "signing_secret": SECRET, "channel": ROOM}, CHARLIE)
    link(row, "U1", "alice", Context("user:alice"))
    return row


def opened(title: str = "Disks are slow") -> IncidentRow:
    return IncidentRow.objects.get(pk=commands.open_incident(Report(title), CHARLIE).incident.id)


def shown(workspace: ChatWorkspace) -> ChatMessage:
    """The message of the newest incident, after all that happened was sent."""
    send_all()
    return ChatMessage.objects.filter(workspace=workspace).latest("pk")


def send_all(**later: float) -> None:
    now = now_utc() + timedelta(**later)
    while step(now):
        pass


# Messages
# ----------------------------------------------------------------------------------------------------------
def test_an_incident_has_one_message_that_changes_with_it(
    slack: SlackServer, workspace: ChatWorkspace
) -> None:
    row = opened()
    message = shown(workspace)
    assert "open" in slack.text()
    assert slack.buttons() == ["acknowledge", "assign", "hand_over", "open"]
    commands.acknowledge(str(row.pk), CHARLIE)
    send_all()
    assert "acknowledged by charlie" in slack.text()
    assert "acknowledge" not in slack.buttons()
    assert slack.replies == [(message.ts, "Charlie acknowledged the incident")]
    assert len(slack.messages) == 1


def test_a_title_calls_nobody_in_the_channel(slack: SlackServer) -> None:
    opened()
    commands.comment(str(opened("<!channel> & co").pk), "see <!here>", CHARLIE)
    send_all()
    assert "<!" not in slack.replies[-1][1]


def test_a_team_with_a_channel_of_its_own_has_its_incidents_there(
    slack: SlackServer, workspace: ChatWorkspace
) -> None:
    team = opened().team
    send_all()
    change(workspace, {"rooms": {team: "C0000000002"}}, CHARLIE)
    opened("Fans are slow")
    send_all()
    assert [channel for channel, _ in slack.messages] == [ROOM, "C0000000002"]


def test_an_incident_below_the_lowest_severity_has_no_message(
    slack: SlackServer, workspace: ChatWorkspace
) -> None:
    change(workspace, {"least": "critical"}, CHARLIE)
    opened()
    send_all()
    assert slack.messages == {}


def test_a_rate_limit_delays_the_message_and_loses_nothing(
    slack: SlackServer, workspace: ChatWorkspace
) -> None:
    slack.errors["chat.postMessage"] = [(429, {"Retry-After": "30"}, "ratelimited")]
    opened()
    send_all()
    assert slack.messages == {}
    workspace.refresh_from_db()
    assert workspace.retry_at is not None
    assert workspace.retry_at > now_utc() + timedelta(seconds=20)
    send_all(seconds=31)
    assert len(slack.messages) == 1
    assert broken_workspaces() == []
    workspace.refresh_from_db()
    assert lag_of(workspace) == 0


def test_a_place_far_behind_moves_on_without_an_incident(workspace: ChatWorkspace) -> None:
    ChatWorkspace.objects.update(position=str(Position.START))
    send_all()
    workspace.refresh_from_db()
    assert workspace.place > Position.START
    assert workspace.last_success is None


def test_a_wrong_token_says_so_and_what_it_missed_is_shown_with_the_right_one(
    slack: SlackServer, workspace: ChatWorkspace
) -> None:
    change(workspace, {"token": "xoxb-revoked-token"}, CHARLIE)
    opened()
    send_all()
    (problem,) = [one for one in advice() if one.startswith("chat workspace acme")]
    assert "invalid_auth: install the app again and enter its bot token" in problem
    change(workspace, {"token": TOKEN}, CHARLIE)
    send_all()
    assert len(slack.messages) == 1


def test_a_channel_without_the_bot_stops_no_other_incident(slack: SlackServer) -> None:
    slack.errors["chat.postMessage"] = [(200, {}, "not_in_channel")]
    opened("one")
    opened("two")
    send_all()
    assert len(slack.messages) == 1
    assert "two" in slack.text()


def test_a_message_that_was_deleted_in_the_chat_is_posted_again(slack: SlackServer) -> None:
    row = opened()
    send_all()
    slack.messages.clear()
    commands.acknowledge(str(row.pk), CHARLIE)
    send_all()
    assert "acknowledged" in slack.text()


def test_a_storm_is_one_message_and_the_inbox(slack: SlackServer, workspace: ChatWorkspace) -> None:
    row = opened()
    send_all()
    first = ChatMessage.objects.get()
    ChatMessage.objects.bulk_create(
        ChatMessage(
            workspace=workspace,
            incident=row.pk,
            channel=f"C{n}",
            ts="1",
            version=1,
            digest=first.digest,
            posted_at=now_utc(),
        )
        for n in range(60)
    )
    opened("one more")
    opened("and another")
    send_all()
    texts = [body["text"] for _, body in slack.calls if "More than 60 incidents" in body.get("text", "")]
    assert len(texts) == 1
    assert not any("another" in str(body.get("blocks")) for body in slack.messages.values())


# Buttons
# ----------------------------------------------------------------------------------------------------------
def test_the_button_acknowledges_in_the_name_of_the_linked_person(workspace: ChatWorkspace) -> None:
    row = opened()
    assert pressed("acknowledge", shown(workspace).ts, value=str(row.pk)).status_code == 200
    row.refresh_from_db()
    assert (row.state, row.acknowledged_by) == ("acknowledged", "alice")


def test_an_account_that_is_not_linked_is_told_how_and_does_nothing(
    slack: SlackServer, workspace: ChatWorkspace
) -> None:
    row = opened()
    pressed("acknowledge", shown(workspace).ts, user="U9", value=str(row.pk))
    row.refresh_from_db()
    assert row.state == "open"
    assert slack.private == [
        "Your chat account is not linked to an account in Dossier. Type `/dossier link`."
    ]
    (event,) = configured("chat_request", f"{workspace.name}/account not linked")
    assert event.body["after"]["outcome"] == "refused: account not linked"


def test_a_button_of_one_message_acts_on_no_other_incident(
    slack: SlackServer, workspace: ChatWorkspace
) -> None:
    other = opened("other")
    opened()
    pressed("acknowledge", shown(workspace).ts, value=str(other.pk))
    other.refresh_from_db()
    assert other.state == "open"
    assert slack.private == ["Not done: message is not that of an incident."]


def test_the_menu_assigns_to_a_linked_person(workspace: ChatWorkspace) -> None:
    row = opened()
    pressed("assign", shown(workspace).ts, selected_user="U1")
    row.refresh_from_db()
    assert row.owner == "alice"


def test_a_dialog_hands_over_with_a_reason(slack: SlackServer, workspace: ChatWorkspace) -> None:
    row = opened()
    pressed("hand_over", shown(workspace).ts, value=str(row.pk))
    (dialog,) = slack.dialogs
    missing = submitted(dialog, team="storage", reason="")
    assert b'"response_action": "errors"' in missing.content
    assert b'"reason"' in missing.content
    assert submitted(dialog, team="storage", reason="it is the disks").content == b""
    row.refresh_from_db()
    assert row.team == "storage"


def test_a_dialog_silences_what_the_firing_alerts_share(slack: SlackServer, workspace: ChatWorkspace) -> None:
    alert = Alert("d7", "firing", "d7 is slow", component="storage_cluster/s1", labels={"disk": "d7"})
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    row = IncidentRow.objects.get()
    message = shown(workspace)
    assert "silence" in slack.buttons()
    pressed("silence", message.ts, value=str(row.pk))
    assert 'disk=\\"d7\\"' in str(slack.dialogs).replace('"', '\\"')
    submitted(slack.dialogs[0], duration="2h", reason="known")
    silence = Silence.objects.get()
    assert silence.created_by == "alice"
    row.refresh_from_db()
    assert row.state == "snoozed"


# Threads
# ----------------------------------------------------------------------------------------------------------
def test_a_reply_in_the_thread_is_a_comment_and_is_not_repeated_there(
    slack: SlackServer, workspace: ChatWorkspace
) -> None:
    row = opened()
    ts = shown(workspace).ts
    assert written_in_thread(ts, "looking at d7 &amp; d8", event_id="Ev1").status_code == 200
    assert written_in_thread(ts, "looking at d7 &amp; d8", event_id="Ev1").status_code == 200
    events = [one for one in queries.incident_events(str(row.pk)) if one.type == "incident.commented"]
    assert [(one.actor, one.body["text"]) for one in events] == [("user:alice", "looking at d7 & d8")]
    commands.comment(str(row.pk), "from the console", CHARLIE)
    send_all()
    assert slack.replies == [(ts, "*charlie*: from the console")]


def test_a_mention_in_the_thread_names_the_linked_person(workspace: ChatWorkspace) -> None:
    row = opened()
    written_in_thread(shown(workspace).ts, "<@U1> see <https://wiki.example.com/d7>")
    (event,) = [one for one in queries.incident_events(str(row.pk)) if one.type == "incident.commented"]
    assert event.body["text"] == "@alice see https://wiki.example.com/d7"


def test_messages_of_programs_and_edits_are_no_comments(workspace: ChatWorkspace) -> None:
    row = opened()
    ts = shown(workspace).ts
    written_in_thread(ts, "a robot", bot_id="B1")
    written_in_thread(ts, "edited", subtype="message_changed")
    written_in_thread("1.0", "another thread")
    assert not [one for one in queries.incident_events(str(row.pk)) if one.type == "incident.commented"]


# Typed commands
# ----------------------------------------------------------------------------------------------------------
def test_typed_commands_list_and_act(workspace: ChatWorkspace) -> None:
    number = opened().number
    assert "Disks are slow" in typed("list")
    assert "acknowledged." in typed(f"ack {number}")
    assert "acknowledged" in typed(f"show #{number}")
    assert typed(f"ack {number}").startswith("Not done:")
    assert typed("who") == "No on-call schedules."
    assert "handed over to storage" in typed(f"handover {number} storage it is the disks")
    assert "/dossier ack 12" in typed("")
    assert workspace.accounts.count() == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("frobnicate", "`/dossier help` lists the commands"),
        ("ack", "number is missing, such as `/dossier ack 12`"),
        ("ack 999999", "999999"),
        ("silence 1 soon", "Not done"),
        ("who nightly", "There is no schedule nightly"),
    ],
)
def test_a_wrong_command_says_what_would_be_right(text: str, why: str) -> None:
    assert why in typed(text)


def test_the_rights_are_those_of_the_person() -> None:
    user = get_user_model().objects.get(username="alice")
    user.is_active = False
    user.save()
    assert "not linked" in typed("list")


def test_unlink_ends_it(workspace: ChatWorkspace) -> None:
    typed("unlink")
    assert "not linked" in typed("list")
    assert workspace.accounts.count() == 0


# Requests that are not Slack's
# ----------------------------------------------------------------------------------------------------------
FORM = "application/x-www-form-urlencoded"
BODY = b"command=%2Fdossier&text=list&user_id=U1"


@pytest.mark.parametrize(
    ("options", "status", "reason"),
    [
        ({"secret": "f" * 32}, 401, "forged"),
        ({"age": 400.0}, 401, "expired"),
        ({"x-slack-signature": ""}, 401, "unsigned"),
    ],
)
def test_a_request_that_slack_did_not_sign_is_refused_and_on_the_audit(
    workspace: ChatWorkspace, options: dict[str, str], status: int, reason: str
) -> None:
    answer = send(BODY, FORM, **options)  # type: ignore[arg-type]
    assert answer.status_code == status
    send(BODY, FORM, **options)  # type: ignore[arg-type]
    events = configured("chat_request", f"{workspace.name}/{reason}")
    assert [one.body["after"]["outcome"] for one in events] == [f"refused: {reason}"]


def test_a_request_is_carried_out_once(workspace: ChatWorkspace) -> None:
    now = time.time()  # one for both: the signature is over the second
    assert send(BODY, FORM, now=now).status_code == 200
    refused = send(BODY, FORM, now=now)
    assert refused.status_code == 409
    assert b"already received" in refused.content
    (event,) = configured("chat_request", f"{workspace.name}/repeated")
    assert event.body["after"]["outcome"] == "refused: repeated"


@pytest.mark.parametrize("body", [b"", b"payload=nonsense", b"payload={}", b"text=a"])
def test_nonsense_is_a_clear_error(body: bytes) -> None:
    answer = send(body, FORM)
    assert answer.status_code == 400
    assert b"is not a request of Slack" in answer.content


def test_a_body_that_is_not_utf_8_is_a_clear_error() -> None:
    headers = {"x-slack-request-timestamp": str(int(time.time())), "x-slack-signature": "v0=00"}
    answer = Client().post("/chat/slack/acme", b"\xff\xfe", content_type=FORM, headers=headers)
    assert answer.status_code == 400
    assert b"not UTF-8" in answer.content


def test_the_address_is_verified_with_the_challenge() -> None:
    answer = send(b'{"type": "url_verification", "challenge": "abc"}', "application/json")
    assert answer.json() == {"challenge": "abc"}  # type: ignore[attr-defined]


def test_a_workspace_that_is_not_there_or_off_answers_404(workspace: ChatWorkspace) -> None:
    assert send(BODY, FORM, name="other").status_code == 404
    change(workspace, {"active": False}, CHARLIE)
    assert send(BODY, FORM).status_code == 404
