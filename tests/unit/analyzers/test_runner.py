"""The shell: a verdict is complete, canonical and checked; what goes wrong has a cause and is no verdict."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.contract import (
    Analyzer,
    Assumption,
    Count,
    Deferred,
    Estimate,
    Evidence,
    Input,
    Param,
    Params,
    Reduction,
    Suspect,
    Verdict,
    Window,
    chart,
    inconclusive,
    quiet,
    table,
    text,
)
from analyzers.runner import AnalysisError, frozen, judge, verdict_json
from analyzers.simulators.tables import sums_of

START = datetime(2026, 1, 5, tzinfo=UTC)
WINDOW = Window(
    START, START + timedelta(hours=1), "north", "all", {"all": sums_of([("tor/a",)], {"count": [1]})}
)
NAMED = Suspect("tor/a", 0.9, "tor/a fails.")
SHOWN = (text("Why", "tor/a fails."),)


def analyzer(analyze: Callable[[Window, Params], Verdict]) -> Analyzer:
    every = Input("all", (Reduction("all", "path_outcome", ("components",), {"count": Count()}),))
    return Analyzer("probe", "1.2.3", "Probe", (every,), (Param("bar", 0.5, "a bar"),), analyze)


def giving(verdict: Any) -> Analyzer:
    return analyzer(lambda _window, _params: verdict)


def named(suspect: Suspect = NAMED, *evidence: Evidence) -> Verdict:
    return Verdict("named", (suspect,), evidence=evidence or SHOWN)


def test_a_verdict_says_who_judged_what_and_how() -> None:
    verdict = judge(giving(named()), WINDOW)
    assert (verdict["analyzer"], verdict["version"], verdict["params"]) == ("probe", "1.2.3", {"bar": 0.5})
    assert verdict["window"] == {"start": "2026-01-05T00:00:00Z", "end": "2026-01-05T01:00:00Z"}
    assert verdict["suspects"][0]["rank"] == 1
    assert verdict["measures"]["seconds"] >= 0


def test_a_deferred_method_is_imported_by_its_address() -> None:
    assert Deferred("analyzers.contract:quiet").load() is quiet


def test_a_deferred_method_that_cannot_be_imported_is_a_failed_analysis() -> None:
    with pytest.raises(AnalysisError, match="ModuleNotFoundError: No module named 'no_such_package'"):
        judge(analyzer(Deferred("no_such_package.method:analyze")), WINDOW)


def crashing(_window: Window, _params: Params) -> Verdict:
    raise ZeroDivisionError("division by zero")


def test_a_crash_names_the_line_of_the_analyzer() -> None:
    line = crashing.__code__.co_firstlineno + 1
    with pytest.raises(AnalysisError, match=rf"division by zero \({__name__}, line {line}\)"):
        judge(analyzer(crashing), WINDOW)


def test_the_same_window_gives_the_same_bytes() -> None:
    first, second = (verdict_json(judge(giving(named()), WINDOW)) for _ in range(2))
    assert first == second
    assert b"seconds" not in first


def test_numbers_of_numpy_become_plain() -> None:
    measures = {"n": np.int64(3), "x": np.float64(0.1) * 3, "yes": np.bool_(True), "list": np.arange(2)}
    verdict = judge(giving(quiet(measures)), WINDOW)
    assert {k: v for k, v in verdict["measures"].items() if k != "seconds"} == {
        "n": 3,
        "x": 0.3,
        "yes": True,
        "list": [0, 1],
    }
    json.dumps(verdict)


def test_a_crash_is_no_verdict_and_keeps_its_cause() -> None:
    def crash(_window: Window, _params: Params) -> Verdict:
        raise ZeroDivisionError("by nothing")

    with pytest.raises(AnalysisError, match=r"probe 1\.2\.3: ZeroDivisionError: by nothing") as failed:
        judge(analyzer(crash), WINDOW)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_an_analyzer_that_takes_too_long_is_stopped() -> None:
    ended = []

    def forever(_window: Window, _params: Params) -> Verdict:
        try:
            while True:
                time.sleep(0.005)
        finally:
            ended.append(True)

    with pytest.raises(AnalysisError, match=r"took longer than 0\.1 s"):
        judge(analyzer(forever), WINDOW, limit=0.1)
    deadline = time.monotonic() + 5
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended


def test_an_analyzer_cannot_write_to_its_window() -> None:
    def write(window: Window, _params: Params) -> Verdict:
        window.sums["all"].values["count"][0] = 99
        return quiet()

    with pytest.raises(AnalysisError, match="read-only"):
        judge(analyzer(write), WINDOW)
    assert WINDOW.sums["all"].values["count"][0] == 1


def test_history_is_frozen_too() -> None:
    past = frozen(replace(WINDOW, history=(WINDOW,))).history[0]
    assert not past.sums["all"].values["count"].flags.writeable


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (None, "NoneType instead of a Verdict"),
        (Verdict("named"), "status named with 0 suspects"),
        (Verdict("quiet", (NAMED,)), "status quiet with 1 suspects"),
        (Verdict("inconclusive"), "status inconclusive with reason None"),
        (Verdict("quiet", reason="because"), "status quiet with reason"),
        (Verdict("loud"), "status 'loud'"),  # type: ignore[arg-type]
        (named(replace(NAMED, score=1.1)), "outside"),
        (named(replace(NAMED, p_value=math.nan)), "is nan"),
        (named(replace(NAMED, component="tor a")), "not of the form kind/name"),
        (named(replace(NAMED, summary=" ")), "has no summary"),
        (named(replace(NAMED, ambiguous_with=("tor/b", "tor/a"))), "ambiguous_with"),
        (named(replace(NAMED, estimate=Estimate(0.5, 0.6, 0.7))), "outside its own interval"),
        (named(NAMED, table("T", ("a", "b"), ((1,),))), "does not fit its 2 columns"),
        (named(NAMED, table("T", ("a",), ((math.inf,),))), "is inf"),
        (named(NAMED, table("T", ("a",), ((object(),),))), "holds a object"),
        (named(NAMED, chart("C", {"data": {"url": "x.json"}})), "loads remote data"),
        (named(NAMED, chart("C", {})), "is empty"),
        (quiet({"x": {1: 2}}), "key that is not a text"),
        (named(replace(NAMED, phrase="fails.")), "without a full stop"),
        (named(replace(NAMED, indicator="loss\nrate")), "indicator"),
        (named(replace(NAMED, path=("tor/a",))), "path of suspect tor/a"),
        (named(replace(NAMED, path=("tor/b", "tor/a"))), "path of suspect tor/a"),
        (named(replace(NAMED, path=("tor/a", "vm/1", "vm/1"))), "path of suspect tor/a"),
        (named(replace(NAMED, path=("tor/a", "vm"))), "not of the form"),
        (named(replace(NAMED, forecast=True, score=0.9)), "is a forecast"),
    ],
)
def test_a_malformed_verdict_is_refused_with_the_reason(verdict: Any, reason: str) -> None:
    with pytest.raises(AnalysisError, match=reason):
        judge(giving(verdict), WINDOW)


def test_suspects_come_best_first() -> None:
    worse_first = Verdict("named", (replace(NAMED, score=0.2), replace(NAMED, component="tor/b")))
    with pytest.raises(AnalysisError, match="best first"):
        judge(giving(worse_first), WINDOW)


def test_no_component_is_named_twice() -> None:
    with pytest.raises(AnalysisError, match="named twice"):
        judge(giving(Verdict("named", (NAMED, NAMED))), WINDOW)


def test_doubt_has_its_reason() -> None:
    assert judge(giving(inconclusive("too little")), WINDOW)["reason"] == "too little"


def test_assumptions_travel_with_the_verdict() -> None:
    unmet = Assumption("topology", False, "5 % of the failures pass no suspect; probabilities are halved.")
    said = judge(giving(quiet(assumptions=(unmet,))), WINDOW)["assumptions"]
    assert said == [{"name": "topology", "holds": False, "detail": unmet.detail}]


@pytest.mark.parametrize(
    ("assumptions", "reason"),
    [
        ((Assumption("history", True, "ok"), Assumption("history", False, "no")), "named twice"),
        ((Assumption("The history", True, "ok"),), "lower case letters"),
        ((Assumption("history", True, " "),), "needs a sentence"),
    ],
)
def test_a_malformed_assumption_is_refused(assumptions: tuple[Assumption, ...], reason: str) -> None:
    with pytest.raises(AnalysisError, match=reason):
        judge(giving(quiet(assumptions=assumptions)), WINDOW)
