"""The form of an alert: what is shortened, what names a component, which times are read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ingest.doors.alert import LONGEST_LINE, MOST_LABELS, Notes, component_of, instant, severity_of


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
    assert notes.told == ["title was shortened from 1000 to 300 characters"]


def test_control_characters_and_lone_surrogates_are_replaced() -> None:
    assert Notes().line("title", "a\x00b\ud800c\nd") == "a\ufffdb\ufffdc d"


def test_labels_beyond_the_limit_are_counted() -> None:
    notes = Notes()
    assert len(notes.labels({f"l{n:03}": n for n in range(MOST_LABELS + 7)})) == MOST_LABELS
    assert notes.told == ["7 of 57 labels are in the payload only"]


def test_a_link_that_is_no_address_is_left_out() -> None:
    notes = Notes()
    assert notes.links([("javascript:alert(1)", "x"), ("https://a/b", "b"), ("https://a/b", "again")]) == (
        {"href": "https://a/b", "text": "b"},
    )
    assert "no http address" in notes.told[0]


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
