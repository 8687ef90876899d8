"""The first steps with an empty Dossier, and the page of an integration: what came, what was refused."""

from __future__ import annotations

import json
import re
from datetime import datetime
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from incidents.domain.escalation.policy_text import read_steps
from incidents.escalation.models import EscalationPolicy
from incidents.incident.models import IncidentRow
from incidents.oncall.models import OnCallSchedule
from incidents.teams.models import Membership, Team
from ingest.api import keys, rejections
from ingest.api.models import IntegrationKey, Rejection

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """No memory of the keys and refusals of another test."""
    keys._seen.clear()
    rejections._noted.clear()


def signed_in(name: str = "alice", *, staff: bool = True, **more: str) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, is_staff=staff, **more))
    return client


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def ticks(client: Client) -> list[str]:
    """The steps that are done, as the page shows them."""
    shown = text(client, "/welcome")
    return re.findall(r'class="card done"><details[^>]* id="step-(\w+)"', shown)


def post_alert(address: str, body: Any) -> int:
    return Client().post(address, json.dumps(body), content_type="application/json").status_code


def post_text(address: str) -> int:
    """Status of a body that is neither JSON nor a form."""
    return Client().post(address, "disk is slow", content_type="text/plain").status_code


# The first steps
# ----------------------------------------------------------------------------------------------------------
def test_an_empty_inbox_leads_to_the_first_steps_none_of_which_is_done() -> None:
    alice = signed_in()
    assert 'href="/welcome"' in text(alice, "/")
    assert ticks(alice) == []


def test_a_team_is_made_with_who_asks_as_its_admin() -> None:
    alice = signed_in()
    alice.post("/welcome/team", {"name": "GPU fleet", "team": ""})
    row = Membership.objects.get()
    assert (row.team.slug, row.user.username, row.role) == ("gpu-fleet", "alice", "admin")
    assert ticks(alice) == ["team"]


def test_a_team_that_is_there_is_taken() -> None:
    signed_in().post("/welcome/team", {"name": "", "team": "storage"})
    assert Membership.objects.get().team.slug == "storage"


@pytest.mark.parametrize(
    "body", [{}, {"name": "\0"}, {"team": "\0"}, {"team": "mars"}, {"name": "x" * 121}], ids=str
)
def test_a_team_that_cannot_be_is_said(body: dict[str, str]) -> None:
    before = Team.objects.count()
    answer = signed_in().post("/welcome/team", body)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert (Team.objects.count(), Membership.objects.count()) == (before, 0)


def test_a_sender_gets_a_key_that_works_and_the_page_sees_what_it_sent() -> None:
    alice = signed_in()
    page = alice.post("/welcome/sender", {"sender": "generic"}).content.decode()
    [address] = set(re.findall(r"/integrations/generic/dsr_[\w-]+", page))
    row = IntegrationKey.objects.get()
    waiting = text(alice, f"/welcome/arrived/{row.pk}")
    assert "Waiting for the first alert" in waiting
    assert "hx-trigger" in waiting
    assert ticks(alice) == []
    assert post_alert(address, {"title": "Disk d7 is slow", "key": "d7"}) == 200
    came = text(alice, f"/welcome/arrived/{row.pk}")
    assert "Disk d7 is slow" in came
    assert "hx-trigger" not in came
    assert ticks(alice) == ["sender"]


def test_what_was_made_once_is_made_under_another_name_the_next_time() -> None:
    alice = signed_in()
    for _ in range(2):
        alice.post("/welcome/sender", {"sender": "prometheus"})
    assert {row.name for row in IntegrationKey.objects.all()} == {"prometheus", "prometheus-2"}


def test_a_sample_is_judged_shown_and_leaves_nothing_behind() -> None:
    alice = signed_in("alice", staff=False)
    page = alice.post("/welcome/sample", {"seed": "3"}).content.decode()
    assert "The analyzer named the injected failure" in page
    assert not IncidentRow.objects.exists()
    assert ticks(alice) == ["sample"]


@pytest.mark.parametrize("seed", ["-1", "\0", "9" * 400, "x", ""])
def test_any_seed_is_a_sample(seed: str) -> None:
    assert signed_in().post("/welcome/sample", {"seed": seed}).status_code == 200


def test_one_button_makes_the_schedule_and_the_policy_that_call_who_asks() -> None:
    alice = signed_in(email="alice@example.com")
    alice.post("/welcome/team", {"team": "storage"})
    alice.cookies["zone"] = "Pacific/Kiritimati"
    alice.post("/welcome/call")
    row, today = OnCallSchedule.objects.get(), datetime.now(ZoneInfo("Pacific/Kiritimati")).date()
    assert row.layers[0]["people"] == ["alice"]
    assert (row.time_zone, row.layers[0]["start"][:10]) == ("Pacific/Kiritimati", str(today))
    policy = EscalationPolicy.objects.get()
    assert policy.team is not None
    assert (policy.team.slug, policy.steps[0]["actions"]) == ("storage", [{"schedule": "storage"}])
    assert ticks(alice) == ["team"]  # her only method is mail, and no mail server is set up
    with override_settings(EMAIL_IS_SET_UP=True):
        assert ticks(alice) == ["team", "reach", "call"]


def test_a_team_that_has_a_policy_already_keeps_it() -> None:
    alice = signed_in()
    alice.post("/welcome/team", {"team": "storage"})
    steps = [{"after": 0, "actions": [{"person": "alice"}]}]
    EscalationPolicy.objects.create(
        slug="own", name="Own", team=Team.objects.get(slug="storage"), steps=steps
    )
    assert "already follows the policy own" in alice.post("/welcome/call").content.decode()
    assert EscalationPolicy.objects.count() == 1
    assert not OnCallSchedule.objects.exists()


def test_who_cannot_be_reached_is_not_said_to_be_called() -> None:
    alice = signed_in()
    alice.post("/welcome/team", {"team": "storage"})
    alice.post("/welcome/call")
    assert ticks(alice) == ["team"]
    assert "You have no working contact method: no contact method" in text(alice, "/welcome?step=reach")


def test_a_step_is_left_for_later_and_the_next_one_unfolds() -> None:
    alice = signed_in()
    alice.post("/welcome/skip", {"step": "team"})
    shown = text(alice, "/welcome")
    assert "Skipped" in shown
    assert re.findall(r'<details open id="step-(\w+)"', shown) == ["sender"]


@pytest.mark.parametrize("path", ["team", "sender"])
def test_who_is_not_staff_makes_neither_team_nor_key(path: str) -> None:
    bob = signed_in("bob", staff=False)
    assert bob.post(f"/welcome/{path}", {"name": "x", "sender": "generic"}).status_code == 403
    assert f'action="/welcome/{path}"' not in text(bob, "/welcome")


# Integrations
# ----------------------------------------------------------------------------------------------------------
def made(name: str = "scripts") -> tuple[str, int]:
    secret = keys.create(name, ["alerts"], endpoints=["generic"])
    return f"/integrations/generic/{secret}", IntegrationKey.objects.get(name=name).pk


def test_the_page_of_an_integration_lists_what_it_sent_with_its_receipt() -> None:
    alice, (address, pk) = signed_in(), made()
    post_alert(address, {"title": "Fan <2> stands", "key": "f2"})
    shown = text(alice, f"/integration/{pk}")
    assert "Fan &lt;2&gt; stands" in shown
    assert 'href="/receipts/' in shown


def test_a_sender_that_is_refused_is_seen_with_the_reason() -> None:
    alice, (address, pk) = signed_in(), made()
    assert post_text(address) == 400
    row = Rejection.objects.get()
    assert (row.integration, row.endpoint, row.status, row.times) == ("scripts", "generic", 400, 1)
    for path in (f"/integration/{pk}", "/integrations", "/integration/received"):
        assert row.reason[:20] in text(alice, path).replace("&#x27;", "'").replace("&quot;", '"')


def test_a_sender_that_is_refused_again_and_again_is_one_row() -> None:
    address, _ = made()
    for _ in range(5):
        post_text(address)
    rejections._noted.clear()
    post_text(address)
    assert Rejection.objects.count() == 1
    assert Rejection.objects.get().times == 2


def test_what_a_key_may_not_do_is_a_refusal_and_no_key_is_none() -> None:
    secret = keys.create("reader", ["alerts"], endpoints=["grafana"])
    post_alert(f"/integrations/generic/{secret}", {"title": "x", "key": "x"})
    post_alert("/integrations/generic/dsr_nobody", {"title": "x", "key": "x"})
    assert [(row.integration, row.status) for row in Rejection.objects.all()] == [("reader", 403)]


def test_telemetry_that_is_refused_is_told_by_its_kind() -> None:
    secret = keys.create("agent", ["telemetry"])
    Client(headers={"Authorization": f"Bearer {secret}"}).post(
        "/api/v1/telemetry/path_outcome", "[{}]", content_type="application/json"
    )
    assert Rejection.objects.get().endpoint == "telemetry path_outcome"


def test_a_pagerduty_client_that_is_refused_is_known_by_its_routing_key() -> None:
    secret = keys.create("pd", ["alerts"], endpoints=["pagerduty"])
    assert post_alert("/v2/enqueue", {"routing_key": secret, "event_action": "dance"}) == 400
    assert post_alert("/v2/enqueue", {"routing_key": ["x"]}) == 400
    assert [row.integration for row in Rejection.objects.all()] == ["pd"]


def test_a_revoked_integration_has_no_page() -> None:
    alice, (_, pk) = signed_in(), made()
    keys.revoke("scripts")
    assert alice.get(f"/integration/{pk}").status_code == 404


# Docs
# ----------------------------------------------------------------------------------------------------------
def test_the_example_of_a_policy_in_the_docs_is_one_that_can_be_typed() -> None:
    shown = unescape(text(signed_in(), "/docs/operate/escalation-policies"))
    steps = read_steps(shown.partition("<pre>")[2].partition("</pre>")[0])
    assert [one["after"] for one in steps] == [0, 300, 900, 1800]


def test_the_example_of_a_search_in_the_docs_can_be_searched_for() -> None:
    alice = signed_in()
    shown = unescape(text(alice, "/docs/start/inbox"))
    search = shown.partition("<pre>")[2].partition("</pre>")[0]
    assert alice.get("/", {"q": search}).status_code == 200
