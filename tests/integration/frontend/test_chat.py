"""The page of chat workspaces, and the page that links a chat account to a person."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django import Settings

from incidents.chat import commands
from incidents.chat.models import ChatAccount, ChatWorkspace
from tests.integration.incidents.chat.slack_server import ROOM, SECRET, TOKEN, slack_server, typed

pytestmark = pytest.mark.django_db
PAGE = "/settings/chat"
FORM = {"name": "acme", "token": TOKEN, "signing_secret": SECRET, "channel": ROOM, "least": "error"}


@pytest.fixture
def alice(client: Client) -> Client:
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def test_an_empty_page_says_what_to_do_and_has_the_manifest(alice: Client) -> None:
    page = unescape(alice.get(PAGE).content.decode())
    assert "No workspaces." in page
    assert '"command": "/dossier"' in page


def test_a_workspace_is_made_and_its_secrets_are_not_shown(alice: Client) -> None:
    assert alice.post(PAGE, {**FORM, "room-storage": "C0000000002"}).status_code == 302
    row = ChatWorkspace.objects.get()
    assert (row.token, row.channel, row.rooms, row.least) == (
        TOKEN,
        ROOM,
        {"storage": "C0000000002"},
        "error",
    )
    page = alice.get(PAGE).content.decode()
    assert TOKEN not in page
    assert SECRET not in page


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("token", "secret", "must be a bot token, which begins with xoxb-"),
        ("channel", "#incidents", "must be the id of a channel, such as C0123456789"),
        ("signing_secret", "nonsense", "must be the signing secret of the app"),
        ("room-storage", "#storage", "storage: must be the id of a channel"),
    ],
)
def test_a_wrong_field_says_what_would_be_right(alice: Client, field: str, value: str, why: str) -> None:
    response = alice.post(PAGE, {**FORM, field: value})
    assert response.status_code == 400
    assert why in unescape(response.content.decode())
    assert not ChatWorkspace.objects.exists()


def test_a_change_without_secrets_leaves_them(alice: Client) -> None:
    alice.post(PAGE, FORM)
    alice.post(PAGE, {"existing": "1", "name": "acme", "channel": "C0000000009", "least": "info"})
    row = ChatWorkspace.objects.get()
    assert (row.channel, row.token, row.signing_secret) == ("C0000000009", TOKEN, SECRET)


def test_a_test_message_says_why_it_was_not_sent(alice: Client, settings: Settings) -> None:
    alice.post(PAGE, FORM)
    with slack_server() as server:
        settings.SLACK_API_URL = server.url
        page = alice.post(f"{PAGE}/acme/test", follow=True).content.decode()
    assert "Not sent: 127.0.0.1 is a loopback address" in unescape(page)
    assert server.calls == []


def test_people_who_are_not_staff_see_no_workspaces(client: Client) -> None:
    client.force_login(get_user_model().objects.create(username="bob"))
    assert client.get(PAGE).status_code == 403
    assert client.post(f"{PAGE}/acme/remove").status_code == 403


def test_the_typed_link_makes_the_account_act_for_who_is_signed_in(alice: Client) -> None:
    alice.post(PAGE, FORM)
    (path,) = re.findall(r"https?://[^/]+(/chat/link/\S+)", typed("link", user="U7"))
    page = alice.get(path).content.decode()
    assert "alice.in.chat" in page
    assert not ChatAccount.objects.exists()
    assert "now acts as" in alice.post(path).content.decode()
    assert ChatAccount.objects.get().user.get_username() == "alice"
    assert typed("list", user="U7") == "No unresolved incidents."
    alice.post(f"{PAGE}/acme/unlink", {"chat_user": "U7"})
    assert "not linked" in typed("list", user="U7")


def test_a_link_that_was_changed_links_nothing(alice: Client) -> None:
    alice.post(PAGE, FORM)
    url = commands.link_url(ChatWorkspace.objects.get(), "U7", "alice")
    response = alice.post(f"/{url.split('/', 3)[3][:-3]}abc")
    assert response.status_code == 410
    assert "type `/dossier link` again" in unescape(response.content.decode())
    assert not ChatAccount.objects.exists()


def test_a_stranger_signs_in_before_linking(alice: Client) -> None:
    alice.post(PAGE, FORM)
    url = commands.link_url(ChatWorkspace.objects.get(), "U7", "alice")
    response = Client().get("/" + url.split("/", 3)[3])
    assert response.status_code == 302
    assert "/login" in response["Location"]


# Mattermost
# ----------------------------------------------------------------------------------------------------------
MATTERMOST = {
    **FORM,
    "platform": "mattermost",
    "url": "https://chat.example.com/",
    "token": "b" * 26,
    "signing_secret": "c" * 26,
    "channel": "r" * 26,
}


def test_a_mattermost_server_is_made_with_its_address(alice: Client) -> None:
    assert alice.post(PAGE, MATTERMOST).status_code == 302
    row = ChatWorkspace.objects.get()
    assert (row.platform, row.url, row.token) == ("mattermost", "https://chat.example.com", "b" * 26)
    page = alice.get(PAGE).content.decode()
    assert "/chat/mattermost/acme" in page
    assert "b" * 26 not in page


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("url", "", "must be the address of the Mattermost server"),
        ("url", "http://127.0.0.1:8065", "is a loopback address"),
        ("token", TOKEN, "must be the access token of a bot"),
        ("signing_secret", SECRET, "must be the token of the slash command"),
        ("channel", ROOM, "must be the id of a channel: 26 letters and digits"),
        ("platform", "slack", "must be a bot token, which begins with xoxb-"),
    ],
)
def test_a_wrong_field_of_mattermost_says_what_would_be_right(
    alice: Client, field: str, value: str, why: str
) -> None:
    response = alice.post(PAGE, {**MATTERMOST, field: value})
    assert response.status_code == 400
    assert why in unescape(response.content.decode())
    assert not ChatWorkspace.objects.exists()


def test_a_refused_change_names_the_field_and_leaves_what_was_typed(alice: Client) -> None:
    alice.post(PAGE, MATTERMOST)
    changed = {"existing": "1", "name": "acme", "channel": "s" * 26, "url": "ftp://x", "least": "error"}
    response = alice.post(PAGE, changed)
    assert response.status_code == 400
    page = unescape(response.content.decode())
    assert "Server address: the URL begins with 'ftp'; it must begin with http:// or https://" in page
    form = page.partition('<form class="panel" method="post" action="/settings/chat">')[2].partition(
        "</form>"
    )[0]
    assert 'value="ftp://x"' in form
    assert f'value="{"s" * 26}"' in form
    assert '<option value="error" selected>' in form


def test_a_change_of_a_mattermost_server_keeps_its_platform_and_secrets(alice: Client) -> None:
    alice.post(PAGE, MATTERMOST)
    changed = {"existing": "1", "name": "acme", "channel": "s" * 26, "url": "https://new.example.com"}
    assert alice.post(PAGE, {**changed, "least": "info"}).status_code == 302
    row = ChatWorkspace.objects.get()
    assert (row.platform, row.url, row.channel, row.token) == (
        "mattermost",
        "https://new.example.com",
        "s" * 26,
        "b" * 26,
    )
