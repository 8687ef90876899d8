from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.commands import Report
from incidents.domain.incident.decide import CommandRefusedError
from incidents.domain.values import InvalidValueError
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, opened, types


def test_an_opened_incident_carries_the_routing_and_its_reason() -> None:
    incident = after(opened(component="storage_cluster/s7"))
    assert (incident.team, incident.routing) == (
        "storage",
        "routed to Storage because rule 6 matched `storage_cluster/*`",
    )


def test_a_report_without_a_severity_opens_a_warning() -> None:
    assert after(opened()).severity == "warning"


def test_a_report_without_a_key_gets_a_key_of_its_own() -> None:
    incident = after(opened())
    assert incident.dedup_key == f"incident:{incident.id}"


def test_acknowledging_gives_the_incident_to_whoever_did() -> None:
    incident = after(opened(), c.Acknowledge())
    assert (incident.state, incident.owner, incident.acknowledged_at) == ("acknowledged", "alice", NOON)


def test_acknowledging_leaves_an_owner_in_place() -> None:
    assert after(opened(), c.Assign("bob"), c.Acknowledge()).owner == "bob"


def test_acknowledging_twice_is_refused_with_who_and_when() -> None:
    incident = after(opened(), c.Acknowledge())
    with pytest.raises(CommandRefusedError, match="already acknowledged, by alice at 2026-11-21T12:00:00Z"):
        types(incident, c.Acknowledge())


def test_an_acknowledgement_can_be_taken_back() -> None:
    incident = after(opened(), c.Acknowledge(), c.Unacknowledge())
    assert (incident.state, incident.acknowledged_by) == ("open", None)


def test_taking_back_what_was_not_given_is_refused() -> None:
    with pytest.raises(CommandRefusedError, match="not acknowledged"):
        types(after(opened()), c.Unacknowledge())


def test_a_hand_over_counts_a_hop_and_waits_for_the_new_team() -> None:
    incident = after(opened(), c.Acknowledge(), c.HandOver("network", "the ToR drops packets"))
    assert (incident.team, incident.hops, incident.owner, incident.state) == ("network", 1, None, "open")


def test_a_hand_over_to_the_same_team_is_refused() -> None:
    with pytest.raises(CommandRefusedError, match="already with storage"):
        types(after(opened()), c.HandOver("storage", "because"))


def test_resolving_keeps_the_confirmed_cause() -> None:
    incident = after(opened(), c.Resolve("tor/dc1-t12"))
    assert (incident.state, incident.confirmed_cause) == ("resolved", "tor/dc1-t12")


def test_resolving_twice_is_refused_with_who_and_when() -> None:
    with pytest.raises(CommandRefusedError, match="already resolved, by alice at"):
        types(after(opened(), c.Resolve("none")), c.Resolve("none"))


@pytest.mark.parametrize(
    "command",
    [c.Acknowledge(), c.Assign("bob"), c.HandOver("network", "why"), c.Join(Report("again", dedup_key="k"))],
)
def test_a_resolved_incident_must_be_reopened_first(command: c.Command) -> None:
    with pytest.raises(CommandRefusedError, match="reopen it first"):
        types(after(opened(), c.Resolve("none")), command)


def test_a_resolved_incident_can_be_commented_on() -> None:
    assert types(after(opened(), c.Resolve("none")), c.Comment("post mortem")) == ["incident.commented"]


def test_reopening_forgets_the_resolution() -> None:
    incident = after(opened(), c.Resolve("none"), c.Reopen("it is back"))
    assert (incident.state, incident.resolved_at, incident.confirmed_cause) == ("open", None, None)


@pytest.mark.parametrize(
    ("said", "kept"), [("tor/T1", "tor/T1"), ("Firmware", "firmware"), ("none", "none"), ("None", "none")]
)
def test_what_was_at_fault_is_a_component_a_class_or_nothing(said: str, kept: str) -> None:
    assert after(opened(), c.Resolve(said)).confirmed_cause == kept


@pytest.mark.parametrize("said", ["", "human error", "tor/", "*", "x" * 64])
def test_what_is_none_of_them_is_refused(said: str) -> None:
    with pytest.raises(InvalidValueError, match="confirmed_cause"):
        c.Resolve(said)


def test_reopening_what_is_open_is_refused() -> None:
    with pytest.raises(CommandRefusedError, match="is not resolved"):
        types(after(opened()), c.Reopen())


@pytest.mark.parametrize(
    "command",
    [c.SetTitle("Disks fail"), c.SetSeverity("error"), c.Assign("bob"), c.Link("https://example.org")],
)
def test_setting_what_is_already_so_makes_no_event(command: c.Command) -> None:
    first = (c.SetSeverity("error"), c.Assign("bob"), c.Link("https://example.org"))
    assert types(after(opened(), *first), command) == []


def test_a_joining_report_counts_an_alert() -> None:
    incident = after(opened(dedup_key="disk"), c.Join(Report("Disks fail again", dedup_key="disk")))
    assert incident.alerts == 2


def test_a_worse_report_raises_the_severity() -> None:
    incident = after(opened(dedup_key="d"), c.Join(Report("worse", dedup_key="d", severity="critical")))
    assert incident.severity == "critical"


def test_a_worse_report_leaves_the_severity_that_a_person_set() -> None:
    worse = c.Join(Report("worse", dedup_key="d", severity="critical"))
    assert after(opened(), c.SetSeverity("info"), worse).severity == "info"


def test_a_milder_report_leaves_the_severity() -> None:
    incident = after(opened(severity="error"), c.Join(Report("milder", dedup_key="d", severity="info")))
    assert incident.severity == "error"


def test_the_evidence_of_a_report_is_attached() -> None:
    report = opened(evidence=({"kind": "text", "title": "Log", "text": "oops"},))
    assert types(None, report) == ["incident.opened", "incident.evidence_attached"]


def test_a_finding_opens_a_ticket_with_its_evidence_and_confidence() -> None:
    incident = after(blamed(finding()), actor="system:incidents")
    assert (incident.confidence, incident.findings, set(incident.shown)) == (0.93, 1, {"deepview"})


def test_the_latest_leading_score_is_the_confidence() -> None:
    incident = after(blamed(finding(score=0.7)), c.JoinFinding(finding(score=0.95)))
    assert incident.confidence == 0.95


def test_a_like_finding_is_counted_and_not_attached() -> None:
    later = finding(run="run-2", end=NOON + timedelta(minutes=5), score=0.94)
    assert types(after(blamed(finding())), c.JoinFinding(later)) == ["incident.finding_joined"]


@pytest.mark.parametrize(("minutes", "score"), [(5, 0.80), (60, 0.93)])
def test_evidence_is_attached_again_when_the_score_moved_or_time_passed(minutes: int, score: float) -> None:
    later = finding(run="run-2", end=NOON + timedelta(minutes=minutes), score=score)
    assert "incident.evidence_attached" in types(after(blamed(finding())), c.JoinFinding(later))


def test_a_worse_finding_raises_the_severity() -> None:
    incident = after(blamed(finding(failure_rate=0.01)), c.JoinFinding(finding(failure_rate=0.5)))
    assert incident.severity == "critical"


def test_a_finding_never_overrules_the_severity_that_a_person_set() -> None:
    commands = (c.SetSeverity("info"), c.JoinFinding(finding(failure_rate=0.5)))
    assert after(blamed(finding()), *commands).severity == "info"


def test_a_quiet_window_is_noted_once() -> None:
    note = c.ClearFinding("run-9", "hourly", "deepview", "2026-11-21T12:05:00Z")
    incident = after(blamed(finding()))
    assert types(incident, note) == ["incident.finding_cleared"]
    assert types(after(note, state=incident), note) == []


def test_a_late_quiet_window_says_nothing() -> None:
    note = c.ClearFinding("run-9", "hourly", "deepview", "2026-11-21T12:00:00Z")
    assert types(after(blamed(finding())), note) == []


def test_a_new_finding_blames_again_after_a_quiet_window() -> None:
    note = c.ClearFinding("run-9", "hourly", "deepview", "2026-11-21T12:05:00Z")
    later = finding(run="run-10", end=NOON + timedelta(minutes=10))
    assert after(blamed(finding()), note, c.JoinFinding(later)).blamed_by == ("hourly",)


def test_a_finding_on_a_resolved_ticket_is_only_counted() -> None:
    incident = after(
        blamed(finding()), c.Resolve("storage_cluster/s7"), c.RecordFinding(finding(run="run-2"))
    )
    assert (incident.state, incident.findings) == ("resolved", 2)


def test_an_acknowledgement_that_is_taken_back_leaves_the_owner_of_before() -> None:
    assert after(opened(), c.Acknowledge(), c.Unacknowledge()).owner is None
    assert after(opened(), c.Assign("bob"), c.Acknowledge(), c.Unacknowledge()).owner == "bob"


def test_an_owner_who_was_assigned_since_the_acknowledgement_stays() -> None:
    assert after(opened(), c.Acknowledge(), c.Assign("bob"), c.Unacknowledge()).owner == "bob"
