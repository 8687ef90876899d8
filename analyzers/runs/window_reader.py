"""Read the window of a run and its history, and keep what was read.

What is kept is the summed window in its canonical bytes, under their hash: it survives the telemetry itself,
and whoever judges it again sees exactly what was seen the first time. For that reason the first time, too,
reads from the kept bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from analyzers.contract import Analyzer, Input, Sums, Window
from analyzers.runs import feeds
from analyzers.runs.events import parse_instant
from analyzers.runs.models import Run, State, StoredWindow
from analyzers.runs.timing import before
from analyzers.runs.window_store import keep_window, still_kept
from ingest.queries import load_sums, read_window, watermark

Bounds = tuple[datetime, datetime]


class UnknownInputError(LookupError):
    """The analyzer has no input of that name."""


class WindowNotStoredError(LookupError):
    """A window that was kept is not there any more, or never was."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A window with its history, the hashes they are kept under, and the log position they were read at.

    `history` holds the end and the hash of each preceding window, oldest first.
    """

    window: Window
    hash: str
    history: tuple[tuple[datetime, str], ...]
    position: str


def read(run: Run, analyzer: Analyzer) -> Reading:
    """Read the run's window as it stands in the log now, and what came before it."""
    upto = watermark()
    chosen, sums = first_with_rows(
        choices(analyzer, run.input),
        lambda one: read_window(one, run.region, run.window_start, run.window_end, upto),
    )
    kept = keep_window(sums)
    wanted = analyzer.history if run.history_wanted is None else run.history_wanted
    span = feeds.span(chosen.kinds, run.region)
    earlier = before(run.window_start, run.length, wanted, span.first) if span is not None else []
    known = _already_kept(run, analyzer, chosen, earlier)
    history = tuple(
        (end, known.get(end) or keep_window(read_window(chosen, run.region, start, end, upto)))
        for start, end in earlier
    )
    return _load(run, chosen.name, kept, history, str(upto))


def read_kept(run: Run) -> Reading:
    """What a finished run read, from what it kept. Raises WindowNotStoredError."""
    history = tuple((parse_instant(past["end"]), past["hash"]) for past in run.history)
    still_kept({run.window_hash, *(kept for _, kept in history)})
    return _load(run, run.input, run.window_hash, history, run.input_position)


def choices(analyzer: Analyzer, name: str) -> tuple[Input, ...]:
    """The inputs to try, in order: the one named, or all. Raises UnknownInputError."""
    found = tuple(one for one in analyzer.inputs if name in ("", one.name))
    if not found:
        have = ", ".join(one.name for one in analyzer.inputs)
        raise UnknownInputError(f"{analyzer.name} has no input {name!r}; it has {have}")
    return found


def first_with_rows(
    inputs: tuple[Input, ...], read: Callable[[Input], Mapping[str, Sums]]
) -> tuple[Input, Mapping[str, Sums]]:
    """The first input that has rows in the window (of a state: in force at its start), else the first."""
    empty = None
    for one in inputs:
        sums = read(one)
        if any(table.rows or table.unmatched for table in sums.values()):
            return one, sums
        empty = sums if empty is None else empty
    assert empty is not None
    return inputs[0], empty


def _already_kept(run: Run, analyzer: Analyzer, chosen: Input, windows: list[Bounds]) -> dict[datetime, str]:
    """Hashes, by end, of those windows that a run of the same version already read and that are still kept."""
    done = Run.objects.filter(
        analyzer=analyzer.name,
        version=analyzer.version,
        region=run.region,
        input=chosen.name,
        state=State.DONE,
        window_end__in=[end for _, end in windows],
    ).order_by("created_at")
    bounds = set(windows)
    known = {one.window_end: one.window_hash for one in done if one.window in bounds}
    kept = still_kept(set(known.values()))
    return {end: digest for end, digest in known.items() if digest in kept}


def _load(
    run: Run, input: str, digest: str, history: tuple[tuple[datetime, str], ...], position: str
) -> Reading:
    bodies = {
        one.hash: bytes(one.body)
        for one in StoredWindow.objects.filter(hash__in={digest, *(kept for _, kept in history)})
    }

    def window(end: datetime, kept: str, past: tuple[Window, ...] = ()) -> Window:
        if kept not in bodies:
            raise WindowNotStoredError(
                f"the window ending {end.isoformat()} is not kept (sha256 {kept or 'unknown'})"
            )
        return Window(end - run.length, end, run.region, input, load_sums(bodies[kept]), past)

    past = tuple(window(end, kept) for end, kept in history)
    return Reading(window(run.window_end, digest, past), digest, history, position)
