"""Recordings of applications: none is judged by itself."""

from datetime import UTC, datetime, timedelta

from analyzers.contract import Window
from tests.benchmarks.real_traces import Fault
from tests.benchmarks.trace_blame_stretches import HISTORIES, Stretch, cases

START = datetime(2026, 1, 5, tzinfo=UTC)


def window_at(hour: float) -> Window:
    begin = START + timedelta(hours=hour)
    return Window(begin, begin + timedelta(minutes=5), "synthetic", "spans", {})


def stretch(number: int) -> Stretch:
    fault = Fault("shop", f"{number}", 0, "instance/cart", "cpu_contention", ())
    return Stretch(fault, window_at(number), window_at(number + 0.5))


RECORDED = [stretch(number) for number in range(7)]


def test_no_recording_is_in_the_history_by_which_it_is_judged() -> None:
    for one, window, _ in cases(RECORDED):
        own = {each.start for each in (one.calm, one.faulty) if each is not None}
        assert window.start in own
        assert window.history
        assert not own & {each.start for each in window.history}


def test_faulty_stretches_are_in_no_history() -> None:
    faulty = {one.faulty.start for one in RECORDED if one.faulty is not None}
    assert not any(each.start in faulty for _, window, _ in cases(RECORDED) for each in window.history)


def test_each_stretch_is_judged_by_several_histories_that_share_no_recording() -> None:
    judged: dict[datetime, list[set[datetime]]] = {}
    for _, window, _ in cases(RECORDED):
        judged.setdefault(window.start, []).append({each.start for each in window.history})
    assert len(judged) == 2 * len(RECORDED)
    for histories in judged.values():
        assert len(histories) == HISTORIES
        assert sum(map(len, histories)) == len(set().union(*histories))
