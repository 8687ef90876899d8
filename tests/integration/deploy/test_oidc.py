"""Signing in through an identity provider that really speaks OpenID Connect, and what it says of teams."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from pytest_django import Settings

from deploy.settings import oidc_apps
from incidents.teams.models import Membership, Team
from ingest.queries import configured
from tests.integration.deploy.oidc_provider import CLIENT, SECRET, Provider, oidc_provider

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def provider(settings: Settings) -> Iterator[Provider]:
    with oidc_provider() as one:
        one.claims = {"sub": "1", "preferred_username": "bob", "email": "bob@example.com", "groups": []}
        settings.SOCIALACCOUNT_PROVIDERS = oidc_apps(one.address, CLIENT, SECRET, "Example")
        settings.OIDC_SIGNUP = True
        yield one


def sign_in(client: Client) -> Any:
    """Way of a browser: to the provider, and back with its code."""
    there = client.get("/accounts/oidc/oidc/login/?process=login")
    assert there.status_code == 302
    return client.get(_back(there["Location"]))


def _back(location: str) -> str:
    parts = urlsplit(location)
    assert parts.port is not None
    connection = http.client.HTTPConnection("127.0.0.1", parts.port)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    back = urlsplit(answer.headers["Location"])
    return f"{back.path}?{back.query}"


def test_somebody_whom_the_provider_knows_is_let_in(provider: Provider) -> None:
    del provider
    client = Client()
    sign_in(client)
    assert client.get("/").status_code == 200
    bob = User.objects.get()
    assert (bob.username, bob.is_staff, bob.has_usable_password()) == ("bob", False, False)
    assert configured("user", "bob")[0].actor == "system:oidc"


def test_the_second_time_it_is_the_same_person(provider: Provider) -> None:
    for name in ("bob", "robert"):
        provider.claims["preferred_username"] = name
        sign_in(Client())
    assert User.objects.get().username == "bob"


def test_the_sign_in_page_leads_there(provider: Provider) -> None:
    del provider
    page = Client().get("/accounts/login/").content.decode()
    assert "Sign in with Example" in page
    assert "/accounts/oidc/oidc/login/" in page


def test_where_accounts_are_made_by_hand_strangers_are_not_let_in(
    provider: Provider, settings: Settings
) -> None:
    del provider
    settings.OIDC_SIGNUP = False
    client = Client()
    sign_in(client)
    assert not User.objects.exists()
    assert client.get("/").status_code == 302


def test_an_account_without_a_password_is_not_taken_over_by_its_name(provider: Provider) -> None:
    del provider
    made = User.objects.create_user("bob", is_staff=True)
    client = Client()
    sign_in(client)
    signed_in = client.get("/").wsgi_request.user
    assert signed_in.pk != made.pk
    assert not signed_in.is_staff


def test_an_account_that_an_administrator_linked_is_theirs(provider: Provider, settings: Settings) -> None:
    settings.OIDC_SIGNUP = False
    made = User.objects.create_user("robert")
    call_command("link_identity", "robert", str(provider.claims["sub"]), stdout=StringIO())
    client = Client()
    sign_in(client)
    assert client.get("/").wsgi_request.user.pk == made.pk
    User.objects.create_user("charlie")
    with pytest.raises(CommandError, match="is robert already"):
        call_command("link_identity", "charlie", str(provider.claims["sub"]))


def test_an_account_with_a_password_is_not_taken_over(provider: Provider) -> None:
    provider.claims["preferred_username"] = "alice"
    alice = get_user_model().objects.create_user("alice", password="correct horse", is_staff=True)
    client = Client()
    sign_in(client)
    signed_in = client.get("/").wsgi_request.user
    assert signed_in.pk != alice.pk
    assert not signed_in.is_staff


def test_an_identity_is_added_to_an_account_by_its_password_and_by_no_link(provider: Provider) -> None:
    provider.claims["preferred_username"] = "mallory"
    alice = get_user_model().objects.create_user("alice", password="correct horse", is_staff=True)
    client = Client()
    client.force_login(alice)
    there = client.get("/accounts/oidc/oidc/login/?process=connect")
    asked = client.get(_back(there["Location"]))
    assert asked["Location"].startswith("/accounts/reauthenticate/")
    assert not alice.socialaccount_set.exists()  # type: ignore[attr-defined]


def test_somebody_who_was_switched_off_stays_out(provider: Provider) -> None:
    del provider
    sign_in(Client())
    User.objects.update(is_active=False)
    client = Client()
    sign_in(client)
    assert client.get("/").status_code == 302


def test_groups_become_places_in_teams_and_go_again(provider: Provider, settings: Settings) -> None:
    settings.OIDC_GROUP_ROLES = [
        "dc-storage=storage:responder",
        "dc-leads=storage:manager",
        "dc-net=network:viewer",
    ]
    provider.claims["groups"] = ["dc-storage", "dc-leads", "other"]
    sign_in(Client())
    assert roles() == [("storage", "manager")]
    provider.claims["groups"] = ["dc-net"]
    sign_in(Client())
    assert roles() == [("network", "viewer")]
    assert configured("member", "storage/bob")[-1].body["after"] is None


def roles() -> list[tuple[str, str]]:
    return [(row.team.slug, row.role) for row in Membership.objects.select_related("team")]


@pytest.mark.usefixtures("provider")
def test_a_place_in_a_team_that_no_rule_names_stays(settings: Settings) -> None:
    settings.OIDC_GROUP_ROLES = ["dc-net=network:viewer"]
    sign_in(Client())
    bob = User.objects.get()
    Membership.objects.create(team=Team.objects.get(slug="storage"), user=bob, role="responder")
    sign_in(Client())
    assert roles() == [("storage", "responder")]


def test_a_provider_that_says_nothing_of_groups_changes_nothing(
    provider: Provider, settings: Settings
) -> None:
    settings.OIDC_GROUP_ROLES = ["dc-storage=storage:responder"]
    provider.claims["groups"] = ["dc-storage"]
    sign_in(Client())
    del provider.claims["groups"]
    sign_in(Client())
    assert roles() == [("storage", "responder")]


def test_a_group_may_make_somebody_staff(provider: Provider, settings: Settings) -> None:
    settings.OIDC_GROUP_ROLES = ["dc-admins=staff"]
    get_user_model().objects.create_user("alice", password="x", is_staff=True)
    provider.claims["groups"] = ["dc-admins"]
    sign_in(Client())
    assert User.objects.get(username="bob").is_staff
    provider.claims["groups"] = []
    sign_in(Client())
    assert not User.objects.get(username="bob").is_staff


@pytest.mark.parametrize("what", ["state=wrong", "code=wrong"])
def test_an_answer_that_is_not_the_providers_lets_nobody_in(provider: Provider, what: str) -> None:
    del provider
    client = Client()
    there = client.get("/accounts/oidc/oidc/login/?process=login")["Location"]
    back = _back(there)
    name, _, value = what.partition("=")
    path, _, query = back.partition("?")
    parts = [f"{name}={value}" if part.startswith(f"{name}=") else part for part in query.split("&")]
    answer = client.get(f"{path}?{'&'.join(parts)}")
    assert "Not signed in" in answer.content.decode()
    assert not User.objects.exists()


def test_a_token_for_somebody_else_is_not_taken(provider: Provider, settings: Settings) -> None:
    settings.SOCIALACCOUNT_PROVIDERS = oidc_apps(provider.address, CLIENT, "another secret", "Example")
    client = Client()
    sign_in(client)
    assert client.get("/").status_code == 302
