"""A silence stops the notifications of incidents that are open already, and says so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.routing.rules import read_matchers
from incidents.escalation.commands import escalate
from incidents.incident.models import IncidentRow
from incidents.incident.rebuild import rebuild
from incidents.incident.view import failure_shown
from incidents.suppression import silences, suppressor
from incidents.teams.models import Silence
from incidents.timers import OF_INCIDENTS
from tests.integration.frontend.test_pages import signed_in
from tests.integration.incidents.alerts.test_correlate import alert, send, ticket
from tests.integration.incidents.escalation.cases import ALICE, Clock, calls, member, people, policy, told
from tests.integration.incidents.suppression.test_planned import call, window

pytestmark = pytest.mark.usefixtures("log_database")
HOUR = timedelta(hours=1)
STEPS = [
    {"after": wait, "actions": [{"person": who}]} for wait, who in ((0, "alice"), (60, "bob"), (60, "alice"))
]


@pytest.fixture(autouse=True)
def storage_is_on_call(log_database: object) -> None:  # noqa: ARG001  the database must be there
    suppressor._seen.clear()
    people("alice", "bob")
    member("alice", "storage", "manager")
    member("bob", "storage")
    policy(steps=STEPS, repeats=1)


def pay(key: str = "pay", **more: Any) -> Any:
    labels = {"alertname": "PayErrors", "service": "pay", **more.pop("labels", {})}
    return alert(key, component="storage_cluster/s7", labels=labels, severity="critical", **more)


def silence(matcher: str = "alertname", value: str = "PayErrors", **more: Any) -> Silence:
    matchers = [{"name": matcher, "value": value}]
    return silences.create_silence(matchers, None, timezone.now() + 2 * HOUR, "alice", "known", ALICE, **more)


def fired(*alerts: Any) -> str:
    send(*alerts or (pay(),))
    return ticket(1).incident.id


def time_passes(seconds: float = 5) -> None:
    for do in OF_INCIDENTS.values():
        do(timezone.now() + timedelta(seconds=seconds))


def at_present(incident: str) -> Clock:
    """A clock that goes on from now, however long the test took so far."""
    clock = Clock(incident)
    clock.now = timezone.now()
    return clock


def test_a_silence_made_from_an_incident_stops_its_calls_at_once_and_says_until_when() -> None:
    incident = fired()
    clock = Clock(incident)
    clock.later(1)
    assert calls(incident) == ["alice"]
    made = silence(incidents=[incident])
    one = ticket(1).incident
    assert (one.state, one.silence, one.snoozed_until) == ("snoozed", str(made.pk), made.ends_at)
    assert told(incident)[-1].startswith("Notifications suppressed until")
    clock.later(600)
    assert calls(incident) == ["alice"]


def test_a_silence_of_amtool_stops_calls_of_open_incidents_within_a_sweep() -> None:
    incident = fired()
    silence()
    time_passes()
    assert ticket(1).incident.state == "snoozed"
    Clock(incident).later(600)
    assert calls(incident) == []


def test_a_step_that_is_due_before_the_sweep_calls_nobody_either() -> None:
    incident = fired()
    clock = Clock(incident)
    silence()
    clock.later(1)
    assert calls(incident) == []
    assert ticket(1).incident.state == "snoozed"


def test_an_incident_of_which_one_alert_is_not_covered_goes_on_calling() -> None:
    incident = fired(pay("a", labels={"zone": "1"}), pay("b", labels={"zone": "2"}))
    assert ticket(1).incident.firing == 2
    silence("zone", "1", incidents=[incident])
    Clock(incident).later(1)
    assert calls(incident) == ["alice"]


def test_ending_the_silence_starts_the_calls_anew() -> None:
    incident = fired()
    made = silence(incidents=[incident])
    assert silences.end_silence(made, ALICE)
    assert ticket(1).incident.state == "open"
    at_present(incident).later(1)
    assert calls(incident) == ["alice"]


def test_what_still_fires_when_the_silence_is_over_calls_again() -> None:
    incident = fired()
    made = silence(incidents=[incident])
    time_passes((made.ends_at - timezone.now()).total_seconds() + 1)
    assert ticket(1).incident.state == "open"


def test_an_alert_that_the_silence_does_not_cover_resumes_the_calls() -> None:
    incident = fired(pay("a", labels={"zone": "1"}))
    silence("zone", "1", incidents=[incident])
    assert ticket(1).incident.state == "snoozed"
    send(pay("b", labels={"zone": "2"}))
    assert ticket(1).incident.firing == 2
    assert ticket(1).incident.state == "open"


def test_other_matchers_that_do_not_cover_it_resume_the_calls() -> None:
    incident = fired()
    made = silence(incidents=[incident])
    other = [{"name": "alertname", "value": "Other", "isRegex": False, "isEqual": True}]
    wanted = silences.SilenceRequest(other, made.starts_at, made.ends_at, "alice", "known")
    silences.place_silence(made.pk, wanted, ALICE)
    assert ticket(1).incident.state == "open"


def test_an_acknowledged_incident_is_acknowledged_again_after_its_silence() -> None:
    incident = fired()
    commands.acknowledge(incident, ALICE)
    made = silence(incidents=[incident])
    assert ticket(1).incident.state == "snoozed"
    silences.end_silence(made, ALICE)
    assert (ticket(1).incident.state, ticket(1).incident.acknowledged_by) == ("acknowledged", "alice")


def test_what_a_person_reported_is_covered_by_no_silence_of_alerts() -> None:
    report = Report("Payments fail", component="storage_cluster/s7")
    incident = commands.open_incident(report, ALICE).incident.id
    with transaction.atomic():
        assert suppressor.suppress([incident], timezone.now()) == 0


def test_a_silence_counts_the_alerts_of_the_incidents_that_it_covers() -> None:
    incident = fired(pay("a"), pay("b"))
    made = silence(incidents=[incident])
    assert silences.suppressed_counts() == {str(made.pk): 2}


def test_a_report_by_a_person_resumes_the_calls() -> None:
    incident = fired()
    silence(incidents=[incident])
    key = queries.get(incident).incident.dedup_key
    commands.open_incident(Report("Customers complain", component="storage_cluster/s7", dedup_key=key), ALICE)
    assert IncidentRow.objects.get(pk=incident).state == "open"


def resumed(incident: str) -> None:
    commands.undo(incident, "snooze", ALICE)


def state() -> str:
    return ticket(1).incident.state


def test_an_incident_that_a_person_resumes_in_spite_of_a_silence_calls_until_somebody_answers() -> None:
    incident = fired()
    silence(incidents=[incident])
    resumed(incident)
    time_passes()
    clock = at_present(incident)
    clock.later(1)
    assert (state(), calls(incident)) == ("open", ["alice"])
    clock.later(61)
    assert calls(incident) == ["alice", "bob"]
    assert any(
        "alice overrode the suppression of this incident: silenced by" in one for one in told(incident)
    )


def test_an_override_survives_a_restart_and_a_rebuild_of_the_read_models() -> None:
    incident = fired()
    silence(incidents=[incident])
    resumed(incident)
    rebuild()
    suppressor._seen.clear()
    time_passes()
    at_present(incident).later(1)
    assert (state(), calls(incident)) == ("open", ["alice"])


def test_a_silence_that_begins_after_the_override_suppresses_again() -> None:
    incident = fired()
    silence(incidents=[incident])
    resumed(incident)
    time_passes()
    assert state() == "open"
    silence("service", "pay")
    time_passes()
    assert (state(), ticket(1).incident.overridden) == ("snoozed", ())


def test_an_override_of_one_incident_leaves_others_suppressed() -> None:
    send(pay("a"), pay("b", labels={"alertname": "PaySlow"}, group="PaySlow"))
    one, other = ticket(1).incident.id, ticket(2).incident.id
    silence("service", "pay", incidents=[one, other])
    resumed(one)
    time_passes()
    assert (state(), ticket(2).incident.state) == ("open", "snoozed")


def test_an_override_ends_with_the_silence_and_with_the_incident() -> None:
    incident = fired()
    made = silence(incidents=[incident])
    resumed(incident)
    assert len(suppressor.overridden(incident, timezone.now())) == 1
    silences.end_silence(made, ALICE)
    assert suppressor.overridden(incident, timezone.now()) == []
    commands.resolve(incident, "storage_cluster/s7", "", ALICE)
    assert ticket(1).incident.overridden == ()


def test_an_incident_under_maintenance_that_a_person_resumes_stays_open() -> None:
    incident = fired()
    planned = window(components=["storage_cluster/*"])
    assert call("post", "maintenance", planned).status_code == 201
    time_passes()
    assert state() == "snoozed"
    resumed(incident)
    time_passes()
    at_present(incident).later(1)
    assert (state(), calls(incident)) == ("open", ["alice"])


def test_an_escalation_that_a_person_asks_for_overrides_a_silence() -> None:
    incident = fired()
    silence(incidents=[incident])
    escalate(incident, "customers complain", ALICE)
    time_passes()
    at_present(incident).later(1)
    assert (state(), calls(incident)) == ("open", ["alice"])


def test_the_page_of_a_resumed_incident_names_the_silence_in_spite_of_which_it_calls() -> None:
    incident = fired()
    silence(incidents=[incident])
    resumed(incident)
    page = signed_in("dora", is_staff=True).get("/incidents/1").content.decode()
    assert "data-overridden" in page
    assert "alice resumed notifications" in page


def test_the_api_names_what_is_overridden() -> None:
    incident = fired()
    made = silence(incidents=[incident])
    resumed(incident)
    view = queries.get(incident)
    (one,) = view.as_json(failure_shown(view, None))["overridden"]
    assert (one["id"], one["by"]) == (str(made.pk), "alice")


def test_a_silenced_incident_offers_once_to_end_its_silence_and_once_to_resume_it_alone() -> None:
    incident = fired()
    made = silence(incidents=[incident])
    browser = signed_in("dora", is_staff=True)
    page = browser.get("/incidents/1").content.decode()
    assert page.count(f'action="/silences/{made.pk}/end"') == 1
    assert page.count(">Resume notifications<") == 1
    ended = browser.post(f"/silences/{made.pk}/end", {"next": "/incidents/1"})
    assert ended["Location"] == "/incidents/1"
    time_passes()
    assert ticket(1).incident.state == "open"


def proposed(number: int = 1) -> Any:
    page = signed_in("dora", is_staff=True).get(f"/silences?incident={number}")
    return page.context["typed"]["matchers"], page.content.decode()


def test_a_silence_of_an_alert_without_labels_is_proposed_by_its_component_and_holds() -> None:
    send(alert("bare", component="storage_cluster/s7"))
    matchers, _ = proposed()
    assert matchers.splitlines()[0] == 'component="storage_cluster/s7"'
    incident = ticket(1).incident.id
    made = silences.create_silence(
        read_matchers(matchers),
        None,
        timezone.now() + HOUR,
        "alice",
        "known",
        ALICE,
        incidents=[incident],
    )
    assert (state(), ticket(1).incident.silence) == ("snoozed", str(made.pk))


def test_a_silence_of_an_alert_with_neither_label_nor_component_is_proposed_by_its_dedup_key() -> None:
    send(alert("only"))
    assert 'dedup_key="only"' in proposed()[0]


def test_alerts_that_share_nothing_lead_to_a_snooze_instead_of_an_empty_form() -> None:
    send(alert("a"), alert("b"))
    assert ticket(1).incident.firing == 2
    matchers, page = proposed()
    assert matchers == ""
    assert "data-nothing-shared" in page


def test_the_message_after_a_silence_is_plain_text_with_its_end() -> None:
    fired()
    browser = signed_in("dora", is_staff=True)
    form = {"matchers": 'alertname="PayErrors"', "span": "1 h", "comment": "known", "incident": "1"}
    said = [str(one) for one in browser.post("/silences", form, follow=True).context["messages"]]
    assert said[0].startswith("Silenced #1 until 2")
    assert "<time" not in said[0]
