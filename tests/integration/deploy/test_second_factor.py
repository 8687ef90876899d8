"""Signing in: with a second factor, with recovery codes, and not too often in vain."""

from __future__ import annotations

import hmac
import re
import struct
import time
from base64 import b32decode
from collections.abc import Iterator
from hashlib import sha1
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client

from ingest.queries import configured

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def nobody_tried_yet(db: None) -> Iterator[None]:  # noqa: ARG001  # what is counted stands in it
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def alice() -> Client:
    get_user_model().objects.create_user("alice", password=PASSWORD)
    client = Client()
    sign_in(client)
    return client


def sign_in(client: Client, password: str = PASSWORD) -> str:
    answer = client.post("/accounts/login/", {"login": "alice", "password": password}, follow=True)
    return str(answer.request["PATH_INFO"])


def code(secret: str, at: float | None = None) -> str:
    """RFC 6238, written here once more: six digits of the half minute, which does not end before they are used."""
    if at is None and (left := 30 - time.time() % 30) < 2:
        time.sleep(left)
    counter = struct.pack(">Q", int((time.time() if at is None else at) // 30))
    digest = hmac.new(b32decode(secret + "=" * (-len(secret) % 8)), counter, sha1).digest()
    start = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[start : start + 4])[0] & 0x7FFFFFFF) % 10**6:06}"


def switch_on(client: Client) -> str:
    """The secret of the app, and the factor on."""
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    page = client.get("/accounts/2fa/totp/activate/").content.decode()
    (secret,) = re.findall(r'id="totp-secret">(\w+)<', page)
    answer = client.post("/accounts/2fa/totp/activate/", {"code": code(secret)})
    assert answer.status_code == 302, answer.content.decode()
    return str(secret)


def test_the_code_of_the_test_is_that_of_the_standard() -> None:
    assert code("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", 59) == "287082"


def test_whoever_finds_a_console_open_cannot_change_the_factor(alice: Client) -> None:
    answer = alice.get("/accounts/2fa/totp/activate/")
    assert answer["Location"].startswith("/accounts/reauthenticate/")
    page = alice.get(answer["Location"])
    assert "Enter your password." in page.content.decode()


def test_with_the_factor_on_a_password_alone_lets_nobody_in(alice: Client) -> None:
    switch_on(alice)
    other = Client()
    assert sign_in(other) == "/accounts/2fa/authenticate/"
    assert other.get("/").status_code == 302


def test_the_code_of_now_lets_in_and_the_same_again_does_not(alice: Client) -> None:
    secret = switch_on(alice)
    cache.clear()  # the code that switched it on is spent, as any
    first, second = Client(), Client()
    for client in (first, second):
        sign_in(client)
    now = code(secret)
    assert first.post("/accounts/2fa/authenticate/", {"code": now}).status_code == 302
    assert first.get("/").status_code == 200
    assert second.post("/accounts/2fa/authenticate/", {"code": now}).status_code == 200
    assert second.get("/").status_code == 302


def test_a_wrong_code_does_not_let_in(alice: Client) -> None:
    secret = switch_on(alice)
    other = Client()
    sign_in(other)
    wrong = f"{(int(code(secret)) + 1) % 10**6:06}"
    answer = other.post("/accounts/2fa/authenticate/", {"code": wrong})
    assert "Incorrect code" in answer.content.decode()
    assert other.get("/").status_code == 302


def test_each_recovery_code_lets_in_once(alice: Client) -> None:
    switch_on(alice)
    page = alice.get("/accounts/2fa/recovery-codes/").content.decode()
    codes = re.findall(r"^\s*(?:<pre id=\"codes\">)?(\d{8})$", page, re.MULTILINE)
    assert len(codes) == 10
    for expected in (302, 200):
        other = Client()
        sign_in(other)
        assert other.post("/accounts/2fa/authenticate/", {"code": codes[0]}).status_code == expected


def test_the_secret_is_not_in_the_database(alice: Client) -> None:
    secret = switch_on(alice)
    kept = [str(row.data) for row in Authenticator.objects.all()]
    assert len(kept) == 2
    assert not [one for one in kept if secret in one]


def test_it_can_be_switched_off(alice: Client) -> None:
    switch_on(alice)
    alice.post("/accounts/2fa/totp/deactivate/")
    other = Client()
    sign_in(other)
    assert other.get("/").status_code == 200


@pytest.mark.parametrize(
    "path", ["", "totp/activate/", "totp/deactivate/", "recovery-codes/", "recovery-codes/generate/"]
)
def test_the_pages_hold_to_the_content_security_policy(alice: Client, path: str) -> None:
    if path == "totp/activate/":
        alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    else:
        switch_on(alice)
    answer = alice.get(f"/accounts/2fa/{path}")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "script-src 'self';" in answer["Content-Security-Policy"]
    assert not re.findall(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", page)


def test_after_some_wrong_passwords_the_right_one_has_to_wait(alice: Client) -> None:
    del alice
    guesser = Client()
    for _ in range(5):
        sign_in(guesser, "wrong")
    answer = guesser.post("/accounts/login/", {"login": "alice", "password": PASSWORD})
    assert "Too many failed login attempts" in answer.content.decode()
    assert guesser.get("/").status_code == 302


@pytest.mark.parametrize("path", ["password/reset/", "password/set/", "email/", "confirm-email/"])
def test_an_address_that_nobody_verified_opens_no_account(path: str) -> None:
    get_user_model().objects.create_user("bob", "bob@example.com")
    bob = Client()
    bob.force_login(get_user_model().objects.get())
    given = {"email": "bob@example.com", "password1": PASSWORD, "password2": PASSWORD, "action_add": ""}
    assert {who.post(f"/accounts/{path}", given).status_code for who in (bob, Client())} == {403}
    assert (get_user_model().objects.get().has_usable_password(), EmailAddress.objects.count()) == (False, 0)


def test_what_people_do_to_their_own_accounts_is_recorded(
    alice: Client, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        switch_on(alice)
    alice.post("/accounts/2fa/totp/deactivate/")
    new = "another horse, another battery"
    alice.post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    told = [event.body["after"] for event in configured("user", "alice")]
    assert [one.get("second_factor") for one in told if "second_factor" in one] == [
        "totp added",
        "recovery_codes added",
        "totp removed",
        "recovery_codes removed",
    ]
    assert (told[-1]["password"], new in str(told)) == ("changed", False)
