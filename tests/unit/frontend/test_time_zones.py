"""Times by the clock of whoever reads: what a page writes, and what is typed into it."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from frontend import times as words
from frontend.templatetags.dossier import table_body
from frontend.time_input import field_value, parse_day, parse_moment
from frontend.times import offset, read_in, zone_called

NIGHT = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
BERLIN, KOLKATA, ST_JOHNS = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata"), ZoneInfo("America/St_Johns")


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "Mars/Olympus",
        "../../etc/passwd",
        "/etc/localtime",
        "Europe",
        "Europe/Berlin\0",
        "A" * 300,
        "+1",
    ],
)
def test_a_cookie_that_names_no_zone_leaves_pages_in_utc(name: str | None) -> None:
    assert zone_called(name).key == "UTC"


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "UTC"])
def test_a_cookie_names_any_zone_that_browsers_name(name: str) -> None:
    assert zone_called(name).key == name


def test_a_time_is_written_by_the_readers_clock_with_utc_on_hover() -> None:
    with read_in(BERLIN):
        said = words.clock(NIGHT)
    assert said == (
        '<time datetime="2026-11-21T23:30:00+00:00" title="2026-11-22 00:30:00 UTC+1\n2026-11-21 23:30:00 UTC">'
        "22 Nov 00:30</time>"
    )


@pytest.mark.parametrize("moment", ["2026-11-21 23:30:00 UTC", "2026-11-21T23:30:00Z"])
def test_a_moment_in_a_table_of_evidence_is_by_the_readers_clock(moment: str) -> None:
    with read_in(BERLIN):
        body = table_body([["host/<a>", moment]])
    assert ">2026-11-22 00:30:00 UTC+1</time>" in body
    assert "host/&lt;a&gt;" in body


def test_a_span_is_of_one_day_where_the_readers_clock_says_so() -> None:
    with read_in(BERLIN):
        said = words.span_to("2026-11-21T23:30:00Z", "2026-11-22T01:00:00Z")
    assert ">22 Nov 00:30 to 02:00<" in said


def test_after_the_page_is_written_times_are_in_utc_again() -> None:
    with read_in(BERLIN):
        pass
    assert words.clock_words(NIGHT) == "21 Nov 23:30"


@pytest.mark.parametrize(
    ("zone", "said"),
    [(BERLIN, "UTC+1"), (KOLKATA, "UTC+5:30"), (ST_JOHNS, "UTC-3:30"), (ZoneInfo("UTC"), "UTC")],
)
def test_a_clock_is_named_by_how_far_it_is_from_utc(zone: ZoneInfo, said: str) -> None:
    with read_in(zone):
        assert offset(NIGHT) == said


@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("America/New_York")])
@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_the_first_and_last_times_that_there_are_can_be_written(zone: ZoneInfo, moment: str) -> None:
    with read_in(zone):
        assert "UTC" in words.exact_words(moment)


def test_what_is_typed_is_meant_by_the_readers_clock() -> None:
    with read_in(BERLIN):
        assert parse_moment("2026-11-22T00:30") == NIGHT


def test_what_is_typed_with_an_offset_means_what_it_says() -> None:
    with read_in(BERLIN):
        assert parse_moment("2026-11-21T23:30Z") == NIGHT


def test_a_time_that_the_clock_skips_is_read_as_in_calendars() -> None:
    with read_in(BERLIN):
        assert parse_moment("2026-03-29T02:30") == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def test_a_field_shows_what_would_be_typed() -> None:
    with read_in(KOLKATA):
        assert parse_moment(field_value(NIGHT)) == NIGHT


def test_a_day_on_which_the_clock_goes_back_has_25_hours() -> None:
    with read_in(BERLIN):
        start, end = parse_day("2026-10-25")
    assert (end - start).total_seconds() == 25 * 3600


@pytest.mark.parametrize("text", ["", "tomorrow", "0001-01-01T00:00", "9999-12-31T23:59:59-14:00"])
def test_what_is_no_time_is_refused_in_words(text: str) -> None:
    with read_in(BERLIN), pytest.raises(ValueError, match="must be a time such as"):
        parse_moment(text)


def test_a_sentence_has_its_moments_by_the_readers_clock() -> None:
    said = "snoozed until 2026-11-22 23:30 UTC; end of the snooze at 2026-11-22T23:30:05Z"
    with read_in(BERLIN):
        assert words.instants_words(said) == (
            "snoozed until 2026-11-23 00:30 UTC+1; end of the snooze at 2026-11-23 00:30:05 UTC+1"
        )
        shown = words.instants(f"<b>{said}")
    assert shown.startswith("&lt;b&gt;snoozed until <time datetime=")
    assert shown.count("</time>") == 2


@pytest.mark.parametrize(
    "said", ["2026-13-40 10:00 UTC", "2026-11-22 10:00", "at 10:00 UTC", "2026-11-22T10:00Zulu"]
)
def test_what_is_no_moment_in_utc_stays_as_it_was_said(said: str) -> None:
    with read_in(BERLIN):
        assert words.instants_words(said) == said
