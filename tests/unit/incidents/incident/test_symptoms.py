"""Alerts that join an incident as symptoms and leave it again."""

from __future__ import annotations

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import Explanation, IncidentReference, Member, Symptom, whys_of
from incidents.domain.incident.decide import decide
from incidents.domain.incident.timeline import sentence
from tests.unit.incidents.incident.cases import NOON, Recorded, after, blamed, finding, opened

T12 = "tor/t12"
OTHER = IncidentReference("22222222-2222-4222-8222-222222222222", 2, "h1 is slow")


def symptom(alert: str, host: str = "host/h1", severity: str = "warning") -> Symptom:
    how = Explanation(host, T12, 1, f"{host} is contained in {T12}")
    return Symptom(Member(alert, f"{host} is slow", severity), how)  # type: ignore[arg-type]


def told(command: c.Command, number: int = 0) -> str:
    state = after(blamed(finding(T12)))
    event = decide(state, command, NOON)[number]
    return sentence(Recorded(event.type, event.body, "system:incidents", NOON))


def test_symptoms_count_as_alerts_that_fire() -> None:
    state = after(blamed(finding(T12)), c.JoinSymptoms((symptom("a"), symptom("b"))))
    assert (state.alerts, state.firing) == (2, 2)


def test_the_timeline_says_why_they_joined_and_from_where() -> None:
    text = told(c.JoinSymptoms((symptom("a", "host/h2"), symptom("b")), OTHER))
    assert text == (
        "2 alerts joined as symptoms, last: host/h1 is slow; host/h1 is contained in tor/t12,"
        " likewise for 1 more component; from #2"
    )


def test_each_symptom_keeps_its_own_reason() -> None:
    state = after(blamed(finding(T12)))
    command = c.JoinSymptoms((symptom("a"), symptom("b", "host/h2"), symptom("c")))
    whys = whys_of([decide(state, command, NOON)[0].body])
    assert {alert: why.split()[0] for alert, why in whys.items()} == {
        "a": "host/h1",
        "b": "host/h2",
        "c": "host/h1",
    }


def test_a_worse_symptom_makes_the_ticket_worse() -> None:
    state = after(
        blamed(finding(T12, failure_rate=0.02)), c.JoinSymptoms((symptom("a", severity="critical"),))
    )
    assert state.severity == "critical"


def test_what_leaves_is_no_longer_counted() -> None:
    joined = after(blamed(finding(T12)), c.JoinSymptoms((symptom("a"), symptom("b"))))
    left = after(c.RemoveAlerts(("a", "b"), 1, "withdrawn"), state=joined)
    assert (left.alerts, left.firing) == (0, 1)


def test_the_timeline_says_why_they_left_and_where_to() -> None:
    text = told(c.RemoveAlerts(("a",), 1, "host/h1 is contained in tor/t12", OTHER))
    assert text == "an alert left this incident for #2: host/h1 is contained in tor/t12"


def test_a_ticket_that_people_work_on_is_told_what_explains_it() -> None:
    note = c.LinkToCause(OTHER, symptom("a").explanation, 3, "alice worked on this incident")
    state = after(opened())
    (event,) = decide(state, note, NOON)
    assert after(note, state=state) == state
    assert "explains 3 alerts" in sentence(Recorded(event.type, event.body, "system:incidents", NOON))


def test_symptoms_wake_no_snoozed_ticket() -> None:
    asleep = after(blamed(finding(T12)), c.Snooze(None, "known"))
    assert after(c.JoinSymptoms((symptom("a"),)), state=asleep).state == "snoozed"
