"""Settings with hundreds of lines: pages of fifty, a search over what each says, and links that lead to one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.test import Client

from incidents.escalation.models import EscalationPolicy
from incidents.notifications.models import ContactMethod
from incidents.security import encryption
from incidents.suppression.models import InhibitionRule, MaintenanceWindow
from incidents.teams.models import Route, Service, Silence, Team
from incidents.webhooks.models import Webhook
from ingest.api.models import IntegrationKey
from ingest.queries import Position

pytestmark = pytest.mark.django_db
MANY = 120
PAGES = (
    "/teams",
    "/settings/services",
    "/settings/routes",
    "/settings/policies",
    "/integrations",
    "/silences",
    "/settings/maintenance",
    "/settings/inhibitions",
    "/settings/channels",
    "/settings/webhooks",
)


@pytest.fixture
def alice() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def fill(path: str) -> None:
    team = Team.objects.create(slug="owners", name="Owners")
    names = [f"crew-{n:03}" for n in range(MANY)]
    steps = [{"after": 0, "actions": [{"team": "owners"}]}]
    now = datetime.now(UTC)
    fits = [{"name": "alertname", "value": "Down", "isRegex": False, "isEqual": True}]
    rows: dict[str, Callable[[int, str], Model]] = {
        "/teams": lambda _, name: Team(slug=name, name=name),
        "/settings/services": lambda _, name: Service(slug=name, name=name, patterns=["a/*"]),
        "/settings/routes": lambda n, name: Route(name=name, order=n, team=team, pattern=f"x/{n}"),
        "/settings/policies": lambda _, name: EscalationPolicy(slug=name, name=name, steps=steps),
        "/integrations": lambda n, name: IntegrationKey(name=name, digest=n.to_bytes(32), scopes=["alerts"]),
        "/silences": lambda _, name: Silence(
            matchers=[{"name": "alertname", "value": name, "isRegex": False, "isEqual": True}],
            starts_at=now, ends_at=now + timedelta(hours=1), created_by="alice", comment="planned",
        ),
        "/settings/maintenance": lambda _, name: MaintenanceWindow(
            slug=name, components=["tor/*"], starts_at=now, ends_at=now + timedelta(hours=1), reason="planned"
        ),
        "/settings/inhibitions": lambda _, name: InhibitionRule(
            slug=name, source_matchers=fits, target_matchers=fits
        ),
        "/settings/channels": lambda _, name: ContactMethod(
            name=name, kind="webhook", address="https://example.com/room"
        ),
        "/settings/webhooks": lambda _, name: Webhook(
            name=name, url="https://example.com/hook", position=str(Position.START), secret=encryption.encrypt("s" * 32)
        ),
    }  # fmt: skip
    made = [rows[path](n, name) for n, name in enumerate(names)]
    type(made[0])._default_manager.bulk_create(made)


@pytest.mark.parametrize("path", PAGES)
def test_a_long_list_has_pages_and_is_searched(path: str, alice: Client) -> None:
    fill(path)
    first = alice.get(path).content.decode().partition("<aside")[0]
    assert sum(f"crew-{n:03}" in first for n in range(MANY)) <= 50
    assert 'rel="next"' in first
    found = alice.get(path, {"q": "CREW-117"}).content.decode()
    assert [n for n in range(MANY) if f"crew-{n:03}" in found.partition("<aside")[0]] == [117]
    assert alice.get(path, {"cursor": "99999"}).status_code == 200
    assert alice.get(path, {"cursor": "-1"}).status_code == 400
    assert "None of the" in alice.get(path, {"q": "nothing like that"}).content.decode()


def test_a_link_to_one_line_opens_the_page_on_which_it_stands(alice: Client) -> None:
    fill("/settings/routes")
    assert 'id="rule-crew-077"' in alice.get("/settings/routes", {"show": "crew-077"}).content.decode()


def test_pages_shown_after_a_form_of_one_line_turn_at_the_list(alice: Client) -> None:
    fill("/integrations")
    one = IntegrationKey.objects.order_by("name").first()
    assert one is not None
    body = alice.post(f"/integration/{one.pk}/rotate", {"overlap": "1 d"}).content.decode()
    assert 'href="/integrations?cursor=50"' in body
    assert 'method="get" action="/integrations"' in body


def test_after_an_action_the_page_of_the_line_is_shown(alice: Client) -> None:
    fill("/settings/webhooks")
    shown = alice.post("/settings/webhooks/crew-117/switch", follow=True).content.decode()
    assert "Enable crew-117" in shown.partition("<aside")[0]
