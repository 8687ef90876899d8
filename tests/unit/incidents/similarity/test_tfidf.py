"""Past incidents that are like one: the same words, components, labels and causes, the rarer the more."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.similarity.text import Described, words
from incidents.similarity.similar import LEAST, Similarity

DISK = Described("Disk d7 is slow", "storage_cluster/s7", {"rack": "r1"}, "storage_cluster/s7")
FANS = Described("Fans of host h3 are loud", "host/h3", {"rack": "r9"}, "none")
LINK = Described("CRC errors rise", "link/a~b", {}, "link/a~b")


def nearest(asked: Described, *past: Described) -> list[tuple[int, float]]:
    model = Similarity([UUID(int=place) for place in range(len(past))], past)
    return [(id_.int, score) for id_, score in model.nearest(asked, 10)]


def test_the_same_ticket_is_as_alike_as_can_be() -> None:
    assert nearest(DISK, FANS, DISK, LINK)[0] == (1, 1.0)


def test_what_shares_nothing_is_left_out() -> None:
    assert [place for place, _ in nearest(DISK, LINK)] == []


def test_another_of_the_kind_is_alike_and_the_same_one_more() -> None:
    other = Described("Disk d9 is slow", "storage_cluster/s9", {"rack": "r4"}, "storage_cluster/s9")
    scores = dict(nearest(DISK, FANS, other, DISK))
    assert LEAST < scores[1] < scores[2]


def test_what_was_blamed_finds_what_was_confirmed() -> None:
    symptom = Described("vm/v1 cannot write", "vm/v1", {}, "storage_cluster/s7")
    assert nearest(symptom, FANS, DISK)[0][0] == 1


def test_of_equals_the_later_comes_first() -> None:
    assert [place for place, _ in nearest(DISK, DISK, FANS, DISK)][:2] == [2, 0]


def test_nothing_is_like_anything_before_there_is_a_past() -> None:
    assert nearest(DISK) == []
    assert nearest(DISK, Described("")) == []


def test_no_fault_is_no_cause_to_be_compared_by() -> None:
    assert not any(one.startswith("cause") for one in words(FANS))


TEXTS = st.text(max_size=40)
TICKETS = st.builds(
    Described, TEXTS, st.none() | TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=3), st.none() | TEXTS
)


@given(TICKETS, st.lists(TICKETS, max_size=6))
def test_any_tickets_can_be_compared(asked: Described, past: list[Described]) -> None:
    found = nearest(asked, *past)
    assert all(LEAST <= score <= 1.001 for _, score in found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
