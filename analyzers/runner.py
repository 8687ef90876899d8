"""The one place that calls an analyzer: bounds its time, catches what it raises, checks and completes its
verdict.

A crash, an overrun or a malformed verdict is `AnalysisError` with its cause, never a verdict. What comes
back is the verdict as JSON values: the same window, version and parameters give the same bytes
(`verdict_json`) apart from `measures.seconds`.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import numpy as np

from analyzers.contract import (
    FAILS,
    Analyzer,
    Assumption,
    Deferred,
    Evidence,
    Paths,
    Sums,
    Suspect,
    Verdict,
    Window,
    check_params,
)
from ingest.log.types import rfc3339
from ingest.telemetry.kinds.declare import COMPONENT_FORM, is_component

TIME_LIMIT = 120.0
"""Seconds an analyzer may take unless the caller says otherwise."""

_SIGNIFICANT = 9  # digits kept: more would only record how a library summed


class AnalysisError(Exception):
    """The analyzer crashed, took too long or returned something that is no verdict; `__cause__` is what it
    raised.
    """

    def __init__(self, analyzer: Analyzer, reason: str) -> None:
        self.analyzer = analyzer.name
        self.version = analyzer.version
        self.reason = reason
        super().__init__(f"{analyzer.name} {analyzer.version}: {reason}")


class _AnalyzerTimeoutError(BaseException):
    """Raised inside the analyzer's thread when its time is up."""


def judge(
    analyzer: Analyzer, window: Window, params: Mapping[str, object] | None = None, limit: float = TIME_LIMIT
) -> dict[str, Any]:
    """Run one analyzer on one window and return its verdict as JSON values.

    `params` may be partial: defaults are filled in and recorded. Raises `analyzers.contract.InvalidParameterError` for
    parameters that the analyzer cannot take, and AnalysisError for everything that goes wrong inside it.
    `limit` is in seconds.
    """
    complete = MappingProxyType(check_params(analyzer, params or {}))
    verdict, seconds = _call(analyzer, frozen(window), complete, limit)
    try:
        return _as_json(analyzer, window, dict(complete), verdict, seconds)
    except (TypeError, ValueError, AttributeError) as error:
        raise AnalysisError(analyzer, f"returned a malformed verdict: {error}") from error


def verdict_json(verdict: Mapping[str, Any]) -> bytes:
    """Canonical bytes of a verdict, for hashing and comparing: keys sorted, without `measures.seconds`."""
    measures = {name: value for name, value in verdict["measures"].items() if name != "seconds"}
    stable = {**verdict, "measures": measures}
    text = json.dumps(stable, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def frozen(window: Window) -> Window:
    """The same window with read-only arrays and mappings, so that an analyzer cannot write to what it is
    given.
    """
    sums = {name: _frozen_sums(one) for name, one in window.sums.items()}
    history = tuple(frozen(past) for past in window.history)
    return replace(window, sums=MappingProxyType(sums), history=history)


def _frozen_sums(sums: Sums) -> Sums:
    keys = {name: _frozen_key(key) for name, key in sums.keys.items()}
    values = {name: _read_only(value) for name, value in sums.values.items()}
    return replace(sums, keys=MappingProxyType(keys), values=MappingProxyType(values))


def _frozen_key(key: Any) -> Any:
    if isinstance(key, Paths):
        return Paths(key.names, _read_only(key.indptr), _read_only(key.indices))
    return _read_only(key) if isinstance(key, np.ndarray) else tuple(key)


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


def _call(
    analyzer: Analyzer, window: Window, params: Mapping[str, Any], limit: float
) -> tuple[Verdict, float]:
    """The verdict, and the seconds that it took without the import of a deferred method.

    Called in a thread of its own: the only bound that holds in any process and thread, worker or web.

    When the time is up an exception is put into that thread; a call into compiled code ends before it is
    seen, and until then the thread lives on as a daemon with nobody waiting for it.
    """
    outcome: list[tuple[Verdict, float]] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            analyze = analyzer.analyze
            analyze = analyze.load() if isinstance(analyze, Deferred) else analyze
            started = time.perf_counter()
            outcome.append((analyze(window, params), time.perf_counter() - started))
        except _AnalyzerTimeoutError:
            return
        except Exception as error:  # noqa: BLE001  this is the shell: whatever an analyzer raises is recorded as such
            failure.append(error)

    thread = threading.Thread(target=run, name=f"analyzer-{analyzer.name}", daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_AnalyzerTimeoutError)
        )
        raise AnalysisError(analyzer, f"took longer than {limit:g} s")
    if failure:
        reason = f"{type(failure[0]).__name__}: {failure[0]}{_place(analyzer, failure[0])}"
        raise AnalysisError(analyzer, reason) from failure[0]
    if not outcome:
        raise AnalysisError(analyzer, "ended without a verdict")
    return outcome[0]


def _place(analyzer: Analyzer, error: BaseException) -> str:
    """The deepest line of the analyzer's own package in a traceback, as ` (module, line N)`; empty without one."""
    analyze = analyzer.analyze
    module = analyze.address if isinstance(analyze, Deferred) else getattr(analyze, "__module__", "")
    package = module.partition(":")[0].partition(".")[0]
    places = [
        f" ({name}, line {line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if (name := frame.f_globals.get("__name__", "")).partition(".")[0] == package and name != __name__
    ]
    return places[-1] if places else ""


def _as_json(
    analyzer: Analyzer, window: Window, params: dict[str, Any], verdict: Verdict, seconds: float
) -> dict[str, Any]:
    if not isinstance(verdict, Verdict):
        raise TypeError(f"{type(verdict).__name__} instead of a Verdict")
    _check_status(verdict)
    return {
        "analyzer": analyzer.name,
        "version": analyzer.version,
        "params": {name: params[name] for name in sorted(params)},
        "window": {"start": _instant(window.start), "end": _instant(window.end)},
        "status": verdict.status,
        "reason": verdict.reason,
        "assumptions": _assumptions(verdict.assumptions),
        "suspects": _suspects(verdict.suspects),
        "measures": {**_plain(verdict.measures, "measures"), "seconds": round(seconds, 6)},
        "evidence": [_evidence(one) for one in verdict.evidence],
    }


def _check_status(verdict: Verdict) -> None:
    if verdict.status not in ("named", "quiet", "inconclusive"):
        raise ValueError(f"status {verdict.status!r}")
    if (verdict.status == "named") != bool(verdict.suspects):
        raise ValueError(f"status {verdict.status} with {len(verdict.suspects)} suspects")
    if (verdict.status == "inconclusive") != bool(verdict.reason):
        raise ValueError(f"status {verdict.status} with reason {verdict.reason!r}")


def _assumptions(assumptions: Sequence[Assumption]) -> list[dict[str, Any]]:
    names = [one.name for one in assumptions]
    if len(set(names)) != len(names):
        raise ValueError("an assumption is named twice")
    for one in assumptions:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", one.name):
            raise ValueError(
                f"assumption {one.name!r} is no name of lower case letters, digits and underscores"
            )
        if not 0 < len(one.detail.strip()) <= 300:
            raise ValueError(
                f"assumption {one.name} needs a sentence of at most 300 characters as its detail"
            )
    return [{"name": one.name, "holds": bool(one.holds), "detail": one.detail} for one in assumptions]


def _suspects(suspects: Sequence[Suspect]) -> list[dict[str, Any]]:
    names = [suspect.component for suspect in suspects]
    if len(set(names)) != len(names):
        raise ValueError("a component is named twice")
    scores = [suspect.score for suspect in suspects if suspect.score is not None]
    if len(scores) == len(suspects) and scores != sorted(scores, reverse=True):
        raise ValueError("suspects are not ordered by score, best first")
    return [_suspect(suspect, rank) for rank, suspect in enumerate(suspects, start=1)]


def _suspect(suspect: Suspect, rank: int) -> dict[str, Any]:
    for name in (suspect.component, *suspect.ambiguous_with, *suspect.path):
        if not is_component(name):
            raise ValueError(f"component {name!r} is not of the form {COMPONENT_FORM}")
    if suspect.component in suspect.ambiguous_with or list(suspect.ambiguous_with) != sorted(
        set(suspect.ambiguous_with)
    ):
        raise ValueError(f"ambiguous_with of {suspect.component} is not sorted, or names it or another twice")
    if not suspect.summary.strip():
        raise ValueError(f"suspect {suspect.component} has no summary")
    where = f"suspect {suspect.component}"
    if len(suspect.phrase) > 200 or "{}" in suspect.phrase or suspect.phrase.endswith("."):
        raise ValueError(f"{where} does not say in 200 characters, without a full stop: {suspect.phrase!r}")
    if suspect.forecast and suspect.score is not None:
        raise ValueError(f"{where} is a forecast: nothing is at fault yet, so it has no score")
    if len(suspect.indicator) > 100 or not suspect.indicator.isprintable():
        raise ValueError(f"the indicator of {where} is not one line of at most 100 characters")
    if suspect.path and (
        suspect.path[0] != suspect.component or not 1 < len(set(suspect.path)) == len(suspect.path)
    ):
        raise ValueError(
            f"the path of {where} does not begin with it, or names fewer than two components, or one twice"
        )
    return {
        "component": suspect.component,
        "rank": rank,
        "score": _share(suspect.score, f"score of {where}"),
        "p_value": _share(suspect.p_value, f"p_value of {where}"),
        "q_value": _share(suspect.q_value, f"q_value of {where}"),
        "estimate": _estimate(suspect, where),
        "ambiguous_with": list(suspect.ambiguous_with),
        "summary": suspect.summary,
        "sure": bool(suspect.sure),
        "first_failure": None if suspect.first_failure is None else _instant(suspect.first_failure),
        "last_failure": None if suspect.last_failure is None else _instant(suspect.last_failure),
        **({"phrase": suspect.phrase} if suspect.phrase else {}),
        **({"forecast": True} if suspect.forecast else {}),
        **({"indicator": suspect.indicator} if suspect.indicator else {}),
        **({"path": list(suspect.path)} if suspect.path else {}),
    }


def _estimate(suspect: Suspect, where: str) -> dict[str, Any] | None:
    estimate = suspect.estimate
    if estimate is None:
        return None
    if not estimate.low <= estimate.failure_rate <= estimate.high:
        raise ValueError(f"estimate of {where} lies outside its own interval")
    if estimate.phrase.count("{}") != 1 or len(estimate.phrase) > 100:
        raise ValueError(f"the phrase of {where} does not hold one {{}}: {estimate.phrase[:100]!r}")
    shares = {
        "failure_rate": _share(estimate.failure_rate, f"failure rate of {where}"),
        "low": _share(estimate.low, f"lower end of {where}"),
        "high": _share(estimate.high, f"upper end of {where}"),
    }
    return shares if estimate.phrase == FAILS else {**shares, "phrase": estimate.phrase}


def _share(value: float | None, what: str) -> float | None:
    if value is None:
        return None
    number = _number(value, what)
    if not 0 <= number <= 1:
        raise ValueError(f"{what} is {number}, outside [0, 1]")
    return number


def _evidence(one: Evidence) -> dict[str, Any]:
    if one.kind not in ("table", "chart", "text") or not one.title.strip():
        raise ValueError(f"evidence {one.title!r} of kind {one.kind!r}")
    if any(len(row) != len(one.columns) for row in one.rows):
        raise ValueError(f"a row of table {one.title!r} does not fit its {len(one.columns)} columns")
    _check_content(one)
    return {
        "kind": one.kind,
        "title": one.title,
        "columns": list(one.columns),
        "rows": _plain(one.rows, one.title),
        "chart": _plain(one.chart, one.title),
        "text": one.text,
    }


def _check_content(one: Evidence) -> None:
    if not {"table": bool(one.columns), "chart": bool(one.chart), "text": bool(one.text.strip())}[one.kind]:
        raise ValueError(f"{one.kind} {one.title!r} is empty")
    if one.kind == "chart" and _mentions_url(one.chart):
        raise ValueError(f"chart {one.title!r} loads remote data; give it inline")


def _mentions_url(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "url" in value or any(_mentions_url(one) for one in value.values())
    return isinstance(value, (list, tuple)) and any(_mentions_url(one) for one in value)


def _plain(value: Any, where: str) -> Any:
    """The value as JSON has it: numpy scalars and tuples made plain, numbers rounded, NaN and infinity
    refused.
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return _number(float(value), where)
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"{where} holds a key that is not a text")
        return {key: _plain(one, where) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one, where) for one in value]
    raise TypeError(f"{where} holds a {type(value).__name__}, which JSON does not have")


def _number(value: Any, what: str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{what} is {number}")
    return float(f"{number:.{_SIGNIFICANT}g}")


def _instant(when: datetime) -> str:
    if when.tzinfo is None:
        raise ValueError(f"time {when.isoformat()} has no time zone")
    return rfc3339(when)
