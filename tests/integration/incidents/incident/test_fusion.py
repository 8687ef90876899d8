"""Findings of three analyzers about one network card become one incident, by the topology of the time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incidents import queries
from incidents.incident.rebuild import rebuild
from tests.integration.incidents.incident.test_findings import START, numbers, run, suspect
from tests.integration.ingest.telemetry.test_topology import tell

pytestmark = pytest.mark.usefixtures("log_database")
RANK, NIC, NODE = "rank/17", "nic/n2-1", "node/n2"


def test_rank_node_and_card_are_one_incident_and_the_card_its_cause() -> None:
    earlier = START - timedelta(days=2)
    tell(earlier, NIC, parents=[NODE])
    tell(earlier, RANK, parents=[NODE], depends_on=[NIC])
    for minutes, analyzer, component in (
        (0, "c4d", RANK),
        (1, "straggler", NODE),
        (2, "skeletonhunter", NIC),
        (3, "c4d", RANK),
    ):
        run(minutes, suspect(component, sure=True), schedule=analyzer, analyzer=analyzer)
    assert numbers() == [1]
    incident = queries.get("1").incident
    assert incident.component == NIC
    assert incident.covers == {RANK, NIC, NODE}
    said = [entry.text for entry in queries.timeline("1")]
    assert any(f"the same fault, as {RANK} depends on {NIC}" in one for one in said)
    run(4, schedule="c4d", analyzer="c4d")
    assert set(queries.get("1").incident.blamed_by) == {"straggler", "skeletonhunter"}
    before = queries.get("1").incident
    rebuild()
    assert queries.get("1").incident == before
    # A run that names rank and card tells two faults apart.
    tell(earlier, "rank/40", depends_on=["nic/n5-0"])
    both = suspect("rank/40", sure=True), suspect("nic/n5-0", sure=True)
    run(5, *both, schedule="other", analyzer="other")
    assert numbers() == [1, 2, 3]
