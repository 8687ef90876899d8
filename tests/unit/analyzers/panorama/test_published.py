"""The published verdict of Panorama: what an observer's newest observations say, and how views are counted."""

import pytest

from analyzers.builtin.panorama.published import Run, view
from tests.unit.analyzers.panorama.cases import Report, calls, named, verdict


@pytest.mark.parametrize(
    ("runs", "unhealthy"),
    [
        ([], None),
        ([("healthy", 3)], False),
        ([("unhealthy", 1)], True),
        ([("unhealthy", 1), ("healthy", 9)], True),  # the newest decides
        ([("healthy", 3), ("unhealthy", 2)], False),
        ([("healthy", 2), ("unhealthy", 3)], True),  # no strict majority
        ([("healthy", 5), ("unhealthy", 5)], False),  # the reading stops at the third that differs
        ([("healthy", 1), ("unhealthy", 2), ("healthy", 20)], False),  # older ones count until then
        ([("healthy", 1), ("pending", 9)], False),  # an older pending under a newer healthy is answered
        ([("pending", 3)], None),
        ([("pending", 4)], True),
        ([("unhealthy", 1), ("pending", 2)], True),
    ],
)
def test_a_view_is_read_from_the_newest_observation_backwards(
    runs: list[Run], unhealthy: bool | None
) -> None:
    assert view(runs) is unhealthy


def reports(bad: int, of: int) -> list[Report]:
    """So many of the observers see the subject fail for the last five seconds."""
    names = [f"proc/o{i}" for i in range(of)]
    return [
        *calls(names[:bad], "proc/s", "write", range(20), range(15, 20)),
        *calls(names[bad:], "proc/s", "write", range(20)),
    ]


@pytest.mark.parametrize(
    ("bad", "of", "blamed"), [(1, 5, False), (2, 5, False), (3, 5, True), (2, 4, True), (1, 1, True)]
)
def test_the_majority_of_observers_decides_and_a_tie_is_unhealthy(bad: int, of: int, blamed: bool) -> None:
    assert bool(named(verdict(reports(bad, of), method="paper"))) is blamed


def test_the_worst_context_decides_about_a_subject() -> None:
    rows = [*reports(3, 5), *calls([f"proc/o{i}" for i in range(5)], "proc/s", "read", range(20))]
    found = verdict(rows, method="paper")
    assert named(found) == ["proc/s"]
    assert found["suspects"][0]["summary"].endswith("in write.")


def test_what_is_older_than_its_time_to_live_is_forgotten() -> None:
    rows = calls(["proc/o1", "proc/o2"], "proc/s", "write", range(5), range(5))
    assert verdict(rows, method="paper")["status"] == "quiet"
    assert verdict(rows, method="paper", ttl_seconds=20)["status"] == "named"


def test_a_call_that_was_just_sent_says_nothing_yet() -> None:
    rows = calls(["proc/o1", "proc/o2"], "proc/s", "write", [18, 19], [18, 19], status="pending")
    assert verdict(rows, method="paper")["status"] == "quiet"


def test_calls_that_stay_without_an_answer_are_negative() -> None:
    rows = calls(["proc/o1", "proc/o2"], "proc/s", "write", range(12, 20), range(12, 20), status="pending")
    assert named(verdict(rows, method="paper")) == ["proc/s"]


def test_no_probability_is_given() -> None:
    (suspect,) = verdict(reports(3, 5), method="paper")["suspects"]
    assert suspect["score"] is None
