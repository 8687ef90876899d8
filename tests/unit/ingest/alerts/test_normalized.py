"""The form of an alert: what is shortened, what names a component, which times are read."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations.normalized import (
    LONGEST_LINE,
    LONGEST_NAME,
    MOST_LABELS,
    Notes,
    component_of,
    instant,
    key_of,
    severity_of,
)


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("Critical", "critical"),
        ("high", "error"),
        (" P3 ", "warning"),
        ("notice", "info"),
        ("purple", "warning"),
        (None, "warning"),
    ],
)
def test_words_of_senders_have_a_severity(word: object, severity: str) -> None:
    assert severity_of(word) == severity


@pytest.mark.parametrize(
    ("labels", "component"),
    [
        ({"component": "tor/dc1-t7", "instance": "a:9100"}, "tor/dc1-t7"),
        ({"component": "not one", "instance": "db-1:9100", "job": "node"}, "host/db-1"),
        ({"node": "n7", "pod": "web-1"}, "pod/web-1"),
        ({"host": "host/a"}, "host/a"),
        ({"service": "check out"}, "service/check-out"),
        ({"alertname": "Watchdog"}, None),
    ],
)
def test_labels_name_the_narrowest_component(labels: dict[str, str], component: str | None) -> None:
    assert component_of(labels) == component


def test_what_is_shortened_is_told() -> None:
    notes = Notes()
    assert len(notes.line("title", "x" * 1000)) == LONGEST_LINE
    assert notes.texts == ["title was shortened from 1000 to 300 characters"]


def test_control_characters_and_lone_surrogates_are_replaced() -> None:
    assert Notes().line("title", "a\x00b\ud800c\nd") == "a\ufffdb\ufffdc d"
    assert Notes().line("title", "disk \u202efull\u2028now") == "disk \ufffdfull now"


def test_labels_beyond_the_limit_are_counted() -> None:
    notes = Notes()
    assert len(notes.labels({f"l{n:03}": n for n in range(MOST_LABELS + 7)})) == MOST_LABELS
    assert notes.texts == ["7 of 57 labels are in the payload only"]


def test_a_link_that_is_no_address_is_left_out() -> None:
    notes = Notes()
    assert notes.links([("javascript:alert(1)", "x"), ("https://a/b", "b"), ("https://a/b", "again")]) == (
        {"href": "https://a/b", "text": "b"},
    )
    assert "no http address" in notes.texts[0]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-31T12:00:00.123456789+01:00", datetime(2026, 1, 31, 11, 0, 0, 123456, UTC)),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+05:00", None),
        (None, None),
    ],
)
def test_times_are_read_in_utc(text: str | None, at: datetime | None) -> None:
    assert instant(text) == at


@pytest.mark.parametrize("text", ["yesterday", "2026-01-31T12:00:00", 7])
def test_a_time_without_meaning_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="must"):
        instant(text)


def test_keys_that_differ_only_far_behind_stay_apart() -> None:
    one, other = key_of("x" * 1000 + "1"), key_of("x" * 1000 + "2")
    assert one != other
    assert len(one) == len(other) == LONGEST_NAME


def test_keys_that_differ_in_a_control_character_stay_apart() -> None:
    assert key_of("a\x00") != key_of("a\x01")


def test_a_key_that_fits_is_kept_as_it_is() -> None:
    assert key_of("db-1/disk") == "db-1/disk"


@given(st.text(st.characters()))
def test_a_line_is_the_same_whether_or_not_it_looked_clean(text: str) -> None:
    line = Notes().line("", text, 10_000)
    assert (
        line
        == re.sub(
            r"\s+",
            " ",
            re.sub(
                r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", "\ufffd", text
            ),
        ).strip()
    )
