import pytest

from ingest.log import append as module
from ingest.log.append import retrying
from ingest.log.types import StreamVersionError


class Contested:
    """Loses to another writer so many times, then succeeds."""

    def __init__(self, losses: int) -> None:
        self.losses = losses
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.losses:
            raise StreamVersionError("incident/1", self.calls)
        return "done"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.0)


def test_a_command_that_lost_is_tried_again() -> None:
    assert retrying(Contested(2)) == "done"


def test_after_the_last_attempt_the_conflict_is_the_callers() -> None:
    contested = Contested(9)
    with pytest.raises(StreamVersionError):
        retrying(contested, attempts=3)
    assert contested.calls == 3


def test_other_errors_are_not_tried_again() -> None:
    calls = []

    def fail() -> None:
        calls.append(1)
        raise KeyError("other")

    with pytest.raises(KeyError):
        retrying(fail)
    assert calls == [1]
