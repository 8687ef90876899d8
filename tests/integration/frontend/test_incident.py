"""The page of an incident: what it says first, what it lets whom do, its timeline and what its evidence rests on."""

from __future__ import annotations

import csv
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from analyzers.queries import runs
from incidents import commands, queries
from incidents.teams.models import Membership, Team
from ingest.queries import watermark
from tests.browser import content
from tests.integration.frontend.test_pages import id_of, opened, signed_in
from tests.integration.incidents.alerts.test_correlate import alert, send
from tests.integration.incidents.incident.test_findings import START, run, suspect
from tests.integration.ingest.telemetry.test_topology import tell

pytestmark = pytest.mark.usefixtures("log_database")
HOSTILE = "=HYPERLINK(1)"


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", is_staff=True)


def body_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.content.decode()[:500]
    return response.content.decode()


def context(client: Client, address: str) -> Any:
    return client.get(address).context


def test_the_verdict_says_what_else_it_could_be_before_the_actions(alice: Client) -> None:
    run(0, suspect("storage_cluster/s7", "storage_cluster/s8", sure=True))
    body = body_of(alice, "/incidents/1")
    assert body.index("indistinguishable") < body.index('data-act="acknowledge"')
    shown = context(alice, "/incidents/1")["alternatives"]
    assert [(one.component, one.status) for one in shown] == [("storage_cluster/s8", "indistinguishable")]


def test_a_suspect_shows_its_indicator_and_its_path(alice: Client) -> None:
    traced = {"indicator": "all_reduce duration", "path": ["nic/h3-1", "job/pretrain"]}
    run(0, suspect("nic/h3-1", sure=True) | traced)
    body = body_of(alice, "/incidents/1")
    assert "all_reduce duration" in body
    assert [f'href="/components/{name}"' in body for name in traced["path"]] == [True, True]


def test_what_was_looked_into_is_cleared_with_its_figures(alice: Client) -> None:
    number = content.report_finding()
    shown = context(alice, f"/incidents/{number}")["alternatives"]
    assert shown[0].status == "cleared"
    assert "failures lie on paths through" in shown[0].why


def test_the_timeline_shows_the_kind_of_line_that_the_address_asks_for(alice: Client) -> None:
    number = opened()
    commands.comment(id_of(number), "The optic flaps", content.BOB)
    shown = context(alice, f"/incidents/{number}?show=people")["history"]
    assert [entry.type for entry in shown.recent] == ["incident.commented"]
    assert shown.hidden == shown.total - 1


def test_a_kind_of_line_that_is_none_is_a_400(alice: Client) -> None:
    assert alice.get(f"/incidents/{opened()}?show=people,nonsense").status_code == 400


def test_older_lines_are_folded(alice: Client) -> None:
    number = opened()
    for place in range(40):
        commands.comment(id_of(number), f"Note {place}", content.BOB)
    body = body_of(alice, f"/incidents/{number}")
    assert "Note 39" in body.partition("older entries")[0]
    assert "Note 2<" in body.partition("older entries")[2]


def test_every_moment_of_a_ticket_can_be_gone_to(alice: Client) -> None:
    number = opened()
    commands.acknowledge(id_of(number), content.BOB)
    for moment in context(alice, f"/incidents/{number}")["moments"]:
        page = context(alice, f"/incidents/{number}?as_of={moment['position']}")
        assert page["moments"][-1]["text"] == "bob acknowledged the incident"
        assert page["history"].recent[0].position == moment["position"]


def member(name: str, role: str, team: str = "storage") -> Client:
    client = signed_in(name)
    Membership.objects.create(
        team=Team.objects.get(slug=team), user=get_user_model().objects.get(username=name), role=role
    )
    return client


def test_what_a_role_would_be_refused_is_not_offered(alice: Client) -> None:
    number = opened("Disks are slow", component="storage_cluster/s1")
    bob, charlie = member("bob", "responder"), member("charlie", "viewer")
    for verb in ("acknowledge", "resolve", "hand_over", "merge", "comment"):
        assert f'data-act="{verb}"' in body_of(bob, f"/incidents/{number}")
        assert f'data-act="{verb}"' not in body_of(charlie, f"/incidents/{number}")
    assert "requires the role responder of storage; charlie is viewer of storage. bob can" in body_of(
        charlie, f"/incidents/{number}"
    )
    assert "refused" not in body_of(alice, f"/incidents/{number}")


def test_a_responder_of_another_team_is_offered_neither_hand_over_nor_resolve(alice: Client) -> None:
    del alice
    number = opened("Disks are slow", component="storage_cluster/s1")
    elsewhere = member("charlie", "responder", "network")
    body = body_of(elsewhere, f"/incidents/{number}")
    assert 'data-act="hand_over"' not in body
    assert 'data-act="resolve"' not in body


def test_a_refused_action_says_why_also_where_its_form_is_not_offered(alice: Client) -> None:
    del alice
    number = opened("Disks are slow", component="storage_cluster/s1")
    charlie = member("charlie", "viewer")
    response = charlie.post(f"/incidents/{number}/resolve", {"cause": "none"})
    assert response.status_code == 403
    assert "resolve requires the role responder of storage" in response.content.decode()


def test_the_hand_over_names_the_likely_teams_first(alice: Client) -> None:
    run(0, suspect("tor/t12", sure=True))
    commands.hand_over(id_of(1), "storage", "to be sure", content.BOB)
    views = context(alice, "/incidents/1/teams")["team_views"]
    assert (views[0].team, views[0].words) == ("network", "probably theirs: 93 %")
    assert {view.words for view in views[1:]} == {"probably not: at most 7 %"}
    assert "probably not" in body_of(alice, "/incidents/1/teams")


def test_evidence_is_a_file_also_without_scripts(alice: Client) -> None:
    number = opened()
    rows = [["disk/d1", HOSTILE], ["disk/d2", "-1 %"]]
    piece = {"kind": "table", "title": "Slow disks", "columns": ["disk", "why"], "rows": rows}
    commands.attach_evidence(id_of(number), [piece], content.ALICE)
    (shown,) = queries.evidence(str(number))
    response = alice.get(f"/incidents/{number}/evidence/{shown.version}/{shown.place}.csv")
    assert (
        response.headers["Content-Disposition"] == f'attachment; filename="incident-{number}-slow-disks.csv"'
    )
    read = list(csv.reader(StringIO(response.content.decode())))
    assert read == [["disk", "why"], ["disk/d1", f"'{HOSTILE}"], ["disk/d2", "'-1 %"]]


@pytest.mark.parametrize("place", ["1/9", "99999999999999999999/0", "0/0"])
def test_evidence_that_is_not_there_is_a_404(alice: Client, place: str) -> None:
    assert alice.get(f"/incidents/{opened()}/evidence/{place}.csv").status_code == 404


def test_the_evidence_of_a_run_is_a_file(alice: Client) -> None:
    content.report_finding()
    (one,) = runs()
    table = content.verdict()["evidence"][0]
    read = list(csv.reader(StringIO(alice.get(f"/runs/{one.id}/evidence/0.csv").content.decode())))
    assert (read[0], len(read) - 1) == (list(table["columns"]), len(table["rows"]))
    assert alice.get(f"/runs/{one.id}/evidence/999.csv").status_code == 404


def test_the_inputs_of_a_run_that_are_not_kept_are_said_to_be_gone(alice: Client) -> None:
    content.report_finding()
    (one,) = runs()
    assert "was deleted" in body_of(alice, f"/runs/{one.id}/inputs")
    assert alice.get(f"/runs/{one.id}/inputs?sum=paths").status_code == 404


def test_of_many_alerts_a_few_are_shown_and_the_rest_is_folded(alice: Client) -> None:
    send(*(alert(f"disk{number}") for number in range(9)))
    body = alice.get("/incidents/1").content.decode()
    above, _, below = body.partition('id="more-alerts"')
    assert "<summary>6 more alerts</summary>" in below
    assert (above.count('class="title"'), below.count('class="title"')) == (3, 6)
    send(alert("hot1", group="Hot"), alert("hot2", group="Hot"))
    assert "more-alerts" not in alice.get("/incidents/2").content.decode()


def test_the_page_says_why_alerts_joined(alice: Client) -> None:
    send(alert("a"), alert("b"))
    assert context(alice, "/incidents/1")["joins"][0][1] == 2


def test_a_past_moment_shows_who_was_to_be_called_then(alice: Client) -> None:
    number = opened()
    then = queries.timeline(str(number))[0].position
    commands.acknowledge(id_of(number), content.BOB)
    assert context(alice, f"/incidents/{number}?as_of={then}")["plan"].text.startswith("Starting")
    assert context(alice, f"/incidents/{number}")["plan"].text.startswith("Being worked on")


def test_what_fails_with_it_is_drawn_with_what_fires_there(alice: Client) -> None:
    for host in ("h1", "h2", "h3"):
        tell(START, f"host/{host}", parents=["tor/t12"])
    run(0, suspect("tor/t12", sure=True))
    send(alert("h1", component="host/h1"))
    body = body_of(alice, "/incidents/1/blast-radius")
    assert "3 dependent components" in body
    assert "<title>3 hosts, contents, directly; host/h1: 1 alert</title>" in body


def test_symptoms_without_known_dependents_are_counted(alice: Client) -> None:
    tell(START, "storage_cluster/s7", parents=["region/r1"])
    tell(START, "vm/v1", depends_on=["storage_cluster/s8"])
    run(0, suspect("storage_cluster/s7", "storage_cluster/s8", sure=True))
    send(alert("v1", component="vm/v1"))
    body = body_of(alice, "/incidents/1/blast-radius")
    assert "No known dependents; 1 symptom alert joined</p>" in body


def test_what_failed_with_it_is_drawn_as_it_was_known_then(alice: Client) -> None:
    tell(START, "host/h1", parents=["tor/t12"])
    run(0, suspect("tor/t12", sure=True))
    then = watermark()
    tell(START, "host/h2", parents=["tor/t12"])
    send(alert("h1", component="host/h1"))
    body = body_of(alice, f"/incidents/1/blast-radius?as_of={then}")
    assert "1 dependent component" in body
    assert "1 alert" not in body
    assert "not shown for past times" in body
    assert f'hx-get="/incidents/1/blast-radius?as_of={then}"' in body_of(alice, f"/incidents/1?as_of={then}")


def test_what_fails_with_an_unknown_component_is_said_to_be_unknown(alice: Client) -> None:
    number = opened("Fans are loud", component="fan/f1")
    assert "is not in the topology" in body_of(alice, f"/incidents/{number}/blast-radius")
    assert "names no component" in body_of(alice, f"/incidents/{opened()}/blast-radius")
    tell(START, "fan/f1", labels={"rack": "r7"})
    labelled = body_of(alice, f"/incidents/{number}/blast-radius")
    assert "without parents, contents or dependencies" in labelled
    assert "is not in the topology" not in labelled


def test_the_past_is_told_from_its_own_moment(alice: Client) -> None:
    number = opened()
    later = queries.get(str(number)).incident.opened_at + timedelta(minutes=9, seconds=5)
    body = body_of(alice, f"/incidents/{number}?as_of={later:%Y-%m-%dT%H:%M:%SZ}")
    header = body.partition('data-part="verdict"')[2].partition("<h1")[0]
    assert ">9 min earlier</time>" in header
    assert "data-ago" not in header


def test_no_call_was_due_where_no_policy_had_been_looked_up(alice: Client) -> None:
    number = opened()
    then = queries.timeline(str(number))[0].position
    assert "call was due" not in body_of(alice, f"/incidents/{number}?as_of={then}")
