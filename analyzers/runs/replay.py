"""Judge recorded telemetry again, window by window, with any parameters. Records nothing.

What `incidents` compares with the causes that people confirmed (`manage.py backtest`). Windows are cut as a schedule
cuts them: of one length, ends on multiples of `every` since the epoch, each with its predecessors as history.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from analyzers import runner
from analyzers.contract import Analyzer, Input, InvalidParameterError, ParamValue, Paths, Sums, Window
from analyzers.runs import scheduler
from analyzers.runs.timing import EPOCH, span_text
from analyzers.runs.windows import WindowSums, first_with_rows, windows_before
from ingest.queries import Position, read_window, watermark

MOST_WINDOWS = 100_000
AT_HAND = 512 * 2**20
"""Bytes of windows that are kept at hand: the history of one window was judged a while ago."""

Read = Callable[[Input, datetime, datetime], Mapping[str, Sums]]


class NothingToReplayError(ValueError):
    """No window of what was asked for lies in the recorded telemetry; the message says where it lies."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Replay of every window that lies wholly in `[start, end)`, of every region given."""

    analyzer: Analyzer
    params: Mapping[str, ParamValue]
    regions: tuple[str, ...]
    start: datetime
    end: datetime
    length: timedelta
    every: timedelta

    def ends(self, region: str) -> list[datetime]:
        """Ends of the windows of a region, oldest first; none before its telemetry begins."""
        span = scheduler.telemetry_span(scheduler.kinds_read(self.analyzer.name, ""), region)
        if span is None:
            return []
        first, last = max(self.start, span.first) + self.length, min(self.end, span.latest + self.every)
        steps = range(-((EPOCH - first) // self.every), (last - EPOCH) // self.every + 1)
        return [EPOCH + step * self.every for step in steps]

    def windows(self) -> list[tuple[str, datetime]]:
        """Region and end of each window, region by region. Raises NothingToReplayError."""
        found = [(region, end) for region in self.regions for end in self.ends(region)]
        if not found:
            raise NothingToReplayError(self._why())
        if len(found) > MOST_WINDOWS:
            raise NothingToReplayError(
                f"these are {len(found)} windows, more than {MOST_WINDOWS}; choose a longer --every"
            )
        return found

    def _why(self) -> str:
        kinds = scheduler.kinds_read(self.analyzer.name, "")
        spans = {region: scheduler.telemetry_span(kinds, region) for region in self.regions}
        known = [
            f"{region} from {_shown(one.first)} to {_shown(one.latest)}"
            for region, one in spans.items()
            if one
        ]
        if not known:
            where = f" from {', '.join(self.regions)}" if self.regions else ""
            return f"no telemetry that {self.analyzer.name} reads ({', '.join(kinds)}) has arrived{where}"
        return (
            f"no window of {span_text(self.length)} lies between {_shown(self.start)} and {_shown(self.end)} and in the"
            f" telemetry that was recorded: {'; '.join(known)}"
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """One window: its verdict as JSON, or why the analyzer gave none. `seen` is asked what the window held."""

    region: str
    start: datetime
    end: datetime
    verdict: Mapping[str, Any] | None
    error: str | None
    seen: WindowSums


def regions_of_analyzer(analyzer: str) -> tuple[str, ...]:
    """Every region from which something that the analyzer reads ever came."""
    return scheduler.regions_with_data(scheduler.kinds_read(analyzer, ""))


def replay(requested: Replay) -> Iterator[Replayed]:
    """Each window in turn, as the log stands now. Raises NothingToReplayError before the first."""
    return replay_windows(requested, requested.windows(), watermark())


def replay_windows(
    requested: Replay, windows: Iterable[tuple[str, datetime]], upto: Position
) -> Iterator[Replayed]:
    """These windows (region and end, region by region), as the log stood at `upto`."""
    region, read, first = None, _reader("", upto), EPOCH
    for region_now, end in windows:
        if region_now != region:
            region = region_now
            span = scheduler.telemetry_span(scheduler.kinds_read(requested.analyzer.name, ""), region)
            first = EPOCH if span is None else span.first
            read = _reader(region, upto)
        yield _judged(requested, _window(requested, region_now, end, first, read))


def judge_span(
    analyzer: Analyzer, params: Mapping[str, Any], region: str, start: datetime, end: datetime, upto: Position
) -> Mapping[str, Any] | None:
    """The verdict, as JSON, of one analyzer over `[start, end)` as one window, without history; None where it had no
    rows. Where the analyzer failed, or was given parameters that it does not have: its name, version and `error`."""
    chosen, sums = first_with_rows(analyzer.inputs, lambda one: read_window(one, region, start, end, upto))
    if not any(table.rows or table.unmatched for table in sums.values()):
        return None
    try:
        return runner.judge(analyzer, Window(start, end, region, chosen.name, sums), params)
    except runner.AnalysisError as failed:
        reason = failed.reason
    except InvalidParameterError as bad:
        reason = str(bad)
    return {"analyzer": analyzer.name, "version": analyzer.version, "error": reason}


def _judged(requested: Replay, window: Window) -> Replayed:
    verdict, error = None, None
    try:
        verdict = runner.judge(requested.analyzer, window, requested.params)
    except runner.AnalysisError as failed:
        error = failed.reason
    return Replayed(window.region, window.start, window.end, verdict, error, WindowSums(window.sums))


def _window(requested: Replay, region: str, end: datetime, first: datetime, read: Read) -> Window:
    start = end - requested.length
    chosen, sums = first_with_rows(requested.analyzer.inputs, lambda one: read(one, start, end))
    past = tuple(
        Window(opened, closed, region, chosen.name, read(chosen, opened, closed))
        for opened, closed in windows_before(start, requested.length, requested.analyzer.history, first)
    )
    return Window(start, end, region, chosen.name, sums, past)


def _reader(region: str, upto: Position) -> Read:
    """Reads windows and keeps the latest, as many as fit into `AT_HAND`."""
    cache: OrderedDict[tuple[str, datetime], Mapping[str, Sums]] = OrderedDict()
    cached = 0

    def read(one: Input, start: datetime, end: datetime) -> Mapping[str, Sums]:
        nonlocal cached
        key = (one.name, end)
        if key not in cache:
            cache[key] = read_window(one, region, start, end, upto)
            cached += _size(cache[key])
        cache.move_to_end(key)
        sums = cache[key]
        while cached > AT_HAND and cache:
            cached -= _size(cache.popitem(last=False)[1])
        return sums

    return read


def _size(window: Mapping[str, Sums]) -> int:
    """About how many bytes the sums of a window take."""
    arrays = (value.nbytes for sums in window.values() for value in sums.values.values())
    return sum(arrays) + sum(_size_of_key(key) for sums in window.values() for key in sums.keys.values())


def _size_of_key(key: Paths | Sequence[str] | np.ndarray[Any, Any]) -> int:
    if isinstance(key, Paths):
        return key.indptr.nbytes + key.indices.nbytes + _NAME * len(key.names)
    return key.nbytes if isinstance(key, np.ndarray) else _NAME * len(key)


_NAME = 80


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
