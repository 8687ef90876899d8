"""Lines of incidents about silences, windows and rules that could not be read."""

from __future__ import annotations

from incidents.domain.suppression.rules import LONGEST, because, passed_over

SILENCE, WINDOW = ("the silence “disks”", "matchers: must be a list"), ("the maintenance window `w`", "zone")


def test_where_all_can_be_read_the_reason_is_as_it_was() -> None:
    assert because("same key", passed_over([])) == "same key"


def test_the_first_is_named_with_its_reason_and_the_others_are_counted() -> None:
    told = "the silence “disks” (and 2 others) had no effect because of an error: matchers: must be a list"
    assert because("same key", passed_over([SILENCE, WINDOW, WINDOW])) == f"same key; {told}"
    assert "(and 1 other) had" in passed_over([SILENCE, WINDOW])


def test_what_somebody_wrote_fills_no_screen() -> None:
    assert len(passed_over([("it", "x" * 10_000)])) < LONGEST + 80
