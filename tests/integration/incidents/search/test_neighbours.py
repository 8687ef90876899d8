"""From an incident to the next one of the list that it was opened from, and back to its row."""

from __future__ import annotations

import html
import re
from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents import commands, queries
from incidents.commands import Report
from incidents.search.filters import ORDERS, Filter
from ingest.queries import Context, watermark

BOB = Context("user:bob")


@pytest.fixture
def alice(db: None) -> Client:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def opened(title: str, **fields: Any) -> int:
    return commands.open_incident(Report(title, **fields), BOB).incident.number


def id_of(number: int) -> str:
    return queries.get(str(number)).incident.id


def row_address(client: Client, list_: str, number: int) -> str:
    """Address that the row of an incident leads to in the inbox."""
    body = client.get(f"/?{list_}").content.decode()
    found = re.search(rf'href="(/incidents/{number}\?[^"]*)"', body)
    assert found is not None
    return html.unescape(found[1])


def beside(client: Client, address: str) -> dict[str, str]:
    """Of an incident's page: where the list's links lead, and how far one is."""
    body = client.get(address).content.decode()
    bar = body[body.index('class="among') : body.index('id="incident"')]
    links = {
        name: html.unescape(found[1])
        for name in ("prev", "next", "back")
        if (found := re.search(rf'(?:rel|class)="{name}" href="([^"]*)"', bar))
    }
    where = re.search(r'class="where[^"]*">([^<]*)', bar)
    return {**links, "where": where[1].strip() if where else ""}


def number_of(address: str) -> int:
    return int(urlsplit(address).path.rpartition("/")[2])


@pytest.fixture
def four(alice: Client) -> list[int]:  # noqa: ARG001
    """In the order of the inbox."""
    severities: tuple[Any, ...] = ("critical", "error", "warning", "info")
    return [opened(f"Quartz {severity}", severity=severity) for severity in severities]


def test_a_ticket_says_its_place_and_leads_on(alice: Client, four: list[int]) -> None:
    bar = beside(alice, row_address(alice, "search=quartz", four[1]))
    assert bar["where"] == "2 of 4"
    assert [number_of(bar[name]) for name in ("prev", "next")] == [four[0], four[2]]


def test_links_alone_go_through_the_whole_list(alice: Client, four: list[int]) -> None:
    address, gone = row_address(alice, "search=quartz", four[0]), [four[0]]
    while address := beside(alice, address).get("next", ""):
        gone.append(number_of(address))
    assert gone == four


def test_who_has_dealt_with_one_goes_on_where_they_were(alice: Client, four: list[int]) -> None:
    address = row_address(alice, "search=quartz", four[1])
    commands.acknowledge(id_of(four[1]), BOB)
    bar = beside(alice, address)
    assert (bar["where"], number_of(bar["next"])) == ("2 of 4", four[2])


def test_a_ticket_that_left_the_list_keeps_its_place_and_says_so(alice: Client, four: list[int]) -> None:
    address = row_address(alice, "search=quartz", four[2])
    commands.resolve(id_of(four[2]), "none", "", BOB)
    assert number_of(beside(alice, address)["next"]) == four[3]
    assert "no longer in this list" in alice.get(address).content.decode()


def test_in_work_comes_after_what_waits(alice: Client, four: list[int]) -> None:
    commands.acknowledge(id_of(four[0]), BOB)
    bar = beside(alice, row_address(alice, "search=quartz", four[3]))
    assert (bar["where"], number_of(bar["next"])) == ("3 of 4", four[0])


def test_an_address_without_a_mark_finds_the_place(alice: Client, four: list[int]) -> None:
    assert beside(alice, f"/incidents/{four[3]}?list=search%3Dquartz")["where"] == "4 of 4"


def test_back_leads_to_the_row(alice: Client, four: list[int]) -> None:
    back = beside(alice, row_address(alice, "search=quartz&order=newest", four[2]))["back"]
    assert parse_qs(urlsplit(back).query) == {
        "search": ["quartz"],
        "order": ["newest"],
        "tab": ["unresolved"],
    }
    assert f'id="{urlsplit(back).fragment}"' in alice.get(back).content.decode()


def test_back_from_far_down_leads_to_a_page_that_begins_with_the_row(alice: Client) -> None:
    numbers = [opened("Beryl waits") for _ in range(53)][::-1]
    back = beside(alice, f"/incidents/{numbers[51]}?list=search%3Dberyl")["back"]
    rows = re.findall(r'data-number="(\d+)"', alice.get(back).content.decode())
    assert rows == [str(number) for number in numbers[51:]]


def test_an_action_comes_back_to_the_same_place(alice: Client, four: list[int]) -> None:
    address = row_address(alice, "search=quartz", four[0])
    body = html.unescape(alice.get(address).content.decode())
    form = re.search(rf'action="(/incidents/{four[0]}/acknowledge\?[^"]*)"', body)
    assert form is not None
    answer = alice.post(form[1])
    assert answer.headers["Location"] == address


@pytest.mark.parametrize(
    "query",
    ["list=tab%3Dnone", "list=%00", "list=search%3Dquartz&place=9:x", "list=order%3D1&place=0:", "place=x"],
)
def test_a_list_that_makes_no_sense_leaves_the_ticket(alice: Client, four: list[int], query: str) -> None:
    assert alice.get(f"/incidents/{four[0]}?{query}").status_code == 200


@pytest.mark.usefixtures("log_database")
def test_the_past_says_what_the_present_says() -> None:
    severities: tuple[Any, ...] = ("critical", "error", "warning", "error")
    numbers = [opened(f"Quartz {severity}", severity=severity) for severity in severities]
    commands.acknowledge(id_of(numbers[2]), BOB)
    then = watermark()
    groups = [[Filter("state", "in", (state,))] for state in ("open", "acknowledged")]
    for order, number in product(ORDERS, numbers):
        view = queries.get(str(number))
        now = queries.list_position(groups, order, view)
        assert now is not None
        assert now == queries.list_position(groups, order, view, as_of=then)
