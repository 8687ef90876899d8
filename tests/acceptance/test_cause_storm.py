"""A switch fails: its hosts call, the finding comes late and is withdrawn. Nobody's alert is lost on the way."""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta

import pytest

from incidents import commands, queries
from incidents.follower import follower
from incidents.incident.models import MemberAlert
from incidents.incident.rebuild import rebuild
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.integrations.normalized import Alert, Parsed
from ingest.queries import open_alerts
from tests.following import follow_to_the_end
from tests.integration.incidents.alerts.test_correlate import ALICE, tickets
from tests.integration.incidents.incident.test_findings import START, run, suspect
from tests.integration.ingest.telemetry.test_topology import tell

pytestmark = pytest.mark.usefixtures("log_database")
RACKS = 3
HOSTS = int(os.environ.get("STORM_HOSTS", "60"))
"""A rack. `STORM_HOSTS=10000` makes it a storm of 30,000."""
CAUSE = "tor/r0"


def switch(rack: int) -> str:
    return f"tor/r{rack}"


def hosts(rack: int) -> list[str]:
    return [f"host/r{rack}-h{number}" for number in range(HOSTS)]


def fire(names: list[str], rule: str) -> None:
    for start in range(0, len(names), 1_000):
        alerts = [
            Alert(f"{rule} {name}", "firing", f"{name}: {rule}", group=rule, component=name)
            for name in names[start : start + 1_000]
        ]
        receive(Parsed(tuple(alerts)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())


def homes() -> Counter[str]:
    """Number of open incidents that each alert that fires is a member of."""
    members = MemberAlert.objects.filter(resolved=False).exclude(incident__state="resolved")
    return Counter(str(alert) for alert in members.values_list("alert", flat=True))


def each_has_one_home() -> bool:
    return homes() == Counter(dict.fromkeys((one.id for one in open_alerts()), 1))


def of_component(name: str) -> queries.View:
    (found,) = [view for view in tickets() if view.incident.component == name and view.incident.findings]
    return found


def test_a_storm_of_symptoms_under_one_cause_that_is_withdrawn() -> None:
    for rack in range(RACKS):
        tell(START - timedelta(days=2), switch(rack), parents=["row/1"])
        for name in hosts(rack):
            tell(START - timedelta(days=2), name, parents=[switch(rack)])

    # Everything calls, and nobody knows why: an incident for each rule.
    everything = [name for rack in range(RACKS) for name in hosts(rack)]
    fire(everything[: len(everything) // 2], "Unreachable")
    assert len(tickets("open")) == 1
    assert each_has_one_home()

    # The analyzer names one switch. Its hosts are symptoms; the others stay what they were.
    run(0, suspect(CAUSE, sure=True))
    assert of_component(CAUSE).incident.firing == HOSTS
    assert each_has_one_home()

    # What fires later joins at once, and Alice has one screen to look at.
    fire(hosts(0), "DiskSlow")
    cause = of_component(CAUSE).incident
    assert cause.firing == 2 * HOSTS
    assert len(tickets("open")) == 2
    found, total = queries.members(str(cause.number), 10)
    assert total == 2 * HOSTS
    why = queries.why_members(str(cause.number), [one.id for one in found])
    assert all("is contained in tor/r0" in why[one.id] for one in found)
    commands.acknowledge(cause.id, ALICE)

    # The next window does not blame it: nothing is left there, and each alert is where its rule puts it.
    run(5)
    cause = queries.get(str(cause.number)).incident
    assert (cause.state, cause.firing) == ("acknowledged", 0)
    assert each_has_one_home()
    titles = sorted(view.incident.title.partition(": ")[0] for view in tickets("open"))
    assert titles == ["DiskSlow", "Unreachable"]
    told = [entry.text for entry in queries.timeline(str(cause.number))]
    assert (
        f"{min(2 * HOSTS, 1_000)} alerts left this incident: the finding of #{cause.number} was withdrawn"
        in " ".join(told)
    )

    # And the log knows it all.
    assert rebuild().differed == ()
