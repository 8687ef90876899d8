"""An incident as words: its own name weighs most, and its kind still counts."""

from __future__ import annotations

from incidents.domain.similarity.text import MOST_LABELS, Described, words


def test_a_component_is_itself_its_name_without_numbers_and_its_kind() -> None:
    assert words(Described("", "tor/dc1-t12")) == [
        "component:tor/dc1-t12",
        "component~tor/dc0-t0",
        "component^tor",
    ]


def test_a_class_of_causes_is_told_by_its_word() -> None:
    assert words(Described("", None, {}, "firmware")) == ["cause:firmware"]
    assert words(Described("", None, {}, "none")) == []


def test_numbers_in_a_title_say_nothing() -> None:
    assert words(Described("Disk 7 fails")) == words(Described("disk 812 fails"))


def test_words_are_compared_in_pieces_too() -> None:
    assert {"piece:late", "piece:aten"} <= set(words(Described("latency")))


def test_the_order_of_labels_is_irrelevant() -> None:
    assert words(Described("", None, {"a": "1", "b": "2"})) == words(
        Described("", None, {"b": "2", "a": "1"})
    )


def test_of_many_labels_some_are_read() -> None:
    assert len(words(Described("", None, {f"n{n}": "x" for n in range(500)}))) == MOST_LABELS
