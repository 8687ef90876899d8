"""Work on a backtest, a turn at a time. Rows decide: a turn claims the backtest for a lease, writes windows and how far
it is in one transaction, and gives it back after a while, so that a long backtest keeps no worker from the runs that
watch the fleet. A worker that is killed leaves a lease that ends; the next turn goes on where it stopped.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from analyzers import queries as analyzers
from analyzers.queries import Cause, Judged, Named, Replay, Replayed, replay_windows, score
from incidents.scorecards.backtest import RULE, Backtest, confirmed, true_causes_in
from incidents.scorecards.models import BacktestRow, BacktestWindow, State
from ingest.commands import lease
from ingest.queries import Position, now_utc, watermark

log = structlog.get_logger("backtests")
Now = Callable[[], datetime]
TURN = 20.0  # seconds after which a turn ends
NOTE_EVERY = 1.0  # seconds after which what was judged is written down
MOST_ATTEMPTS = 3
"""Turns in a row that may end without a word before it counts as failed: it may be what kills them."""
MOST_SUSPECTS, MOST_SUMMARIES = 200, 5
"""Of a window, that are written down, and how many of them with their sentence."""


class BacktestAbortedError(Exception):
    """A backtest that cannot go on; the message says why."""


def send(now: datetime | None = None) -> int:
    """Tell workers of waiting backtests; how many."""
    now = now or now_utc()
    return lease.announce_waiting("scorecards.backtest", BacktestRow, now)


def drop_old(now: datetime) -> int:
    """Forget backtests that ended more than `DOSSIER_RUN_RETENTION` ago; how many."""
    old = BacktestRow.objects.filter(finished_at__lt=now - settings.RUN_RETENTION)
    return old.delete()[1].get("scorecards.BacktestRow", 0)


def turn(id: uuid.UUID, now: Now, seconds: float = TURN) -> bool:
    """Work on it for so long; whether there is more to do. False where it is over or in other hands."""
    row = lease.take_up(BacktestRow, id, now())
    if row is None:
        return False
    more = _turn(row, now, seconds)
    lease.let_go(row)
    return more


def _turn(row: BacktestRow, now: Now, seconds: float) -> bool:
    if row.attempts > MOST_ATTEMPTS:
        reason = f"given up after {MOST_ATTEMPTS} workers were lost over it, at window {row.done + 1}"
        _end(row, State.FAILED, now(), error=reason)
        return False
    try:
        requested = _replay_of(row)
        if row.total is None and not _plan(row, requested, now()):
            return False
        return _go_on(row, requested, now, time.monotonic() + seconds)
    except (BacktestAbortedError, analyzers.NothingToReplayError) as error:
        _end(row, State.FAILED, now(), error=str(error))
        return False


def _replay_of(row: BacktestRow) -> Replay:
    """Raises BacktestAbortedError where the analyzer is not the one that was asked for."""
    installed = analyzers.analyzers().get(row.analyzer)
    if installed is None or installed.version != row.version:
        there = "not installed any more" if installed is None else f"installed as {installed.version} now"
        raise BacktestAbortedError(f"{row.analyzer} {row.version} is {there}; start a new backtest")
    return Replay(installed, row.params, tuple(row.regions), row.start, row.end, row.length, row.every)


def _plan(row: BacktestRow, requested: Replay, now: datetime) -> bool:
    """Write down which windows, read at which place in the log, measured by which causes. Once."""
    same = row.against
    windows = requested.windows() if same is None else list(same.windows.values_list("region", "end"))
    causes = confirmed(row.start, row.end, row.regions)
    planned = [
        BacktestWindow(backtest=row, number=number, region=region, start=end - row.length, end=end)
        for number, (region, end) in enumerate(windows, start=1)
    ]
    row.total, row.position, row.started_at = len(planned), str(watermark()), now
    row.causes = [_cause_json(one) for one in causes]
    with transaction.atomic():
        written = {name: getattr(row, name) for name in ("total", "position", "started_at", "causes")}
        if not lease.write(row, **written):
            return False
        BacktestWindow.objects.bulk_create(planned, batch_size=1000)
    return True


def _go_on(row: BacktestRow, requested: Replay, now: Now, until: float) -> bool:
    left = list(row.windows.filter(status="").order_by("number"))
    causes = [_cause(one) for one in row.causes]
    judged: list[BacktestWindow] = []
    result = time.monotonic()
    replayed = replay_windows(
        requested, [(one.region, one.end) for one in left], Position.parse(row.position)
    )
    for window, found in zip(left, replayed, strict=True):
        _fill(window, found, causes)
        judged.append(window)
        at = time.monotonic()
        if at - result >= NOTE_EVERY or at >= until:
            if not _keep(row, judged, now()):
                return False
            judged, result = [], at
        if at >= until and window is not left[-1]:
            lease.write(row, state=State.QUEUED, claim=None, lease_until=None, sent_at=None, attempts=0)
            return True
    if _keep(row, judged, now()):
        _end(row, State.DONE, now(), result=result_of(row, requested, causes))
    return False


def _fill(window: BacktestWindow, found: Replayed, causes: Iterable[Cause]) -> None:
    if found.verdict is None:
        window.status, window.reason = "failed", found.error or ""
        return
    window.status, window.reason = found.verdict["status"], found.verdict["reason"] or ""
    window.suspects = [
        {
            "names": [one["component"], *one["ambiguous_with"]],
            "score": one["score"],
            "sure": one["sure"],
            "summary": one["summary"] if place < MOST_SUMMARIES else "",
        }
        for place, one in enumerate(found.verdict["suspects"][:MOST_SUSPECTS])
    ]
    window.held = sorted(true_causes_in(found, causes))


def _keep(row: BacktestRow, judged: list[BacktestWindow], now: datetime) -> bool:
    """Write down what was judged and how far that is; False where it was cancelled, or taken by another."""
    with transaction.atomic():
        done = row.done + len(judged)
        if not lease.write(row, done=done, attempts=1, lease_until=now + settings.RUN_LEASE_TIMEOUT):
            log.info("stopped", backtest=str(row.pk), done=row.done)
            return False
        BacktestWindow.objects.bulk_update(judged, ("status", "reason", "suspects", "held"), batch_size=500)
    row.done = done
    return True


def _end(row: BacktestRow, state: State, now: datetime, **changes: Any) -> None:
    lease.write(row, state=state, finished_at=now, lease_until=None, **changes)
    log.info("ended", backtest=str(row.pk), state=str(state), error=changes.get("error", ""))


def result_of(row: BacktestRow, requested: Replay, causes: Sequence[Cause]) -> dict[str, Any]:
    """The score of all windows against the causes."""
    windows = list(row.windows.all())
    counts = Counter(one.status for one in windows)
    judged = [
        Judged(
            one.region,
            one.start,
            one.end,
            tuple(Named(tuple(of["names"]), of["score"], of["sure"]) for of in one.suspects),
            frozenset(one.held),
        )
        for one in windows
        if one.status in ("named", "quiet")
    ]
    error = next((one.reason for one in windows if one.status == "failed"), None)
    return Backtest(requested, counts, tuple(causes), score(judged, causes, RULE), error).as_json()


_TIMES = ("since", "until", "reported_at")


def _cause_json(cause: Cause) -> dict[str, Any]:
    fields = {**asdict(cause), "names": sorted(cause.names)}
    return {**fields, **{name: fields[name] and fields[name].isoformat() for name in _TIMES}}


def _cause(body: dict[str, Any]) -> Cause:
    times = {name: body[name] and datetime.fromisoformat(body[name]) for name in _TIMES}
    return Cause(**{**body, **times, "names": frozenset(body["names"])})
