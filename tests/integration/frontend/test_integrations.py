"""Integrations in the console: keys made, tried, rotated, revoked; mappings tried and kept."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils.html import escape

from incidents import queries
from incidents.follower import follower
from incidents.security.outbound import Reply
from ingest.alerts.expire import expire
from ingest.api import keys, test_alerts
from ingest.api.models import IntegrationKey
from tests.following import follow_to_the_end
from tests.places import PAYLOADS

pytestmark = pytest.mark.usefixtures("log_database")


def signed_in(name: str, is_staff: bool) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, is_staff=is_staff))
    return client


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", True)


def made(client: Client, sender: str = "grafana", name: str = "grafana-dc1") -> str:
    """The key that the page shows."""
    body = client.post("/integrations", {"sender": sender, "name": name}).content.decode()
    found = re.search(r'<pre id="secret">(\S+)</pre>', body)
    assert found is not None
    return found[1]


def row() -> IntegrationKey:
    return IntegrationKey.objects.get()


def test_a_key_is_shown_once_with_what_to_paste(alice: Client) -> None:
    secret = made(alice)
    assert keys.find(secret) is not None
    body = alice.get("/integrations").content.decode()
    assert "grafana-dc1" in body
    assert secret not in body


def test_a_key_opens_only_the_endpoint_that_it_was_made_for(alice: Client) -> None:
    secret = made(alice)
    answer = Client().post(f"/integrations/generic/{secret}", {"title": "x"}, content_type="application/json")
    assert answer.status_code == 403


def test_a_sender_with_a_ready_mapping_gets_it(alice: Client) -> None:
    made(alice, "nagios", "nagios")
    assert (row().mapping or {})["title"]["from"][0] == "{service} on {host} is {state}"


def test_a_name_that_is_taken_is_said_beside_the_field(alice: Client) -> None:
    made(alice)
    answer = alice.post("/integrations", {"sender": "grafana", "name": "grafana-dc1"})
    assert answer.status_code == 400
    assert "Is taken" in answer.content.decode()


def test_both_keys_are_good_for_the_overlap(alice: Client) -> None:
    first = made(alice)
    body = alice.post(f"/integration/{row().pk}/rotate", {"overlap": "1 h"}).content.decode()
    found = re.search(r'<pre id="secret">(\S+)</pre>', body)
    assert found is not None
    assert found[1] != first
    assert all(keys.find(secret) for secret in (first, found[1]))


def test_a_revoked_key_is_refused(alice: Client) -> None:
    secret = made(alice)
    alice.post(f"/integration/{row().pk}/revoke")
    assert keys.find(secret) is None


@pytest.mark.parametrize("endpoint", test_alerts.ENDPOINTS)
def test_a_test_alert_opens_a_ticket_and_is_over_by_itself(
    alice: Client, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "INBOUND_EMAIL_PORT", 2525)  # a closed endpoint takes no test
    keys.create("everything", ["alerts"])
    answer = alice.post(f"/integration/{row().pk}/test", {"endpoint": endpoint})
    follow_to_the_end(follower())
    assert test_alerts.TITLE in alice.get(answer.headers["Location"]).content.decode()
    (view,) = queries.list_incidents().items
    assert (view.incident.state, view.incident.severity) == ("open", "info")
    expire(datetime.now(UTC) + test_alerts.LASTS + timedelta(seconds=1))
    follow_to_the_end(follower())
    assert queries.get("1").incident.state == "resolved"


def test_the_page_of_a_test_alert_waits_for_its_incident_and_names_it(alice: Client) -> None:
    keys.create("everything", ["alerts"])
    receipt = alice.post(f"/integration/{row().pk}/test", {"endpoint": test_alerts.ENDPOINTS[0]}).headers[
        "Location"
    ]
    before = alice.get(receipt).content.decode()
    assert "Opening an incident…" in before
    assert 'hx-trigger="every 1s"' in before
    follow_to_the_end(follower())
    after = alice.get(receipt).content.decode()
    assert '<a href="/incidents/1">#1</a> at ' in after
    assert "hx-trigger" not in after.partition('id="outcome"')[2].partition(">")[0]


@pytest.mark.parametrize("path", ["rotate", "revoke", "test", "mapping"])
def test_only_staff_changes_integrations(path: str) -> None:
    keys.create("monitoring", ["alerts"])
    assert signed_in("bob", False).post(f"/integration/{row().pk}/{path}").status_code == 403


def test_a_mapping_is_tried_with_the_reason_for_each_field(alice: Client) -> None:
    keys.create("monitoring", ["alerts"])
    told = {"title": "{check} on {host}", "key": "$.check"}
    form = {"mapping": json.dumps(told), "payload": '{"check": "Fan", "host": "srv1"}'}
    body = alice.post(f"/integration/{row().pk}/mapping", form).content.decode()
    assert "<h2>Fan on srv1</h2>" in body
    assert "<code>severity</code></td><td>warning, the mapping says nothing else" in body
    assert row().mapping is None


def test_a_mapping_that_was_kept_reads_payloads(alice: Client) -> None:
    secret = keys.create("monitoring", ["alerts"])
    form = {"mapping": '{"title": "$.check", "key": "$.check"}', "save": "yes"}
    alice.post(f"/integration/{row().pk}/mapping", form)
    Client().post(f"/integrations/generic/{secret}", {"check": "Fan"}, content_type="application/json")
    follow_to_the_end(follower())
    assert queries.get("1").incident.title == "Fan"


@pytest.mark.parametrize(
    ("mapping", "payload", "says"),
    [
        ("{", "{}", "is not valid JSON"),
        ("{}", "{}", "title"),
        ("", "[", 'id="payload" name="payload" class="mono" rows="16" spellcheck="false" aria-invalid'),
    ],
)
def test_what_cannot_be_tried_says_why_beside_its_field(
    alice: Client, mapping: str, payload: str, says: str
) -> None:
    keys.create("monitoring", ["alerts"])
    answer = alice.post(f"/integration/{row().pk}/mapping", {"mapping": mapping, "payload": payload})
    assert answer.status_code == 400
    assert says in answer.content.decode()


UNKNOWN = {"event": {"headline": "Disk is full", "uuid": "7"}}


def sent(secret: str, payload: object) -> str:
    """The receipt of a payload at the generic endpoint."""
    answer = Client().post(
        "/integrations/generic", json.dumps(payload), content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )  # fmt: skip
    receipt: str = answer.json()["receipt"]
    return receipt


def test_a_payload_without_an_alert_has_a_mapping_to_try_and_save(alice: Client) -> None:
    secret = keys.create("unknown", ["alerts"])
    receipt = sent(secret, UNKNOWN)
    pk = row().pk
    shown = alice.get(f"/integration/{pk}").content.decode()
    assert "Stored without an alert" in shown
    assert f"/integration/{pk}/mapping?receipt={receipt}" in shown
    page = alice.get(f"/integration/{pk}/mapping", {"receipt": receipt})
    assert [item.alert.title for item in page.context["items"]] == ["Disk is full"]
    told = {"mapping": page.context["text"], "payload": page.context["payload"], "save": "yes"}
    assert alice.post(f"/integration/{pk}/mapping", told).status_code == 302
    answer = Client().post(
        f"/integrations/generic/{secret}", json.dumps(UNKNOWN), content_type="application/json"
    )
    assert (answer.status_code, answer.json()["accepted"]) == (200, 1)
    assert "Stored without an alert" not in alice.get(f"/integration/{pk}").content.decode()


def test_a_stored_payload_is_read_again_once_a_mapping_reads_it(alice: Client) -> None:
    receipt = sent(keys.create("unknown", ["alerts"]), UNKNOWN)
    follow_to_the_end(follower())
    pk = row().pk
    again = alice.post(f"/integration/{pk}/reread", {"receipt": receipt}, follow=True)
    assert "Not processed" in again.content.decode()
    told = {
        "mapping": alice.get(f"/integration/{pk}/mapping", {"receipt": receipt}).context["text"],
        "save": "yes",
    }
    saved = alice.post(f"/integration/{pk}/mapping", told, follow=True).content.decode()
    assert "The mapping now reads this payload" in saved
    alice.post(f"/integration/{pk}/reread", {"receipt": receipt})
    follow_to_the_end(follower())
    states = {one.incident.title: one.incident.state for one in queries.list_incidents().items}
    assert states.pop("Disk is full") == "open"
    assert set(states.values()) == {"resolved"}  # the warning about payloads that cannot be read
    assert "reads this payload now" not in alice.get(f"/integration/{pk}").content.decode()


@pytest.mark.parametrize(
    ("golden", "says"),
    [
        ("uptime-kuma/pending", "No alert: pending check"),
        ("cloudwatch/insufficient-data", "No alert: the alarm has insufficient data"),
    ],
)
def test_a_payload_left_out_on_purpose_is_no_error(alice: Client, golden: str, says: str) -> None:
    told = json.loads((PAYLOADS / f"{golden}.json").read_text())
    secret = keys.create("monitor", ["alerts"])
    sent(secret, told)
    sent(secret, told)
    shown = alice.get(f"/integration/{row().pk}").content.decode()
    assert says in shown
    assert "No action needed: the mapping ignores such messages, 2 recently" in shown
    assert "Stored without an alert" not in shown
    assert 'class="problem"' not in shown
    follow_to_the_end(follower())
    assert queries.list_incidents().items == []


def test_a_subscription_of_sns_is_shown_and_confirmed_by_staff(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = PAYLOADS / "cloudwatch" / "confirmation.json"
    told = json.loads(golden.read_text())
    receipt = sent(keys.create("sns", ["alerts"]), told)
    pk = row().pk
    assert escape(told["SubscribeURL"]) in alice.get(f"/integration/{pk}").content.decode()
    visited: list[tuple[str, str]] = []

    def visit(url: str, body: bytes, *, method: str) -> Reply:  # noqa: ARG001
        visited.append((method, url))
        return Reply(200)

    monkeypatch.setattr(
        "frontend.views.settings.integrations.post", visit
    )  # Amazon itself is not asked by a test
    bob = signed_in("bob", False)
    assert bob.post(f"/integration/{pk}/confirm", {"receipt": receipt}).status_code == 403
    assert "Confirm the subscription" not in bob.get(f"/integration/{pk}").content.decode()
    assert alice.post(f"/integration/{pk}/confirm", {"receipt": receipt}).status_code == 302
    assert visited == [("GET", told["SubscribeURL"])]


def test_a_subscription_is_confirmed_through_the_outbound_guard(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"Type": "SubscriptionConfirmation", "SubscribeURL": "https://sns.x.amazonaws.com/", "Message": "m",
            "TopicArn": "t"}  # fmt: skip
    receipt = sent(keys.create("sns", ["alerts"]), told)
    monkeypatch.setattr(
        "incidents.security.outbound._within", lambda _: lambda _host, _port: ["169.254.169.254"]
    )
    answer = alice.post(f"/integration/{row().pk}/confirm", {"receipt": receipt}, follow=True)
    assert "Not confirmed: sns.x.amazonaws.com" in answer.content.decode()
