"""The noisiest sources: counted over the log, each with a silence and what it would have done to calls."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents.domain.escalation.policy import steps_from
from incidents.escalation.models import EscalationPolicy
from incidents.follower import follower
from incidents.teams.models import Membership, Team
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.integrations.normalized import Alert, Parsed
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")


def send(name: str, host: str, status: str = "firing", sender: str = "prometheus") -> None:
    labels = {"alertname": name, "instance": host}
    alert = Alert(f"{name}/{host}", status, f"{name} on {host}", group=name, labels=labels)  # type: ignore[arg-type]
    receive(Parsed((alert,)), Delivery(sender, "test", "application/json", b"{}"))
    follow_to_the_end(follower())


def test_what_fired_most_has_a_silence_and_its_replay() -> None:
    key = keys.create("reader", ["incidents:read"])
    client = Client(headers={"authorization": f"Bearer {key}"})
    assert client.get("/api/v1/noise").json()["alerts"] == []
    team = Team.objects.get(is_default=True)
    user = get_user_model().objects.create(username="alice")
    Membership.objects.create(team=team, user=user, role="responder")
    steps = [one.as_json() for one in steps_from([{"after": 0, "actions": [{"team": team.slug}]}])]
    EscalationPolicy.objects.update_or_create(team=team, defaults={"slug": "p", "name": "P", "steps": steps})
    for _ in range(4):
        send("Flaps", "a")
        send("Flaps", "a", "resolved")
    send("DiskFull", "b", sender="nagios")

    body = client.get("/api/v1/noise").json()
    assert (body["fired"], body["complete"]) == (5, True)
    assert body["sources"][0] == {"integration": "prometheus", "least": 4, "most": 4}
    noisy, other = body["alerts"]
    assert (noisy["title"], noisy["least"], noisy["most"]) == ("Flaps on a", 4, 4)
    assert noisy["matchers"] == ['alertname="Flaps"', 'instance="a"', 'integration="prometheus"']
    assert noisy["replayed"]["suppressed"] == 4
    assert noisy["replayed"]["calls_before"] > noisy["replayed"]["calls_after"]
    assert other["replayed"]["suppressed"] == 1
    assert noisy["replayed"]["missed"] == 0
    rule = noisy["rule"]
    assert (rule["change"], rule["minutes"], rule["by"]) == ("for", 5, None)
    assert (rule["firings_before"], rule["firings_after"], rule["missed"]) == (4, 0, 0)
    assert rule["sentence"] == "Fire only after 5 min more (for)"
    assert other["rule"] is None, "it fires on"

    bob = Client()
    bob.force_login(get_user_model().objects.create(username="bob"))
    page = bob.get("/silences/noisiest").content.decode()
    assert "4 firings suppressed" in page
    assert "Fire only after 5 min more (for)" in page
    assert "4 → 0 firings of the rule" in page
    assert page.index("Flaps on a") < page.index("DiskFull on b")
    begun = bob.get("/silences", {"matchers": "\n".join(noisy["matchers"])}).content.decode()
    assert "alertname=&quot;Flaps&quot;\ninstance=&quot;a&quot;" in begun
    for wrong in ("0", "32", "week"):
        assert client.get(f"/api/v1/noise?days={wrong}").status_code == 400
