"""Typed text finds commands, also with letters left out or exchanged, and finds nothing for what fits nothing."""

from __future__ import annotations

import pytest

from frontend.fuzzy import best, rank

COMMANDS = (
    "Acknowledge ack",
    "Hand over",
    "Who is on call",
    "Dark theme",
    "New silence",
    "Analyzers",
    "Settings",
)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("ack", "Acknowledge ack"),
        ("HAND", "Hand over"),
        ("handover", "Hand over"),
        ("who on call", "Who is on call"),
        ("wioc", "Who is on call"),
        ("silence", "New silence"),
        ("drak", "Dark theme"),
        ("anlayzers", "Analyzers"),
        ("aknowledge", "Acknowledge ack"),
        ("sttngs", "Settings"),
    ],
)
def test_the_command_that_was_meant_comes_first(typed: str, found: str) -> None:
    assert best(typed, COMMANDS, lambda one: one)[0] == found


@pytest.mark.parametrize("typed", ["zz", "on fire", "xylophone", "gpu-17", "."])
def test_nothing_is_found_for_a_text_that_fits_nothing(typed: str) -> None:
    assert best(typed, COMMANDS, lambda one: one) == []


def test_an_empty_text_keeps_the_order() -> None:
    assert best("", COMMANDS, lambda one: one) == list(COMMANDS)


def test_a_beginning_is_better_than_a_part_and_a_part_than_a_slip() -> None:
    ranks = [rank("dark", words) for words in ("Dark theme", "The dark", "Endarkened", "Drak theme")]
    assert None not in ranks
    assert ranks == sorted(ranks, key=lambda one: one or 0.0)
