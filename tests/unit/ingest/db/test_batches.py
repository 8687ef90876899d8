"""Items whose work failed, and for how long they are passed over."""

from __future__ import annotations

import pytest

from ingest.db.database import Backoff, in_halves


def test_one_of_many_that_fails_is_found_and_the_others_go_on() -> None:
    done, failed = list[int](), dict[int, Exception]()

    def together(some: object) -> int:
        assert isinstance(some, list)
        if 5 in some:
            raise KeyError(5)
        done.extend(some)
        return len(some)

    assert in_halves(list(range(9)), together, failed) == 8
    assert (done, list(failed)) == ([0, 1, 2, 3, 4, 6, 7, 8], [5])


def test_who_failed_is_passed_over_for_a_while_and_the_first_reason_is_raised() -> None:
    seconds = [0.0]
    passed_over = Backoff("deliver", 10, lambda: seconds[0])
    with pytest.raises(KeyError):
        passed_over.add({"a": KeyError("a"), "b": ValueError("b")})
    seconds[0] = 9.0
    passed_over.add({})
    assert passed_over.ids() == ["a", "b"]
    seconds[0] = 10.0
    assert passed_over.ids() == []
