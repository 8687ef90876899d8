"""Spans of time in words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.domain.oncall.spans import lead_words, span_words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (61, "61 s"), (600, "10 min"), (9000, "2.5 h"), (200_000, "2.3 d")]
)
def test_spans_are_written_as_people_say_them(seconds: float, words: str) -> None:
    assert span_words(seconds) == words


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (12, "12 min before the first report"),
        (-3, "3 min after it"),
        (0.5, "30 s before the first report"),
    ],
)
def test_a_lead_says_who_came_first(minutes: float, said: str) -> None:
    assert lead_words(timedelta(minutes=minutes)) == lead_words(60 * minutes) == said


def test_where_nobody_reported_there_is_no_lead() -> None:
    assert lead_words(None) == "–"
