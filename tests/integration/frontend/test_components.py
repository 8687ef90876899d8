"""The browser of components and the page of one, over a topology that came through the endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.templatetags.dossier import component_url
from incidents import commands, queries
from incidents.commands import Report
from ingest.api import keys
from ingest.queries import Context, topology_snapshot

pytestmark = pytest.mark.usefixtures("log_database")
NOW = datetime.now(UTC).replace(microsecond=0)
BEFORE = NOW - timedelta(days=2)
BOB = Context("user:bob")


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    return client


def send(kind: str, rows: Iterable[Mapping[str, Any]], region: str = "default") -> None:
    key = keys.create(f"sender {kind} {datetime.now(UTC)}", ["telemetry"])
    answer = Client().post(
        f"/api/v1/telemetry/{kind}",
        json.dumps([{"region": region, **row} for row in rows]),
        "application/json",
        HTTP_AUTHORIZATION=f"Bearer {key}",
    )
    assert answer.status_code == 202, answer.content


def tell(name: str, *parents: str, at: datetime = BEFORE, **more: Any) -> dict[str, Any]:
    return {"time": at.isoformat(), "component": name, "parents": list(parents), **more}


def fleet() -> None:
    send(
        "topology",
        [
            tell("cluster/c1", "dc/d1"),
            tell("tor/t1", "cluster/c1", depends_on=["spine/s1"]),
            *(tell(f"host/h{n}", "tor/t1") for n in range(130)),
        ],
    )


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def test_the_browser_begins_with_what_nothing_contains(alice: Client) -> None:
    fleet()
    page = text(alice, "/components")
    assert ">dc/d1</a>" in page
    assert "1 cluster" in page
    assert ">tor/t1</a>" not in page


def test_a_single_root_is_open_and_trouble_comes_first(alice: Client) -> None:
    send("topology", [tell("tor/t1", "dc/d1"), *(tell(f"host/h{n}", "tor/t1") for n in range(130))])
    commands.open_incident(Report("Broken fan", component="host/h120"), BOB)
    page = text(alice, "/components")
    assert page.index(">dc/d1</a>") < page.index(">tor/t1</a>") < page.index(">host/h120</a>")
    assert page.index(">host/h120</a>") < page.index(">host/h0</a>")
    assert "1 open incident below" in page


def test_a_component_that_only_placements_name_is_found_and_said_to_be(alice: Client) -> None:
    fleet()
    now = BEFORE.isoformat()
    send("placement", [{"time": now, "unit": "vm/v1", "components": ["host/h7", "disk/HOT-7"]}])
    page = text(alice, "/components?q=hot")
    assert ">disk/HOT-7</a>" in page
    assert "named by placements only" in page
    assert ">disk/HOT-7</a>" not in text(alice, "/components?q=hot&region=north")


def test_a_branch_is_what_a_component_contains_a_hundred_at_a_time(alice: Client) -> None:
    fleet()
    first = text(alice, "/components/contained?of=tor/t1")
    second = text(alice, "/components/contained?of=tor/t1&cursor=100")
    assert (first.count('class="leaf"'), second.count('class="leaf"')) == (100, 30)
    assert "cursor=100" in first


def test_a_search_finds_parts_of_names_and_kinds(alice: Client) -> None:
    fleet()
    assert ">host/h77</a>" in text(alice, "/components?q=H77")
    assert ">host/h77</a>" not in text(alice, "/components?q=h77&kind=tor")


def test_nothing_found_and_nothing_received_say_what_to_do(alice: Client) -> None:
    assert "No topology has been received" in text(alice, "/components")
    fleet()
    assert "No component has “zz”" in text(alice, "/components?q=zz")


def test_a_page_names_the_neighbours_tickets_and_team(alice: Client) -> None:
    fleet()
    number = commands.open_incident(Report("Broken fan", component="tor/t1"), BOB).incident.number
    page = text(alice, "/components/tor/t1")
    assert all(f">{name}</a>" in page for name in ("dc/d1", "cluster/c1", "spine/s1", "host/h0"))
    assert f"/incidents/{number}" in page
    assert "1 open incident" in page
    assert "All 130" in page


def test_a_resolved_ticket_is_shown_where_it_was_the_confirmed_cause(alice: Client) -> None:
    fleet()
    number = commands.open_incident(Report("Slow", component="host/h1"), BOB).incident.number
    commands.resolve(queries.get(str(number)).incident.id, "tor/t1", "", BOB)
    assert "confirmed cause" in text(alice, "/components/tor/t1")


def test_the_past_of_the_topology_has_an_address(alice: Client) -> None:
    fleet()
    send("topology", [tell("host/new", "tor/t1", at=NOW - timedelta(hours=1))])
    then = quote((NOW - timedelta(hours=2)).isoformat())
    assert ">host/new</a>" in text(alice, "/components?q=new")
    assert ">host/new</a>" not in text(alice, f"/components?q=new&at={then}")


def test_components_of_a_moment_have_the_tickets_of_then(alice: Client) -> None:
    fleet()
    first = commands.open_incident(Report("Broken fan", component="tor/t1"), BOB).incident
    moment = quote(datetime.now(UTC).isoformat())
    commands.resolve(first.id, "none", "", BOB)
    later = commands.open_incident(Report("Hot again", component="tor/t1"), BOB).incident
    for pages, number, other in ((f"?at={moment}", first.number, later.number), ("", later.number, 0)):
        assert "1 open incident below" in text(alice, f"/components{pages}")
        page = text(alice, f"/components/tor/t1{pages}")
        assert "1 open incident<" in page
        assert (f"/incidents/{number}" in page, f"/incidents/{other}" in page) == (True, False)
    assert "beneath</span>" not in text(
        alice, f"/components?at={quote((NOW - timedelta(days=1)).isoformat())}"
    )


def test_a_snapshot_is_read_anew_when_topology_arrives_and_when_it_comes_into_force() -> None:
    send("topology", [tell("tor/a"), tell("tor/b", at=NOW - timedelta(minutes=1))])
    early = topology_snapshot("default", NOW - timedelta(hours=1))
    assert early is topology_snapshot("default", NOW - timedelta(hours=2))
    assert early.names == ("tor/a",)
    assert topology_snapshot("default", NOW).names == ("tor/a", "tor/b")
    send("topology", [tell("tor/c")])
    assert topology_snapshot("default", NOW - timedelta(hours=1)).names == ("tor/a", "tor/c")


def test_a_text_that_was_left_out_somewhere_hides_no_topology() -> None:
    send("unit_failure", [{"time": NOW.isoformat(), "unit": "vm/1"}])  # its symptom is the empty text
    send("topology", [tell("tor/a")])
    assert topology_snapshot("default", NOW).names == ("tor/a",)


def test_health_says_what_failed_and_when_it_was_out(alice: Client) -> None:
    placed = [
        {"time": BEFORE.isoformat(), "unit": f"vm/{n}", "components": [f"tor/t{n % 2}"]} for n in range(8)
    ]
    send("placement", placed)
    failed = [
        {"time": (NOW - timedelta(minutes=m)).isoformat(), "unit": unit}
        for m, unit in ((9, "vm/1"), (8, "vm/1"), (7, "vm/0"))
    ]
    send("unit_failure", failed)
    out = {"start": (NOW - timedelta(hours=30)).isoformat(), "end": (NOW - timedelta(hours=27)).isoformat()}
    send("outage", [{**out, "device": "tor/t1", "cause": "soft"}])
    page = text(alice, "/components/health?of=tor/t1")
    assert "1 of 4" in page
    assert "99.554" in page  # 3 of 672 hours
    assert "<td>soft</td>" in page


def test_any_name_has_a_page(alice: Client) -> None:
    for name in ("disk/a/b/c", "disk/ü-机", "disk/50%?#x", "disk/../x", "disk//x", "disk/x/"):
        assert f"<h1>{name}</h1>" in text(alice, component_url(name))


NONSENSE = (
    "/components/nothing",
    "/components/a%00/b",
    "/components/x/" + "y" * 500,
    "/components/named",
    "/components?cursor=-1",
    "/components?cursor=99999999999999999999",
    "/components?at=noon",
    "/components?q=%00",
    "/components/contained?of=tor/t1&by=colour",
    "/components/health?of=",
)


def test_what_makes_no_sense_is_said(alice: Client) -> None:
    for path in NONSENSE:
        assert "must" in text(alice, path, 400)


def test_an_unknown_component_says_so_and_who_would_get_its_ticket(alice: Client) -> None:
    page = text(alice, "/components/thing/unheard-of")
    assert "Unknown component thing/unheard-of" in page
    assert "no rule matches" in page
