"""Alerts that people take out of an incident: by the API, by the page, and put back."""

from __future__ import annotations

from uuid import uuid4

import pytest

from incidents import commands, queries
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.domain.incident.evolve import fold
from incidents.incident.rebuild import checksums, rebuild_incidents
from ingest.queries import read_stream
from tests.integration.frontend.test_pages import signed_in
from tests.integration.incidents.alerts.test_correlate import ALICE, alert, send, texts, ticket
from tests.integration.incidents.incident.test_api import caller
from tests.integration.incidents.incident.test_merge import fires_in, id_of

pytestmark = pytest.mark.usefixtures("log_database")


def three() -> dict[str, str]:
    """#1 with the alerts a, b and c; their ids by key."""
    send(alert("a"), alert("b"), alert("c"))
    return {one.alert.key: one.id for one in queries.members("1")[0]}


def split(*alerts: str, reason: str = "") -> int:
    return commands.split_off(id_of(1), list(alerts), ALICE, reason=reason).incident.number


def test_the_chosen_alerts_fire_in_a_ticket_of_their_own() -> None:
    ids = three()
    new = split(ids["b"], ids["c"], reason="another rack")
    assert fires_in() == {1: ["a"], new: ["b", "c"]}
    assert texts(1)[-1].startswith(f"alice split 2 alerts off into #{new} “")
    assert texts(new)[1].startswith("alice split 2 alerts off from #1 “")
    assert texts(new)[1].endswith("”: another rack")


def test_each_alert_says_why_it_is_there() -> None:
    ids = three()
    new = split(ids["b"])
    assert set(queries.why_members(str(new), [ids["b"]]).values()) == {"split off from #1"}


def test_what_the_alert_says_next_it_says_in_its_new_ticket() -> None:
    ids = three()
    new = split(ids["b"])
    send(alert("b", "resolved"))
    assert (ticket(new).incident.state, ticket(1).incident.firing) == ("resolved", 2)


def test_another_alert_of_the_rule_joins_the_old_ticket() -> None:
    ids = three()
    new = split(ids["b"])
    send(alert("d"))
    assert fires_in() == {1: ["a", "c", "d"], new: ["b"]}


def test_a_ticket_whose_last_firing_alerts_leave_is_over() -> None:
    ids = three()
    send(alert("a", "resolved"))
    split(ids["b"], ids["c"])
    assert ticket(1).incident.state == "resolved"
    assert texts(1)[-1] == "Dossier resolved the incident: the remaining alerts are resolved"


def test_it_can_be_taken_back() -> None:
    ids = three()
    new = split(ids["b"])
    commands.undo(id_of(new), "split_off", ALICE)
    assert fires_in() == {1: ["a", "b", "c"]}
    assert ticket(new).incident.merged_number == 1


def test_all_of_its_alerts_are_refused_and_nothing_is_stored() -> None:
    ids = three()
    before = ticket(1).position
    with pytest.raises(CommandRefusedError, match="nothing would be left"):
        split(*ids.values())
    assert (ticket(1).position, len(queries.list_incidents().items)) == (before, 1)


@pytest.mark.parametrize(
    "given", [[], ["no id"], [str(uuid4())], "text", [7], None, {"a": 1}, [None], ["a\0"]]
)
def test_alerts_that_are_none_of_its_own_are_wrong(given: object) -> None:
    three()
    with pytest.raises(InvalidValueError) as wrong:
        commands.split_off(id_of(1), given, ALICE)
    assert wrong.value.field == "alerts"


def test_a_rebuild_comes_to_the_same_rows_and_a_past_moment_to_the_same_alerts() -> None:
    ids = three()
    send(alert("c", "resolved"))
    new = split(ids["b"], ids["c"])
    both = [id_of(1), id_of(new)]
    before = checksums(both)
    for number in (1, new):
        assert fold(read_stream(f"incident/{id_of(number)}")) == ticket(number).incident
        past, total = queries.members(str(number), as_of=queries.parse_moment(ticket(number).position))
        now, count = queries.members(str(number))
        assert ([one.id for one in past], total) == ([one.id for one in now], count)
    rebuild_incidents(both)
    assert checksums(both) == before


def test_the_api_answers_the_new_ticket() -> None:
    ids, api = three(), caller("incidents:read", "incidents:write")
    answer = api("POST", f"incidents/{id_of(1)}/split_off", {"alerts": [ids["b"]], "title": "Rack r13"})
    assert (answer.status_code, answer.json()["title"], answer.json()["alerts"]) == (200, "Rack r13", 1)
    again = api("POST", f"incidents/{id_of(1)}/split_off", {"alerts": [ids["b"]]})
    assert (again.status_code, list(again.json()["errors"])) == (400, ["alerts"])


def test_the_page_splits_off_and_offers_to_put_back() -> None:
    ids, alice = three(), signed_in("alice", is_staff=True)
    assert "Split off…" in alice.get("/incidents/1").content.decode()
    after = alice.post("/incidents/1/split_off", {"alert": [ids["b"]]}, follow=True).content.decode()
    assert "Moved 1 alert to #2" in after
    assert "/incidents/2/put_back" in after
    alice.post("/incidents/2/put_back")
    assert fires_in() == {1: ["a", "b", "c"]}


@pytest.mark.parametrize(("chosen", "status"), [("none", 400), ("all", 409)])
def test_the_page_says_why_it_was_not_done_in_the_open_panel(chosen: str, status: int) -> None:
    ids, alice = three(), signed_in("alice", is_staff=True)
    form = {"alert": list(ids.values()) if chosen == "all" else [], "reason": "because"}
    answer = alice.post("/incidents/1/split_off", form)
    assert answer.status_code == status
    assert 'data-panel="split_off" open' in answer.content.decode()
    assert 'value="because"' in answer.content.decode()
