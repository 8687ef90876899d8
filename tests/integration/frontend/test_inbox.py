"""The inbox over a real database: its search, the rows it reads again, what is done to several at once."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from frontend.views.inbox.listing import PAGE
from incidents import commands, queries
from incidents.commands import Report
from incidents.search.filters import GROUPINGS, group_of
from incidents.search.pagination import fields_of
from incidents.teams.models import Membership, Silence, Team
from ingest.queries import Context, position_at
from tests.browser.test_alerts import disk, send
from tests.integration.ingest.telemetry.test_topology import tell

pytestmark = pytest.mark.usefixtures("log_database")
BOB = Context("user:bob")


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    client = Client()
    get_user_model().objects.create(username="bob")
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def opened(title: str = "Rack 12 loses packets", **fields: Any) -> int:
    return commands.open_incident(Report(title, **fields), BOB).incident.number


def ticket(number: int) -> queries.Incident:
    return queries.get(str(number)).incident


def listed(response: Any) -> list[str]:
    return [view.incident.title for group in response.context["groups"] for view, _ in group.incidents]


def act(client: Client, verb: str, numbers: list[int], **form: str) -> Any:
    fields = {f"{verb}-{name}": value for name, value in form.items()}
    headers = {"Accept": "application/json"}
    return client.post("/incidents/bulk", {"verb": verb, "number": numbers, **fields}, headers=headers)


# Search
# ----------------------------------------------------------------------------------------------------------
def test_a_search_lists_what_it_asks_for(alice: Client) -> None:
    opened("Disk is slow", component="disk/d1", severity="error")
    opened("Disk is full", component="disk/d2", severity="info")
    assert listed(alice.get("/?search=disk+-severity:info")) == ["Disk is slow"]


def test_a_search_that_cannot_be_read_says_why_and_lists_nothing(alice: Client) -> None:
    opened()
    response = alice.get("/?search=severity:hgih")
    assert response.status_code == 400
    assert listed(response) == []
    assert "must be one of critical, error, warning, info" in response.content.decode()


def test_old_parameters_are_shown_in_the_field_of_the_search(alice: Client) -> None:
    opened("Disk is slow", component="disk/d1", severity="error")
    response = alice.get("/?team=storage&severity=error&q=disk")
    assert 'value="disk team:storage severity:error"' in response.content.decode()
    assert listed(response) == ["Disk is slow"]


def test_a_choice_beside_the_field_is_written_into_it(alice: Client) -> None:
    response = alice.get("/?tab=all&search=disk+severity:info&quick_severity=error&quick_team=&order=newest")
    assert response.headers["Location"] == "?tab=all&order=newest&search=disk+severity%3Aerror"


def test_a_search_for_several_teams_survives_a_choice_of_severity(alice: Client) -> None:
    response = alice.get("/?search=team:storage,network&quick_team=several&quick_severity=info")
    assert response.headers["Location"] == "?search=team%3Astorage%2Cnetwork+severity%3Ainfo"


def test_a_filter_that_the_search_has_no_words_for_is_shown_and_survives_a_choice(alice: Client) -> None:
    opened("Disk is slow")
    text = alice.get("/?hops_min=2&order=newest").content.decode()
    assert '<input type="hidden" name="hops_min" value="2">' in text
    assert '<a class="chip-link" href="?order=newest" aria-label="Remove the filter hops_min=2">' in text
    response = alice.get("/?hops_min=2&quick_severity=error&quick_team=&order=newest")
    assert response.headers["Location"] == "?order=newest&hops_min=2&search=severity%3Aerror"


def test_mine_are_the_ones_that_i_own(alice: Client) -> None:
    commands.assign(ticket(opened("Mine")).id, "alice", BOB)
    opened("Nobody's")
    assert listed(alice.get("/?search=owner:me")) == ["Mine"]


def test_the_api_takes_the_same_search(alice: Client) -> None:
    opened("Disk is slow", component="disk/d1")
    opened("Fans are loud")
    found = alice.get("/api/v1/incidents?search=component:disk/").json()["results"]
    assert [one["title"] for one in found] == ["Disk is slow"]
    refused = alice.get("/api/v1/incidents?search=taem:storage")
    assert refused.status_code == 400
    assert "did you mean team:?" in refused.content.decode()


def test_what_is_in_use_is_offered_while_one_types(alice: Client) -> None:
    opened(component="disk/d17", labels={"rack": "r12"})
    for typed, offered in (("component:disk/d", "component:disk/d17"), ("label:ra", "label:rack=r12")):
        assert offered in alice.get("/inbox/suggest", {"search": typed}).content.decode()


def test_a_moment_chosen_in_the_page_is_an_address_that_can_be_shared(alice: Client) -> None:
    response = alice.get("/?tab=all&at=2026-11-21T10:00")
    assert response.headers["Location"] == "?tab=all&as_of=2026-11-21T10%3A00%3A00Z"
    assert alice.get("/?at=soon").status_code == 400


# Rows
# ----------------------------------------------------------------------------------------------------------
def test_a_row_that_is_read_again_says_whether_the_list_still_has_it(alice: Client) -> None:
    stays, leaves = opened("Stays"), opened("Leaves")
    commands.resolve(ticket(leaves).id, "none", "", BOB)
    body = alice.get("/inbox/rows", {"row": [ticket(stays).id, ticket(leaves).id]}).content.decode()
    assert body.count("<tr data-id") == 2
    assert body.count("no longer in this list") == 1


def test_the_news_of_a_row_tell_how_many_tickets_there_are_now(alice: Client) -> None:
    number = opened()
    for waiting in (1, 2):
        body = alice.get("/inbox/rows", {"row": ticket(number).id}).content.decode()
        assert f"<title>({waiting}) Inbox" in body
        assert f'<span class="count">{waiting}</span>' in body
        opened(f"Another {waiting}")


def test_a_row_says_whether_it_is_on_the_first_page(alice: Client) -> None:
    below, above = opened("Below", severity="info"), opened("Above", severity="critical")
    for turn in range(PAGE - 1):
        opened(f"Between {turn}", severity="error")
    said = {
        number: "data-beyond" in alice.get("/inbox/rows", {"row": ticket(number).id}).content.decode()
        for number in (below, above)
    }
    assert said == {below: True, above: False}


def test_a_row_of_alerts_on_several_components_names_none_of_them(alice: Client) -> None:
    titles = ("Slow: 50+ alerts", "Slow: 50+ alerts on 50+ components of the kind disk")
    rows = [ticket(opened(title, component="disk/d1")).id for title in titles]
    chips = [alice.get("/inbox/rows", {"row": row}).content.decode().count("disk/d1</span>") for row in rows]
    assert chips == [1, 0]


def test_the_page_of_alerts_on_several_components_names_none_of_them_as_the_cause(alice: Client) -> None:
    titles = ("Slow: 50+ alerts", "Slow: 50+ alerts on 50+ components of the kind host")
    pages = [alice.get(f"/incidents/{opened(one, component='host/h1')}").content.decode() for one in titles]
    causes = [page.partition('id="cause-title"')[2].partition("</section>")[0] for page in pages]
    assert ["host/h1" in cause for cause in causes] == [True, False]
    assert "Many components" in causes[1]
    assert ["Hand to cluster" in page for page in pages] == [True, False]


@pytest.mark.parametrize("row", ["", "x", "x" * 36])
def test_a_row_that_is_none_is_no_failure(alice: Client, row: str) -> None:
    assert alice.get("/inbox/rows", {"row": row}).status_code in (200, 400)


def test_a_storm_is_announced_with_the_ticket_that_collects_it(alice: Client) -> None:
    number = opened("312 alerts of monitoring", dedup_key="storm:monitoring:network")
    body = alice.get("/").content.decode()
    assert "Alert storm." in body
    assert f'href="/incidents/{number}"' in body
    commands.resolve(ticket(number).id, "none", "", BOB)
    assert "Alert storm." not in alice.get("/").content.decode()


# Several at once
# ----------------------------------------------------------------------------------------------------------
def test_several_are_acknowledged_and_the_late_ones_are_named(alice: Client) -> None:
    first, second = opened(), opened()
    commands.acknowledge(ticket(second).id, BOB)
    answer = act(alice, "acknowledge", [first, second, 999_999]).json()
    assert [one["number"] for one in answer["done"]] == [first]
    assert [one["number"] for one in answer["refused"]] == [second, 999_999]
    assert "already acknowledged, by bob" in answer["refused"][0]["reason"]


@pytest.mark.parametrize(
    ("verb", "form", "changed"),
    [
        ("acknowledge", {}, ("state", "open", "acknowledged")),
        ("assign", {"owner": "bob"}, ("owner", None, "bob")),
        ("hand_over", {"team": "network", "reason": "the fabric"}, ("team", "storage", "network")),
        ("snooze", {"for": "4"}, ("state", "open", "snoozed")),
        ("set_severity", {"severity": "info"}, ("severity", "error", "info")),
        ("resolve", {"cause": "own"}, ("state", "open", "resolved")),
    ],
)
def test_what_is_done_to_several_is_taken_back_as_the_answer_says(
    alice: Client, verb: str, form: dict[str, str], changed: tuple[str, Any, Any]
) -> None:
    field, before, after = changed
    numbers = [opened(component=f"disk/d{n}", severity="error") for n in range(2)]
    answer = act(alice, verb, numbers, **form).json()
    assert [getattr(ticket(number), field) for number in numbers] == [after, after]
    for one in answer["done"]:
        undone = act(alice, one["undo"]["verb"], [one["number"]], **one["undo"]["fields"])
        assert undone.json()["refused"] == []
    assert [getattr(ticket(number), field) for number in numbers] == [before, before]


def test_several_are_merged_into_the_oldest_and_split_again(alice: Client) -> None:
    first, second, third = opened("One"), opened("Two"), opened("Three")
    answer = act(alice, "merge", [third, first, second]).json()
    assert {one["number"] for one in answer["done"]} == {second, third}
    assert ticket(second).merged_number == first
    undo = answer["done"][0]["undo"]
    act(alice, undo["verb"], [second, third], **undo["fields"])
    assert (ticket(second).merged_number, ticket(third).merged_number) == (None, None)


def test_a_ticket_that_names_no_component_has_none_of_its_own_as_cause(alice: Client) -> None:
    named, unnamed = opened(component="disk/d1"), opened("Fans are loud")
    answer = act(alice, "resolve", [unnamed, named], cause="own").json()
    assert ticket(named).confirmed_cause == "disk/d1"
    assert "names no component" in answer["refused"][0]["reason"]


@pytest.mark.parametrize(
    ("verb", "form", "field"),
    [
        ("hand_over", {"team": "network"}, "reason"),
        ("hand_over", {"team": "nope", "reason": "x"}, "team"),
        ("snooze", {"for": "9"}, "duration"),
        ("set_severity", {"severity": "high"}, "severity"),
        ("merge", {"into": "999999"}, "into"),
        ("explode", {}, "verb"),
        ("comment", {"text": "to all"}, "verb"),
    ],
)
def test_a_form_that_fits_no_ticket_is_refused_and_nothing_is_done(
    alice: Client, verb: str, form: dict[str, str], field: str
) -> None:
    number = opened(component="disk/d1")
    before = len(queries.incident_events(str(number)))
    answer = act(alice, verb, [number], **form)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert len(queries.incident_events(str(number))) == before


@pytest.mark.parametrize("number", ["", "x", "-1", "9" * 40, "\0", "٣"])
def test_a_number_that_is_none_is_refused(alice: Client, number: str) -> None:
    answer = alice.post(
        "/incidents/bulk",
        {"verb": "acknowledge", "number": number},
        headers={"Accept": "application/json"},
    )
    assert answer.status_code == 400


def test_who_may_not_is_told_for_each_ticket(alice: Client) -> None:
    number = opened(component="disk/d1")
    Membership.objects.create(
        team=Team.objects.get(slug="network"),
        user=get_user_model().objects.create(username="charlie"),
        role="responder",
    )
    charlie = Client()
    charlie.force_login(get_user_model().objects.get(username="charlie"))
    answer = act(charlie, "acknowledge", [number]).json()
    assert "acknowledge requires the role responder of storage" in answer["refused"][0]["reason"]
    assert act(alice, "acknowledge", [number]).json()["refused"] == []


def test_without_scripts_the_page_says_what_went_and_what_not(alice: Client) -> None:
    first, second = opened(), opened()
    commands.acknowledge(ticket(second).id, BOB)
    form = {"verb": "acknowledge", "number": [first, second]}
    body = alice.post("/incidents/bulk", form, follow=True).content.decode()
    assert "Acknowledged 1 incident" in body
    assert f"Not done for 1: #{second}: " in body


def test_all_that_match_are_named_by_number_as_far_as_one_action_goes(alice: Client) -> None:
    numbers = [opened("Disk is slow") for _ in range(3)]
    opened("Fans are loud")
    answer = json.loads(alice.get("/inbox/matching?search=disk&order=oldest").content)
    assert answer == {"numbers": numbers, "more": False}


def test_a_search_that_cannot_be_read_matches_nothing(alice: Client) -> None:
    opened()
    assert alice.get("/inbox/matching?search=severity:hgih").json() == {"numbers": [], "more": False}


def test_the_inbox_of_a_moment_says_which_it_is_and_offers_no_action(alice: Client) -> None:
    opened("Was there")
    body = alice.get("/?as_of=2100-01-01T00:00:00Z").content.decode()
    assert "2100-01-01 00:00:00 UTC</time></strong>" in body
    assert 'id="bulk-form"' not in body


def test_what_is_typed_counts_where_the_selects_were_not_touched(alice: Client) -> None:
    untouched = "quick_severity=&was_severity=&quick_team=&was_team="
    response = alice.get(f"/?search=severity:critical+team:storage+GPU&{untouched}")
    assert response.headers["Location"] == "?search=severity%3Acritical+team%3Astorage+GPU"
    chosen = "quick_severity=error&was_severity=&quick_team=&was_team="
    response = alice.get(f"/?search=team:storage+GPU&{chosen}")
    assert "severity%3Aerror" in response.headers["Location"]
    assert "team%3Astorage" in response.headers["Location"]


# Rows, groups, silences
# ----------------------------------------------------------------------------------------------------------
def statements(client: Client, address: str) -> int:
    client.get(address)  # what a process reads once
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_the_list_takes_as_many_statements_for_fifty_rows_as_for_two(alice: Client) -> None:
    pages = ("/", "/?group=team", "/?group=component", "/?group=cause", "/?tab=mine")
    for node in ("node/n1", "node/n2"):
        tell(timezone.now() - timedelta(hours=1), node, parents=["rack/r1"])
    for n in range(2):
        commands.assign(ticket(opened(f"Disk {n}", component="rack/r1", region="default")).id, "alice", BOB)
    few = [statements(alice, page) for page in pages]
    for n in range(48):
        labels = {"alertname": f"Slow{n % 5}"}
        opened(f"Disk {n} more", component=f"disk/d{n}", region="default", labels=labels)
    assert [statements(alice, page) for page in pages] == few


def test_a_row_tells_the_components_that_fail_with_it_and_its_trend(alice: Client) -> None:
    for node in ("node/n1", "node/n2"):
        tell(timezone.now() - timedelta(hours=1), node, parents=["rack/r1"])
    opened("Rack is dark", component="rack/r1")
    body = alice.get("/").content.decode()
    assert "2 nodes" in body
    assert "1 report in the last 24 h" in body


def test_mine_lists_what_i_own_and_counts_it_on_every_tab(alice: Client) -> None:
    commands.assign(ticket(opened("Mine")).id, "alice", BOB)
    commands.resolve(ticket(done := opened("Done")).id, "none", "", BOB)
    assert done
    opened("Unassigned")
    assert listed(alice.get("/?tab=mine")) == ["Mine"]
    tabs = {one["tab"].name: one["count"] for one in alice.get("/?tab=all").context["tabs"]}
    assert (tabs["mine"], tabs["unresolved"]) == ("1", "2")
    assert alice.get("/inbox/matching?tab=mine").json()["numbers"] == [
        view.incident.number
        for view in queries.list_incidents(queries.parse_filters({"owner": ["alice"]})).items
    ]


@pytest.mark.parametrize(
    ("grouping", "named"),
    [
        ("team", {"Storage": 3, "On-call": 1}),
        ("component", {"disk/d1": 2, "disk/d2": 1, "No component": 1}),
        ("cause", {"Slow": 2, "Full": 1, "Fans are loud": 1}),
    ],
)
def test_a_list_is_grouped_with_counts_and_each_group_is_a_list_of_its_own(
    alice: Client, grouping: str, named: dict[str, int]
) -> None:
    opened("Disk 1 is slow", component="disk/d1", labels={"alertname": "Slow"}, severity="critical")
    opened("Disk 1 is full", component="disk/d1", labels={"alertname": "Full"})
    opened("Disk 2 is slow", component="disk/d2", labels={"alertname": "Slow"})
    opened("Fans are loud", severity="info")
    groups = alice.get(f"/?group={grouping}").context["groups"]
    assert {one.heading: one.count for one in groups} == named
    assert groups[0].critical == 1
    for one in groups:
        alone = alice.get(f"/{one.rest}")
        assert sorted(listed(alone)) == sorted(view.incident.title for view, _ in one.incidents)


def test_a_large_group_shows_its_first_and_leads_to_all(alice: Client) -> None:
    for n in range(8):
        opened(f"Disk {n}", component="disk/d1")
    response = alice.get("/?group=component&order=oldest")
    assert listed(response) == [f"Disk {n}" for n in range(5)]
    (group,) = response.context["groups"]
    assert len(listed(alice.get(f"/{group.rest}"))) == group.count == 8


@pytest.mark.parametrize(
    "query", ["group=shoe", "in=x", "group=team&as_of=2026-11-21T10:00:00Z", "group=team&cursor=-1"]
)
def test_a_grouping_that_makes_no_sense_is_refused(alice: Client, query: str) -> None:
    opened()
    assert alice.get(f"/?{query}").status_code == 400


def test_the_group_of_a_row_and_of_a_past_state_are_the_same(alice: Client) -> None:
    opened("Disk 1 is slow", component="disk/d1", labels={"alertname": "Slow"})
    opened("Fans are loud")
    for view in queries.list_incidents().items:
        for grouping in GROUPINGS:
            name = group_of(grouping, fields_of(view))
            same = queries.list_incidents([queries.Filter(grouping, "grouped", name)]).items
            assert view.incident.number in [one.incident.number for one in same]
            past = queries.list_incidents(
                [queries.Filter(grouping, "grouped", name)], as_of=position_at(timezone.now())
            )
            assert {one.incident.id for one in past.items} == {one.incident.id for one in same}
    assert alice.get("/?group=cause").status_code == 200


def fired(rule: str, *disks: str) -> int:
    send(*(disk(name, rule) for name in disks))
    return queries.list_incidents(limit=1).items[0].incident.number


def test_an_incident_is_silenced_by_what_its_alerts_share_and_the_undo_ends_the_silence(
    alice: Client,
) -> None:
    number = fired("SlowReads", "s1", "s2")
    shown = alice.get("/silences/preview", {"number": str(number)}).content.decode()
    assert "Matches 2 firing alerts" in shown
    answer = act(alice, "silence", [number], span="2 h", comment="planned").json()
    (done,) = answer["done"]
    assert ticket(number).silence == done["undo"]["fields"]["silence"]
    undone = act(alice, done["undo"]["verb"], [number], **done["undo"]["fields"]).json()
    assert (undone["refused"], ticket(number).silence) == ([], None)
    again = act(alice, done["undo"]["verb"], [number], **done["undo"]["fields"]).json()
    assert again["refused"][0]["reason"] == "the silence had already ended"


def test_what_cannot_be_silenced_is_refused_and_says_what_to_do(alice: Client) -> None:
    number = opened("Reported by a person")
    assert "snooze it instead" in alice.get("/silences/preview", {"number": str(number)}).content.decode()
    refused = act(alice, "silence", [number], span="2 h", comment="planned").json()["refused"]
    assert "snooze it instead" in refused[0]["reason"]
    assert not Silence.objects.exists()


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"span": "soon", "comment": "x"}, "span"),
        ({"span": "2 h"}, "comment"),
        ({"span": "", "comment": "x"}, "span"),
    ],
)
def test_a_silence_without_reason_or_span_is_refused(alice: Client, form: dict[str, str], field: str) -> None:
    number = fired("SlowWrites", "w1")
    answer = act(alice, "silence", [number], **form)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not Silence.objects.exists()


def test_matchers_are_previewed_as_they_are_typed(alice: Client) -> None:
    fired("SlowSeeks", "k1", "k2")
    for typed, shown in (
        ('disk="k1"', "Matches 1 firing alert"),
        ('disk=~"z.*"', "No firing alert matches"),
        ('disk=~"["', "problem"),
    ):
        assert shown in alice.get("/silences/preview", {"matchers": typed}).content.decode()
    assert "problem" not in alice.get("/silences/preview", {"matchers": ""}).content.decode()


def test_the_target_of_a_merge_is_found_by_number_or_words_and_only_what_is_open_is_offered(
    alice: Client,
) -> None:
    own, wanted, over = opened("Disk is slow"), opened("Fabric flaps"), opened("Fabric flapped")
    commands.resolve(ticket(over).id, "none", "", BOB)
    for typed in ("fabric", f"#{wanted}", str(wanted)):
        body = alice.get("/inbox/find", {"q": typed, "not": str(own)}).content.decode()
        assert f'data-value="#{wanted}"' in body
        assert f'data-value="#{over}"' not in body
    assert "option" not in alice.get("/inbox/find", {"q": f"#{own}", "not": str(own)}).content.decode()


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("ack {n}", 'data-post="/incidents/{n}/acknowledge"'),
        ("hand over #{n}", 'data-href="/incidents/{n}#hand_over"'),
        ("silence #{n}", 'data-href="/silences?incident={n}#new"'),
        ("merge {n}", 'data-href="/incidents/{n}#more"'),
        ("silence", 'data-href="/silences#new"'),
        ("dark", 'data-do="theme:dark"'),
        ("go to grid", 'data-href="/grid"'),
        ("ack", 'data-fill="Acknowledge #"'),
        ("mine", 'data-href="/?tab=mine"'),
    ],
)
def test_the_palette_understands_commands(alice: Client, typed: str, shown: str) -> None:
    number = opened("Disk is slow")
    assert shown.format(n=number) in alice.get("/palette", {"q": typed.format(n=number)}).content.decode()


def test_the_palette_offers_no_command_on_an_incident_that_is_none(alice: Client) -> None:
    assert "data-post" not in alice.get("/palette", {"q": "ack 999999"}).content.decode()


def test_the_list_is_exported_as_it_is_searched(alice: Client) -> None:
    opened("Quartz fails")
    opened("=1+1 fails")
    opened("Basalt holds")
    answer = alice.get("/inbox.csv?search=fails&order=oldest")
    assert answer["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(answer.content.decode().splitlines()))
    assert [(row["title"], row["state"]) for row in rows] == [
        ("Quartz fails", "open"),
        ("'=1+1 fails", "open"),
    ]
    assert alice.get("/inbox.csv?search=priority:1").status_code == 400
    assert "/inbox.csv?search=fails" in alice.get("/?search=fails").content.decode()


def test_a_list_that_is_too_long_to_export_says_so(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontend.views.inbox.export.MOST", 2)
    monkeypatch.setattr("frontend.views.inbox.export.AT_ONCE", 1)
    for number in range(3):
        opened(f"Quartz {number}")
    lines = alice.get("/inbox.csv").content.decode().splitlines()
    assert (len(lines), lines[-1]) == (4, "Cut after 2 incidents; search for less")
