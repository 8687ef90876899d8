"""Filters, orders and pages; the live list and the list of a moment agree."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User

from incidents import commands, queries
from incidents.commands import Report
from incidents.queries import Filter, list_incidents, parse_filters, parse_moment
from incidents.search import query
from ingest.queries import Context, watermark

ALICE = Context("user:alice")


@pytest.fixture
def ten(db: None) -> list[int]:  # noqa: ARG001
    """Their numbers, which go on where rolled-back tests left them."""
    return [queries.get(id_).incident.number for id_ in open_ten()]


@pytest.fixture
def ten_committed(log_database: str) -> list[str]:  # noqa: ARG001
    return open_ten()


def open_ten() -> list[str]:
    """Ten incidents of every state and severity; ids by number."""
    severities: list[Any] = ["info", "critical", "warning", "error", None]
    ids = []
    for n in range(10):
        component = f"storage_cluster/s{n}" if n % 2 else None
        report = Report(f"Incident {n}", component=component, severity=severities[n % 5], dedup_key=f"k{n}")
        ids.append(commands.open_incident(report, ALICE).incident.id)
    commands.acknowledge(ids[0], ALICE)
    User.objects.create(username="bob")
    commands.assign(ids[1], "bob", ALICE)
    commands.hand_over(ids[2], "network", "theirs", ALICE)
    commands.resolve(ids[3], "none", "", ALICE)
    commands.resolve(ids[4], "storage_cluster/s1", "", ALICE)
    commands.open_incident(Report("again", dedup_key="k5"), ALICE)
    return ids


SEARCHES: tuple[tuple[str, list[int]], ...] = (
    ("incident state:unresolved", [1, 2, 3, 6, 7, 8, 9, 10]),
    ("-state:open", [1, 4, 5]),
    ("component:storage_cluster/*7", [8]),
    ("-component:storage_cluster/ state:unresolved", [1, 3, 7, 9]),
    ("component:none,storage_cluster/s1", [1, 2, 3, 5, 7, 9]),
    ("owner:bob", [2]),
    ("-owner:bob severity:critical", [7]),
    ("-s9 hops:0 alerts:>1", [6]),
    ("hops:>0", [3]),
    ("age:<2h -age:<1h", []),
    ("is:merged", []),
    ("is:blamed", []),
    ("-is:flapping -is:firing hops:>=1", [3]),
    ("cause:none", [1, 2, 3, 6, 7, 8, 9, 10]),
    ("label:rack=r1", []),
    ("-label:rack hops:1", [3]),
)


@pytest.mark.parametrize(("text", "found"), SEARCHES)
def test_a_search_finds_the_same_now_and_in_the_past(
    ten_committed: list[str], text: str, found: list[int]
) -> None:
    asked = query.search_query(text, datetime.now(UTC), "alice", queries.team_slugs())
    assert asked.problems == ()
    for as_of in (None, watermark()):
        items = list_incidents(asked.filters, order="oldest", as_of=as_of).items
        assert [ten_committed.index(view.incident.id) + 1 for view in items] == found


def filters(given: dict[str, Any]) -> list[Filter]:
    return parse_filters({name: [v] if isinstance(v, str) else v for name, v in given.items()})


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"state": "acknowledged"}, [1]),
        ({"state": ["acknowledged", "resolved"]}, [1, 4, 5]),
        ({"severity": "critical"}, [2, 7]),
        ({"owner": "bob"}, [2]),
        ({"owner": "", "state": "open"}, [3, 6, 7, 8, 9, 10]),
        ({"team": "network"}, [3]),
        ({"component": "storage_cluster/s1"}, [2]),
        ({"confirmed_cause": "none"}, [4]),
        ({"dedup_key": "k7"}, [8]),
        ({"title": "INCIDENT 7"}, [8]),
        ({"q": "s9"}, [10]),
        ({"hops_min": "1"}, [3]),
        ({"alerts_min": "2"}, [6]),
        ({"confidence_min": "0"}, []),
        ({"resolved_after": "2020-01-01T00:00:00Z"}, [4, 5]),
        ({"opened_before": "2020-01-01T00:00:00Z"}, []),
    ],
)
def test_a_filter_lets_through_what_fits(ten: list[int], given: dict[str, Any], found: list[int]) -> None:
    page = list_incidents(filters(given), order="oldest")
    assert [ten.index(view.incident.number) + 1 for view in page.items] == found


@pytest.mark.parametrize("given", ["{}", "http://localhost:8000/incidents/{}"])
def test_an_incident_is_listed_by_number_or_address(ten: list[int], given: str) -> None:
    name = "number" if given == "{}" else "url"
    page = list_incidents(filters({name: given.format(ten[6])}))
    assert [view.incident.number for view in page.items] == [ten[6]]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"state": ["open", "resolved"]},
        {"owner": ""},
        {"q": "s1"},
        {"alerts_min": "2"},
        {"title": "incident"},
    ],
)
@pytest.mark.usefixtures("ten_committed")
def test_the_list_of_this_moment_is_the_live_list(given: dict[str, Any]) -> None:
    for order in queries.ORDERS:
        live = list_incidents(filters(given), order=order, limit=4)
        assert list_incidents(filters(given), order=order, limit=4, as_of=watermark()) == live


def test_the_list_of_a_moment_stays_whatever_happens_to_its_tickets(ten_committed: list[str]) -> None:
    asked = [filters(one) for one in ({}, {"state": "open"}, {"severity": "critical"}, {"q": "s1"})]

    def told(as_of: Any = None) -> list[Any]:
        found = list[object]()
        for one, order in product(asked, queries.ORDERS):
            page = list_incidents(one, order, limit=3, as_of=as_of)
            found.append(page)
            if page.next:
                following = list_incidents(one, order, page.next, 3, as_of)
                place = queries.list_position([one], order, following.items[-1], as_of=as_of)
                found += [following, place]
        return found

    before, then = told(), watermark()
    commands.open_incident(Report("Later", component="storage_cluster/s1", severity="critical"), ALICE)
    for id_ in (ten_committed[1], ten_committed[8]):
        commands.resolve(id_, "none", "", ALICE)
    commands.set_severity(ten_committed[9], "critical", ALICE)
    commands.reopen(ten_committed[4], "", ALICE)
    assert told() != before
    assert told(then) == before


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.usefixtures("ten_committed")
def test_pages_forth_and_back_hold_every_incident_once(past: bool) -> None:
    as_of = watermark() if past else None
    for order in queries.ORDERS:
        whole = [view.incident.number for view in list_incidents(order=order, as_of=as_of).items]
        pages = [list_incidents(order=order, limit=3, as_of=as_of)]
        while pages[-1].next:
            pages.append(list_incidents(order=order, limit=3, cursor=pages[-1].next, as_of=as_of))
        assert [view.incident.number for page in pages for view in page.items] == whole
        back = [list_incidents(order=order, limit=3, cursor=p.previous, as_of=as_of) for p in pages[1:]]
        assert [page.items for page in back] == [page.items for page in pages[:-1]]


def test_the_severity_order_shows_the_worst_first(ten: list[int]) -> None:
    first = list_incidents(order="severity").items[0].incident
    assert (first.severity, first.number) == ("critical", ten[6])


@pytest.mark.usefixtures("ten")
def test_counts_add_up_by_state() -> None:
    assert queries.counts() == {"open": 7, "acknowledged": 1, "snoozed": 0, "resolved": 2}


def test_a_past_moment_shows_evidence_and_timeline_of_then(ten_committed: list[str]) -> None:
    ten = ten_committed
    piece = {"kind": "text", "title": "Log", "text": "oops"}
    before = parse_moment(queries.get(ten[9]).position)
    commands.attach_evidence(ten[9], [piece], ALICE)
    assert queries.evidence(ten[9], before) == []
    assert queries.evidence(ten[9], watermark()) == queries.evidence(ten[9])
    assert queries.timeline(ten[9], watermark()) == queries.timeline(ten[9])
    assert len(queries.timeline(ten[9], before)) == 1
