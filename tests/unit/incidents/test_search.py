"""The search of the inbox as text: words, fields, quotes, what is turned round, what cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.search import changed, chosen, matches_glob, read, suggestions
from incidents.search.filters import Filter
from incidents.search.query import search_query

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TEAMS = ("network", "storage")


def filters(text: str) -> tuple[Filter, ...]:
    found = search_query(text, NOW, "alice", TEAMS)
    assert found.problems == ()
    return found.filters


def problem(text: str) -> str:
    return " ".join(map(str, search_query(text, NOW, "alice", TEAMS).problems))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("disk", [Filter("title", "search", "disk")]),
        ('"disk is slow"', [Filter("title", "search", "disk is slow")]),
        ("-disk", [Filter("title", "search", "disk", True)]),
        ("team:storage", [Filter("team", "in", ("storage",))]),
        ("team:storage,network", [Filter("team", "in", ("storage", "network"))]),
        ("team:storage team:network", [Filter("team", "in", ("storage", "network"))]),
        ("-team:storage", [Filter("team", "in", ("storage",), True)]),
        ("severity:CRITICAL", [Filter("severity", "in", ("critical",))]),
        ("state:unresolved", [Filter("state", "in", ("open", "acknowledged", "snoozed"))]),
        ("owner:me", [Filter("owner", "in", ("alice",))]),
        ("owner:none", [Filter("owner", "in", (None,))]),
        ("#12", [Filter("number", "in", (12,))]),
        ("component:tor/dc1-*", [Filter("component", "glob", ("tor/dc1-*",))]),
        ("label:rack=r12", [Filter("labels", "label", ("rack", "r12"))]),
        ('label:rack="row 1, left"', [Filter("labels", "label", ("rack", "row 1, left"))]),
        ("label:rack", [Filter("labels", "label", ("rack", None))]),
        ("is:merged", [Filter("merged_number", "in", (None,), True)]),
        ("-is:merged", [Filter("merged_number", "in", (None,), False)]),
        ("age:<2h", [Filter("opened_at", "after", NOW - timedelta(hours=2))]),
        ("hops:>=2", [Filter("hops", "min", 2)]),
        ("confidence:>0.9", [Filter("confidence", "above", 0.9)]),
        ("", []),
    ],
)
def test_a_word_asks_for_what_it_says(text: str, meant: list[Filter]) -> None:
    assert list(filters(text)) == meant


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("severity:hgih", "severity:hgih: must be one of critical, error, warning, info"),
        ("severity:critcal", "did you mean critical?"),
        ("team:stroage", "did you mean storage?"),
        ("taem:storage", "did you mean team:?"),
        ('"disk', "a quotation mark is missing"),
        ("team:", "needs a value after the colon"),
        ("is:odd", "must be one of flapping"),
        ("age:2", "age:<2h (younger)"),
        ("hops:many", "must be a number"),
        ("hops:2.5", "must be a number"),
        ("age:<99999w", "must be such as"),
        ("number:x", "must be an incident number"),
        ("component:**********a*", "at most ten *"),
        ("x" * 1001, "at most 1000 characters"),
        ("a\0b", "control characters"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_would_be_right(text: str, says: str) -> None:
    assert says in problem(text)


def test_what_cannot_be_read_leaves_no_filter_behind() -> None:
    assert search_query("team:storage severity:hgih", NOW, "alice", TEAMS).filters == ()


def test_a_key_is_nobody() -> None:
    assert "name the owner" in str(search_query("owner:me", NOW).problems[0])


@given(st.text(max_size=200))
def test_any_text_is_read_or_said_why_not(text: str) -> None:
    found = search_query(text, NOW, "alice", TEAMS)
    assert not (found.problems and found.filters)


@pytest.mark.parametrize(
    ("before", "values", "after"),
    [
        ("disk", ["storage"], "disk team:storage"),
        ("team:network disk", ["storage"], "disk team:storage"),
        ("-team:network disk", ["storage"], "-team:network disk team:storage"),
        ("team:network disk", [], "disk"),
    ],
)
def test_a_shortcut_changes_its_own_field_alone(before: str, values: list[str], after: str) -> None:
    assert changed(before, "team", values) == after


def test_a_shortcut_shows_what_is_asked_when_it_is_one_thing() -> None:
    assert chosen(read("team:storage"), "team") == "storage"
    assert chosen(read("team:storage,network"), "team") == ""


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("tor/", "tor/dc1-t1", True),
        ("TOR/", "tor/dc1-t1", True),
        ("tor/*t1", "tor/dc1-t1", True),
        ("*dc1*", "tor/dc1-t1", True),
        ("tor/*t1", "tor/dc1-t12", False),
        ("a*a", "a", False),
        ("a*b*c", "a-c-b-c", True),
        ("a*b*b*c", "abc", False),
    ],
)
def test_a_glob_matches_the_whole_and_a_prefix_the_beginning(pattern: str, text: str, fits: bool) -> None:
    assert matches_glob(pattern, text) is fits


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("te", ["team:"]),
        ("disk sev", ["disk severity:"]),
        ("severity:c", ["severity:critical "]),
        ("-severity:c", ["-severity:critical "]),
        ("severity:info,c", ["severity:info,critical "]),
        ("team:st", ["team:storage "]),
        ('"open', []),
    ],
)
def test_the_last_word_is_offered_to_be_finished(text: str, offered: list[str]) -> None:
    assert [one.search for one in suggestions(text, lambda *_: TEAMS)] == offered
