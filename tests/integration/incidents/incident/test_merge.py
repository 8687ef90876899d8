"""Merged incidents: what belonged to them goes on in their target, and comes back when they are split."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incidents import commands, queries
from incidents.commands import CommandRefusedError, InvalidValueError, Report
from incidents.domain.incident.evolve import fold
from incidents.incident.models import IncidentRow, MemberAlert
from incidents.incident.projection import state_of
from incidents.incident.rebuild import checksums, rebuild, rebuild_incidents
from ingest.queries import alerts, read_stream
from tests.integration.incidents.alerts.test_correlate import ALICE, alert, send, texts, ticket
from tests.integration.incidents.incident.test_api import Call, caller, opened
from tests.integration.incidents.incident.test_findings import S7, run, suspect

pytestmark = pytest.mark.usefixtures("log_database")


def id_of(number: int) -> str:
    return ticket(number).incident.id


def merge(source: int, into: int) -> None:
    commands.merge(id_of(source), id_of(into), "", ALICE)


def two_of_alerts() -> None:
    """#1 of rule Slow, with alert a; #2 of rule Hot, with alert b."""
    send(alert("a"))
    send(alert("b", group="Hot"))


def fires_in() -> dict[int, list[str]]:
    """By number: keys of the alerts that fire as members of an incident that is not resolved."""
    found: dict[int, list[str]] = {}
    for one in queries.list_incidents(order="oldest").items:
        if one.incident.state == "resolved":
            continue
        keys = [
            member.alert.key for member in queries.members(one.incident.id)[0] if member.status != "resolved"
        ]
        assert len(keys) == one.incident.firing
        found[one.incident.number] = sorted(keys)
    return found


def test_firing_alerts_move_to_the_target() -> None:
    two_of_alerts()
    merge(2, into=1)
    assert fires_in() == {1: ["a", "b"]}
    assert (ticket(2).incident.state, ticket(2).incident.merged_number) == ("resolved", 1)


def test_an_alert_of_a_merged_ticket_that_is_over_is_over_in_the_target() -> None:
    two_of_alerts()
    merge(2, into=1)
    send(alert("b", "resolved", group="Hot"))
    assert fires_in() == {1: ["a"]}
    send(alert("a", "resolved"))
    assert ticket(1).incident.state == "resolved"


def test_the_alerts_of_a_merged_and_split_ticket_as_of_now_are_those_of_now() -> None:
    two_of_alerts()
    merge(2, into=1)
    send(alert("c", group="Hot"))
    commands.split(id_of(2), "", ALICE)
    for number in ("1", "2"):
        past, total = queries.members(number, as_of=queries.parse_moment(ticket(int(number)).position))
        now, count_ = queries.members(number)
        assert ([one.id for one in past], total) == ([one.id for one in now], count_)


def test_a_new_alert_of_the_merged_tickets_rule_joins_the_target() -> None:
    two_of_alerts()
    merge(2, into=1)
    send(alert("c", group="Hot"))
    assert fires_in() == {1: ["a", "b", "c"]}


def test_an_alert_that_rested_when_its_ticket_was_merged_fires_in_the_target() -> None:
    two_of_alerts()
    send(alert("c", group="Hot"))
    send(alert("c", "resolved", group="Hot"))
    merge(2, into=1)
    send(alert("c", group="Hot"))
    assert fires_in() == {1: ["a", "b", "c"]}


def test_an_alert_after_the_target_was_resolved_opens_a_ticket() -> None:
    two_of_alerts()
    merge(2, into=1)
    send(alert("a", "resolved"), alert("b", "resolved", group="Hot"))
    send(alert("d", group="Hot"))
    assert fires_in() == {3: ["d"]}


def test_a_chain_of_merges_leads_to_its_end() -> None:
    two_of_alerts()
    send(alert("z", group="Third"))
    merge(2, into=1)
    merge(1, into=3)
    send(alert("c", group="Hot"))
    assert fires_in() == {3: ["a", "b", "c", "z"]}


def test_a_split_ticket_takes_its_firing_alerts_back_and_hears_them() -> None:
    two_of_alerts()
    merge(2, into=1)
    commands.split(id_of(2), "another shelf", ALICE)
    assert fires_in() == {1: ["a"], 2: ["b"]}
    send(alert("b", "resolved", group="Hot"))
    assert (ticket(1).incident.state, ticket(2).incident.state) == ("open", "resolved")


def test_an_alert_that_ended_while_merged_does_not_fire_after_the_split() -> None:
    two_of_alerts()
    merge(2, into=1)
    send(alert("b", "resolved", group="Hot"))
    commands.undo(id_of(2), None, ALICE)
    assert fires_in() == {1: ["a"], 2: []}


def test_a_report_with_the_key_of_a_merged_ticket_joins_the_target() -> None:
    first = commands.open_incident(Report("Disk 7", dedup_key="disk7"), ALICE).incident
    second = commands.open_incident(Report("Shelf 2", dedup_key="shelf2"), ALICE).incident
    commands.merge(second.id, first.id, "", ALICE)
    again = commands.open_incident(Report("Shelf 2 again", dedup_key="shelf2"), ALICE)
    assert (again.opened, again.incident.id) == (False, first.id)


def test_a_split_is_refused_while_another_ticket_holds_the_key() -> None:
    two_of_alerts()
    merge(2, into=1)
    send(alert("a", "resolved"), alert("b", "resolved", group="Hot"))
    send(alert("d", group="Hot"))
    with pytest.raises(CommandRefusedError, match="#3 is already open for the same dedup key"):
        commands.split(id_of(2), "", ALICE)


def test_a_finding_on_the_cause_of_a_merged_ticket_joins_the_target() -> None:
    send(alert("a", component="tor/t1"))
    run(0, suspect(S7, sure=True))
    merge(2, into=1)
    run(1, suspect(S7, sure=True))
    assert (ticket(1).incident.findings, ticket(1).incident.component) == (2, "tor/t1")
    assert len(queries.list_incidents().items) == 2


def test_an_alert_on_the_component_of_a_merged_finding_joins_the_target() -> None:
    send(alert("a"))
    run(0, suspect(S7, sure=True))
    merge(2, into=1)
    send(alert("b", group="Else", component=S7))
    assert fires_in() == {1: ["a", "b"]}


def test_what_a_merged_ticket_brought_sleeps_no_alert_away() -> None:
    two_of_alerts()
    merge(2, into=1)
    commands.snooze(id_of(1), None, "", ALICE)
    send(alert("c", group="Hot"))
    assert ticket(1).incident.state == "open"


def test_both_timelines_tell_of_the_merge() -> None:
    two_of_alerts()
    merge(2, into=1)
    assert texts(1)[-1] == "alice merged #2 “b is slow” into this incident, with 1 firing alert"
    assert texts(2)[-1] == "alice merged this incident into #1 “a is slow”"


def test_a_ticket_is_not_merged_into_itself() -> None:
    two_of_alerts()
    with pytest.raises(InvalidValueError, match="this incident itself"):
        merge(1, into=1)


def test_a_refused_merge_changes_neither_ticket() -> None:
    two_of_alerts()
    send(alert("a", "resolved"))
    with pytest.raises(CommandRefusedError, match="#1 is resolved"):
        merge(2, into=1)
    assert ticket(2).incident.state == "open"


def test_a_rebuild_finds_nothing_to_correct() -> None:
    two_of_alerts()
    merge(2, into=1)
    send(alert("c", group="Hot"), alert("b", "resolved", group="Hot"))
    commands.split(id_of(2), "", ALICE)
    assert rebuild().differed == ()


@pytest.fixture
def api() -> Call:
    return caller("incidents:read", "incidents:write")


def test_tickets_are_merged_and_split_from_either_side_over_the_api(api: Call) -> None:
    target, source = opened(api), opened(api, title="Shelf 2")
    number = api("GET", f"incidents/{target}").json()["number"]
    merged = api("POST", f"incidents/{source}/merge", {"into": number, "reason": "same shelf"}).json()
    assert merged["merged_into"] == {"id": target, "number": number}
    assert [one["id"] for one in api("GET", f"incidents/{target}").json()["merged"]] == [source]
    assert [one["id"] for one in api("GET", f"incidents?merged_into={number}").json()["results"]] == [source]
    split = api("POST", f"incidents/{target}/split", {"incident": source})
    assert (split.status_code, split.json()["id"], split.json()["state"]) == (200, source, "open")


@pytest.mark.parametrize(
    ("verb", "body"), [("merge", {"into": "no such"}), ("merge", {}), ("split", {"incident": 99999})]
)
def test_a_ticket_that_is_not_there_is_refused_by_field(
    api: Call, verb: str, body: dict[str, object]
) -> None:
    assert api("POST", f"incidents/{opened(api)}/{verb}", body).status_code == 400


KEYS = count()
steps = st.lists(
    st.one_of(
        st.tuples(st.just("fire"), st.sampled_from("abc")),
        st.tuples(st.just("rest"), st.sampled_from("abc")),
        st.tuples(st.just("merge"), st.sampled_from([(0, 1), (1, 2), (2, 0)])),
        st.tuples(st.just("split"), st.integers(0, 2)),
        st.tuples(st.just("snooze"), st.integers(0, 2)),
        st.tuples(st.just("resolve"), st.integers(0, 2)),
    ),
    max_size=10,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_whatever_is_merged_and_split_no_firing_alert_is_lost(sequence: list[tuple[str, object]]) -> None:
    tag = f"t{next(KEYS)}"
    firing = set("abc")
    send(*(alert(f"{tag}{key}", group=f"{tag}{key}") for key in "abc"))
    ids = [queries.get(str(one)).incident.id for one in _newest_three()]
    settled: set[str] = set()
    for what, which in sequence:
        if what in ("fire", "rest"):
            key = str(which)
            send(alert(f"{tag}{key}", "firing" if what == "fire" else "resolved", group=f"{tag}{key}"))
            (firing.add if what == "fire" else firing.discard)(key)
        else:
            settled |= _try(what, which, ids)
    _all_the_same(ids)
    members = MemberAlert.objects.filter(resolved=False).exclude(incident__state="resolved")
    known = {one.id: one.alert.key for one in alerts([str(m.alert) for m in members])}
    in_tickets = sorted(key.removeprefix(tag) for key in known.values() if key.startswith(tag))
    assert set(in_tickets) >= firing - settled
    assert len(in_tickets) == len(set(in_tickets))


def _newest_three() -> list[int]:
    return sorted(one.incident.number for one in queries.list_incidents(limit=3).items)


def _try(what: str, which: object, ids: list[str]) -> set[str]:
    """Keys of the alerts that a resolution settled: whoever resolves an incident has said that they are over."""
    try:
        if what == "merge":
            assert isinstance(which, tuple)
            commands.merge(ids[which[0]], ids[which[1]], "", ALICE)
            return set()
        assert isinstance(which, int)
        if what == "split":
            commands.split(ids[which], "", ALICE)
        elif what == "snooze":
            commands.snooze(ids[which], None, "", ALICE)
        else:
            commands.resolve(ids[which], "none", "", ALICE)
            return set("abc")
    except (CommandRefusedError, InvalidValueError):
        pass
    return set()


def _all_the_same(ids: list[str]) -> None:
    for id_ in ids:
        before = checksums([id_])
        assert state_of(IncidentRow.objects.get(pk=id_)) == fold(read_stream(f"incident/{id_}"))
        assert not rebuild_incidents([id_])
        assert checksums([id_]) == before
