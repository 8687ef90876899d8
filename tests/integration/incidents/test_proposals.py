"""Proposals: asked for by a key, decided by a person who may, never carried out before."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from rest_framework.test import APIClient

from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.permissions import ForbiddenError
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.rebuild import rebuild
from incidents.proposals import commands as proposals
from incidents.teams.models import Membership, Silence, Team
from ingest.api import keys
from ingest.queries import Context

pytestmark = pytest.mark.usefixtures("log_database")
SENDER = Context("key:monitoring")
RUN = "run 0b9d4a7e-6f0e-4d53-8b4f-1f7c0c6f5a21"


def asker(*scopes: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {keys.create('assistant-' + scopes[-1][-4:], scopes)}")
    return client


def propose(client: APIClient, number: int, **body: Any) -> Any:
    return client.post(f"/api/v1/incidents/{number}/proposals", body, format="json")


def test_a_proposed_hand_over_waits_for_a_person_who_may() -> None:
    opened = commands.open_incident(Report("Rack 12 loses packets", component="tor/dc1-t12"), SENDER).incident
    assistant = asker("incidents:read", "incidents:propose")
    made = propose(assistant, 1, action="hand_over", team="storage", reason="latency of s7", cites=[RUN])
    assert made.status_code == 201
    assert "Dossier-Receipt" in made
    (one,) = made.data["open"]
    assert (one["text"], one["by"], one["cites"]) == ("hand over to storage", "key:assistant-pose", [RUN])
    assert queries.get("1").incident.team == "network"
    proposed_at = queries.get("1").position
    assert propose(assistant, 1, action="hand_over", team="storage", reason="again").status_code == 200

    for name, team in (("alice", "network"), ("charlie", "storage")):
        user = get_user_model().objects.create_user(name)
        Membership.objects.create(user=user, team=Team.objects.get(slug=team), role="responder")
    with pytest.raises(ForbiddenError, match="a key can only propose"):
        proposals.accept(opened.id, one["id"], Context("key:assistant"))
    alice, charlie = Client(), Client()
    alice.force_login(get_user_model().objects.get(username="alice"))
    charlie.force_login(get_user_model().objects.get(username="charlie"))
    for path in ("/", "/incidents/1"):
        assert "proposes to hand over to storage" in alice.get(path).content.decode()
        assert "accept_proposal" in alice.get(path).content.decode()
        assert "accept_proposal" not in charlie.get(path).content.decode()
    refused = charlie.post("/incidents/1/accept_proposal", {"proposal": one["id"]})
    assert refused.status_code == 403
    assert queries.get("1").incident.team == "network"

    assert alice.post("/incidents/1/accept_proposal", {"proposal": one["id"]}).status_code == 302
    after = queries.get("1").incident
    assert (after.team, after.proposals, after.handed_over and after.handed_over.by) == (
        "storage",
        (),
        "alice",
    )
    assert alice.post("/incidents/1/accept_proposal", {"proposal": one["id"]}).status_code in (403, 409)
    shown = assistant.get("/api/v1/incidents/1/proposals").data
    assert [(one["decision"], one["by"]) for one in shown["decided"]] == [("accepted", "alice")]
    assert "proposes to" not in alice.get("/").content.decode()
    assert "proposes to" in alice.get(f"/incidents/1?as_of={proposed_at}").content.decode()
    assert rebuild().differed == ()


def test_a_proposed_silence_is_made_on_acceptance_alone() -> None:
    opened = commands.open_incident(Report("Rack 12 loses packets", component="tor/dc1-t12"), SENDER).incident
    assistant, alice = asker("incidents:read", "incidents:write"), Context("user:alice")
    get_user_model().objects.create_user("alice")
    body = {"action": "silence", "matchers": 'alertname="DiskSlow"', "minutes": 120, "reason": "disk swap"}
    (first,) = propose(assistant, 1, **body).data["open"]
    assert not Silence.objects.exists()
    proposals.decline(opened.id, first["id"], "not yet", alice)
    assert not Silence.objects.exists()
    (second,) = propose(assistant, 1, **body).data["open"]
    proposals.accept(opened.id, second["id"], alice)
    silence = Silence.objects.get()
    assert (silence.created_by, silence.matchers[0]["value"]) == ("alice", "DiskSlow")
    assert "proposed by key:assistant-rite" in silence.comment
    assert [one["decision"] for one in assistant.get("/api/v1/incidents/1/proposals").data["decided"]] == [
        "declined",
        "accepted",
    ]

    propose(assistant, 1, **body)
    commands.resolve(opened.id, "none", "", alice)
    assert state_of(IncidentRow.objects.get()).proposals == ()
    assert propose(assistant, 1, **body).status_code == 409


def test_the_evidence_that_a_proposal_cites_is_linked() -> None:
    commands.open_incident(Report("Rack 12 loses packets", component="tor/dc1-t12"), SENDER)
    run, position = "0b9d4a7e-6f0e-4d53-8b4f-1f7c0c6f5a21", queries.get("1").position
    cites = [run, position, "<b>a rumour</b>"]
    client = asker("incidents:read", "incidents:propose")
    propose(client, 1, action="hand_over", team="storage", reason="latency of s7", cites=cites)
    alice = Client()
    alice.force_login(get_user_model().objects.create_user("alice", is_staff=True))
    for path in ("/", "/incidents/1"):
        page = alice.get(path).content.decode()
        assert f'<a href="/runs/{run}"><code>{run}</code></a>' in page
        assert f'<a href="/incidents/1?as_of={position}"><code>{position}</code></a>' in page
        assert "<code>&lt;b&gt;a rumour&lt;/b&gt;</code>" in page


def test_a_wrong_proposal_is_refused_by_its_field() -> None:
    commands.open_incident(Report("Rack 12 loses packets", component="tor/dc1-t12"), SENDER)
    client = asker("incidents:read", "incidents:propose")
    for body, field in (
        ({"action": "hand_over", "team": "nobody"}, "team"),
        ({"action": "hand_over"}, "team"),
        ({"action": "hand_over", "team": "storage", "minutes": 5}, "minutes"),
        ({"action": "resolve"}, "action"),
        ({"action": "silence", "minutes": 5}, "matchers"),
        ({"action": "silence", "matchers": "a=b", "minutes": 0}, "minutes"),
        ({"action": "silence", "matchers": "a", "minutes": 5}, "matchers"),
        ({"action": "hand_over", "team": "storage", "cites": "x"}, "cites"),
    ):
        answer = propose(client, 1, reason="because", **body)
        assert (answer.status_code, list(answer.data["errors"])) == (400, [field]), body
    unmatched = propose(client, 1, reason="because", action="silence", minutes=5).data["errors"]["matchers"]
    assert unmatched == ["is required: the incident has no firing alert"]
    assert propose(client, 1, action="hand_over", team="network", reason="because").status_code == 409
    assert propose(client, 99, action="hand_over", team="storage", reason="because").status_code == 404
    reader = asker("incidents:read")
    denied = propose(reader, 1, action="hand_over", team="storage", reason="because")
    assert (denied.status_code, denied.data["detail"]) == (403, "The key lacks the scope incidents:propose.")
    assert IncidentRow.objects.get().proposals is None
