"""Times, shares, figures and spans as the console writes them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontend import times
from frontend.templatetags import dossier as words
from frontend.time_input import parse_span

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (42, "42 s"), (420, "7 min"), (3600 * 5, "5 h"), (86400 * 12, "12 d")],
)
def test_an_age_is_said_in_its_largest_unit(seconds: int, said: str) -> None:
    assert times.words(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (12.5, ' class="number"'),
        ("tor/dc1-t12", ' class="name"'),
        ("link/leaf1~spine1", ' class="name"'),
        ("storage_cluster/of-a-name-that-is-too-long-for-a-line", ""),
        ("all its failures are on one host, and on one path", ' class="long"'),
        ("above its share", ""),
        ("36 h 45 min", ' class="nowrap"'),
        (None, ""),
    ],
)
def test_a_cell_is_set_as_what_it_holds(cell: object, said: str) -> None:
    assert words.cell_class(cell) == said


def test_only_a_time_that_is_past_is_now_and_an_age_has_seconds() -> None:
    just = datetime.now(UTC)
    assert ">now<" in times.ago(just)
    assert ">0 s<" in times.age(just)


def test_a_time_carries_its_exact_moment_as_a_title() -> None:
    assert 'title="2026-11-21 12:00:00 UTC"' in times.ago(NOON)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (1e-6, "< 0.1 %"),
        (0.021, "2.1 %"),
        (0.93, "93 %"),
        (0.9999, "> 99 %"),
        (1.0, "100 %"),
    ],
)
def test_a_share_is_never_a_false_zero_or_certainty(share: float | None, said: str) -> None:
    assert words.percent(share).replace("\u00a0", " ") == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (14820, "14\u202f820"),
        (1.2e-9, "1.2e-9"),
        (0.0081234, "0.008123"),
        (True, "yes"),
        (None, "–"),
        ("s7", "s7"),
        (0.0, "0"),
    ],
)
def test_a_figure_has_four_digits_at_most(value: Any, said: str) -> None:
    assert words.figure(value) == said


@pytest.mark.parametrize(("text", "minutes"), [("5 min", 5), ("1 h 30 min", 90), ("90s", 1.5), ("1d", 1440)])
def test_a_typed_span_is_read(text: str, minutes: float) -> None:
    assert parse_span(text) == timedelta(minutes=minutes)


@pytest.mark.parametrize("text", ["", "soon", "5", "-5 min", "5 min and a bit", "400 d", "99999999999 h"])
def test_a_typed_span_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse_span(text)


@pytest.mark.parametrize(
    "span", [timedelta(minutes=5), timedelta(hours=1), timedelta(days=1), timedelta(seconds=90)]
)
def test_a_span_that_is_shown_can_be_typed_back(span: timedelta) -> None:
    assert parse_span(words.duration(span)) == span


def test_an_interval_is_drawn_on_an_axis_that_ends_at_a_round_share() -> None:
    span = words.range_span({"failure_rate": 0.02, "low": 0.01, "high": 0.03})
    assert span == {"low": 20.0, "rate": 40.0, "high": 60.0, "end": 0.05}


def test_backticks_become_code_and_nothing_else_becomes_markup() -> None:
    assert words.ticks("rule <1> matched `tor/*`") == "rule &lt;1&gt; matched <code>tor/*</code>"


def test_a_lone_backtick_stays_one() -> None:
    assert words.ticks("a ` b") == "a ` b"


def test_json_in_a_page_cannot_end_its_block() -> None:
    assert "<" not in words.as_json({"title": "</script><script>alert(1)</script>"})


def test_a_window_says_its_date_once() -> None:
    assert ">21 Nov 12:00 to 13:00<" in times.span_to(NOON, NOON + timedelta(hours=1))
    assert ">21 Nov 12:00<" in times.span_to(NOON, NOON + timedelta(seconds=20))


def test_a_row_says_of_a_later_verdict_only_what_its_title_does_not() -> None:
    title = "tor/t1 fails 1.2 % of what depends on it"
    assert words.beyond(f"{title}, over 99 % likely at fault.", title) == "Over 99 % likely at fault"
    assert words.beyond("tor/t1 fails 4.8 % of it.", title) == "Latest: fails 4.8 % of it"
    assert words.beyond("tor/t2 fails 4.8 % of it.", title) == "tor/t2 fails 4.8 % of it"


def test_the_share_of_an_estimate_is_said_in_the_words_of_its_analyzer() -> None:
    share = {"failure_rate": 0.85, "low": 0.8, "high": 0.9}
    assert (
        words.measured({**share, "phrase": "loses {} of the probes"})
        == "loses <strong>85\u00a0%</strong> of the probes"
    )
    assert words.measured(share) == "failure rate <strong>85\u00a0%</strong>"
