"""Incidents that are handed to a cluster: what is sent, which answers follow, and resolving without proof."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.decide import CommandRefusedError, decide
from incidents.domain.incident.remediation import left_open
from incidents.domain.incident.state import Incident
from incidents.domain.remediation.order import Order, order_as_json
from incidents.domain.remediation.state import NEXT, STAGES, Remediation, remediation_from
from incidents.domain.values import InvalidValueError, rfc3339
from tests.unit.incidents.incident.cases import NOON, after, finding, opened, types

GPU, NEW = "gpu/1652821001234", "gpu/1652821009999"
ASKED = "7f0b3e2c-1cab-4d22-9a96-2d5b3a8ee2f1"
LATER = NOON + timedelta(hours=1)


def handed(**fields: Any) -> c.HandToCluster:
    wanted = {
        "request": ASKED,
        "component": GPU,
        "node": "gpu-17",
        "target": "cluster",
        "reason": "Xid 79 after a reset",
        "proof_required": True,
        "url": "https://dossier.example.com/incidents/1",
    }
    return c.HandToCluster(**{**wanted, **fields})


def said(what: Any, **fields: Any) -> c.AnswerRemediation:
    return c.AnswerRemediation(**{"request": ASKED, "answer": what, "by": "dc-ops", **fields})


def on_its_way(*answers: c.Command, **fields: Any) -> Incident:
    incident = after(opened(component=GPU), handed(**fields))
    return after(*answers, state=incident, now=LATER, actor="key:cluster") if answers else incident


def judged(verdict: str, rows: int = 12) -> c.JudgeRepair:
    return c.JudgeRepair(ASKED, {"verdict": verdict, "rows": rows, "summary": "not yet known"})


def order(**fields: Any) -> dict[str, Any]:
    wanted = {
        "request": ASKED,
        "number": 12,
        "url": "https://dossier.example.com/incidents/12",
        "node": "gpu-17",
        "component": GPU,
        "part": GPU,
        "summary": "gpu/1652821001234 fails.",
        "analyzer": "deepview",
        "reason": "Xid 79",
        "at": NOON,
    }
    return order_as_json(Order(**{**wanted, **fields}))


def refused(state: Incident, command: c.Command) -> str:
    with pytest.raises(CommandRefusedError) as caught:
        decide(state, command, LATER)
    return caught.value.reason


def test_the_object_for_nvsentinel_names_node_part_and_request() -> None:
    made = order()["kubernetes"]
    event = made["spec"]["healthEvent"]
    assert (made["apiVersion"], made["kind"]) == (
        "nvsentinel.nvidia.com/v1alpha1",
        "ExternalRemediationRequest",
    )
    assert (event["nodeName"], event["id"], event["isFatal"]) == ("gpu-17", ASKED, True)
    assert event["entitiesImpacted"] == [{"entityType": "GPU", "entityValue": "1652821001234"}]


@pytest.mark.parametrize(
    "node", ["a b", "n;reboot", "$(id)", "node[1-100]", "n1,n2", "ALL", "all", "-x", "", "a\nb"]
)
def test_a_name_that_is_not_one_node_is_refused(node: str) -> None:
    with pytest.raises(InvalidValueError, match="the name of one node"):
        handed(node=node)


@pytest.mark.parametrize(
    "hostile", ["'; reboot; '", '"$(id)`id`', "a\nEOF\nb", "reason state=resume", "it's ü"]
)
def test_a_hostile_reason_stays_one_argument_of_each_command(hostile: str) -> None:
    made = order(reason=hostile, component=f"gpu/{hostile}".replace("\n", " "))
    for one in made["commands"]:
        words = shlex.split(one["command"].replace(" | ", " "))
        if one["cluster"] == "slurm":
            assert words[:3] == ["scontrol", "update", "nodename=gpu-17"]
            assert [word.partition("=")[0] for word in words[3:]] in (["state", "reason"], ["state"])
    printed, _, applied = next(
        one["command"] for one in made["commands"] if "apply" in one["command"]
    ).rpartition(" | ")
    assert applied == "kubectl apply -f -"
    assert json.loads(shlex.split(printed)[2]) == made["kubernetes"]


def test_a_name_that_kubernetes_does_not_allow_leaves_the_lines_for_slurm() -> None:
    made = order(node="Node_17")
    assert made["kubernetes"] is None
    assert {one["cluster"] for one in made["commands"]} == {"slurm"}


def test_a_component_that_the_incident_does_not_blame_is_refused() -> None:
    assert "blames gpu/1652821001234, not gpu/7" in refused(
        after(opened(component=GPU)), handed(component="gpu/7")
    )


def test_an_incident_is_handed_over_once_until_the_cluster_is_done() -> None:
    assert "already handed to the cluster by alice" in refused(on_its_way(said("drained")), handed())
    assert types(on_its_way(said("refused")), handed()) == ["incident.remediation_requested"]


def test_the_way_ends_with_the_new_part_watched() -> None:
    incident = on_its_way(said("drained"), said("replaced", part="1652821009999"), said("returned"))
    found = incident.remediation
    assert found is not None
    assert (found.stage, found.part, found.is_watched) == ("returned", NEW, True)
    assert [(one.answer, one.actor, one.replaced) for one in found.answers][1] == (
        "replaced",
        "key:cluster",
        GPU,
    )
    assert remediation_from(found.as_json()) == found


@pytest.mark.parametrize("stage", STAGES)
def test_an_answer_out_of_order_is_refused_in_one_sentence(stage: str) -> None:
    ways: dict[str, list[c.AnswerRemediation]] = {
        "requested": [],
        "drained": [said("drained")],
        "replaced": [said("drained"), said("replaced")],
        "returned": [said("drained"), said("returned")],
        "refused": [said("refused")],
        "failed": [said("failed")],
    }
    incident = on_its_way(*ways[stage])
    recorded = {one.answer for one in ways[stage]}
    for what in ("drained", "replaced", "returned", "refused", "failed"):
        if what in NEXT[stage]:  # type: ignore[index]
            assert len(decide(incident, said(what), LATER)) == 1
        elif what in recorded:
            assert decide(incident, said(what), LATER) == []
        else:
            assert "cannot follow that" in refused(incident, said(what))


def test_an_answer_that_comes_again_changes_nothing() -> None:
    incident = on_its_way(said("drained"), said("replaced", part=NEW))
    for again in (
        said("drained"),
        said("replaced", part=NEW),
        said("replaced", part="1652821009999", by="bob"),
    ):
        assert decide(incident, again, LATER) == []


def test_a_second_part_in_the_place_of_one_is_refused() -> None:
    incident = on_its_way(said("drained"), said("replaced", part=NEW))
    assert "replaced cannot follow" in refused(incident, said("replaced", part="gpu/5"))


def test_the_part_that_was_to_be_replaced_is_no_new_part() -> None:
    assert "serial number of the new one" in refused(on_its_way(said("drained")), said("replaced", part=GPU))


def test_an_answer_to_another_request_or_none_is_refused() -> None:
    assert "no request forged" in refused(on_its_way(), said("drained", request="forged"))
    assert "was not handed to the cluster" in refused(after(opened(component=GPU)), said("drained"))


@pytest.mark.parametrize(
    ("minutes", "problem"), [(-30, "is before handed"), (-3, ""), (90, "is in the future")]
)
def test_the_time_of_an_answer_may_be_minutes_off(minutes: int, problem: str) -> None:
    answer = said("drained", at=NOON + timedelta(minutes=minutes))
    if problem:
        assert problem in refused(on_its_way(), answer)
    else:
        found = on_its_way(answer).remediation
        assert found is not None
        assert found.answers[0].at == NOON


def test_after_a_failure_the_cluster_may_go_on() -> None:
    incident = on_its_way(said("drained"), said("failed", note="no spare"), said("drained"), said("returned"))
    assert incident.remediation is not None
    assert incident.remediation.stage == "returned"


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ((), "gpu-17 is handed to the cluster"),
        ((said("drained"),), "gpu-17 is drained"),
        ((said("drained"), said("returned")), "has no proof of repair yet (0 rows seen"),
        ((said("drained"), said("returned"), judged("unknown")), "(12 rows seen"),
        ((said("drained"), said("returned"), judged("not_repaired")), "still fails after its return"),
    ],
)
def test_without_the_demanded_proof_resolving_takes_a_reason(way: tuple[Any, ...], why: str) -> None:
    incident = on_its_way(*way)
    assert why in refused(incident, c.Resolve(GPU))
    assert types(incident, c.Resolve(GPU, without_proof="needed tonight")) == [
        "incident.proof_waived",
        "incident.resolved",
    ]


def test_a_proved_repair_and_one_that_needs_no_proof_are_resolved_like_any_other() -> None:
    proved = on_its_way(said("drained"), said("returned"), judged("repaired"))
    assert types(proved, c.Resolve(GPU, without_proof="in a hurry")) == ["incident.resolved"]
    assert types(on_its_way(proof_required=False), c.Resolve(GPU)) == ["incident.resolved"]


def test_a_reopened_incident_demands_its_proof_again() -> None:
    incident = after(c.Resolve(GPU, without_proof="needed tonight"), c.Reopen(), state=on_its_way())
    assert "requires proof of repair" in refused(incident, c.Resolve(GPU))


def test_alerts_that_end_do_not_resolve_what_demands_proof() -> None:
    incident = replace(on_its_way(), alert_at=NOON)
    assert types(incident, c.AutoResolve("all alerts resolved")) == []
    assert types(replace(incident, remediation=None), c.AutoResolve("all alerts resolved")) == [
        "incident.resolved"
    ]


def test_a_proved_repair_resolves_once_nothing_blames_the_part_or_fires() -> None:
    over = c.AutoResolve("gpu-17 is repaired")
    blaming = after(
        c.JoinFinding(finding(GPU), "warning"), state=on_its_way(said("drained"), said("returned"))
    )
    assert types(blaming, over) == []
    proved = after(judged("repaired"), state=blaming)
    assert types(proved, over) == []
    assert (
        left_open(proved) == "Still open: no window without the fault by hourly since 2026-11-21 12:00 UTC."
    )
    cleared = after(c.ClearFinding("run-2", "hourly", "deepview", rfc3339(LATER)), state=proved)
    assert left_open(cleared) is None
    assert types(cleared, over) == ["incident.resolved"]
    firing = replace(cleared, firing=1)
    assert (types(firing, over), left_open(firing)) == ([], "Still open: 1 alert firing.")
    undemanded = replace(cleared, remediation=replace(_of(cleared), proof_required=False))
    assert types(undemanded, over) == []
    assert "no proof was required" in str(left_open(undemanded))


def test_an_incident_reopened_after_the_proof_waits_for_a_person() -> None:
    over = c.AutoResolve("gpu-17 is repaired")
    proved = on_its_way(said("drained"), said("returned"), judged("repaired"))
    reopened = after(over, c.Reopen(), state=proved)
    assert types(reopened, over) == []
    assert "reopened after the proof" in str(left_open(reopened))
    assert types(reopened, c.Resolve(GPU)) == ["incident.resolved"]
    assert remediation_from(_of(reopened).as_json()) == _of(reopened)


def _of(state: Incident) -> Remediation:
    assert state.remediation is not None
    return state.remediation


def test_a_verdict_is_recorded_while_the_part_is_watched() -> None:
    watched = on_its_way(said("drained"), said("returned"))
    assert types(watched, judged("unknown")) == ["incident.repair_judged"]
    assert types(after(judged("unknown"), state=watched), judged("unknown")) == []
    assert types(on_its_way(said("drained")), judged("unknown")) == []
    assert types(after(judged("repaired"), state=watched), judged("not_repaired")) == []
