"""The kit for authors: analyzers without a notion of chance, or that trust their history, do not pass it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from analyzers.builtin.boolean import ANALYZER
from analyzers.contract import (
    Analyzer,
    Input,
    Params,
    Paths,
    Reduction,
    Sum,
    Sums,
    Suspect,
    Verdict,
    Window,
    quiet,
    text,
)
from analyzers.testing import (
    MakeCase,
    check_analyzer,
    check_quiet,
    clumped_cases,
    crossing_cases,
    recovered_cases,
    sparse_cases,
)

READS = (
    Input(
        "path_outcome",
        (
            Reduction(
                "paths",
                "path_outcome",
                ("components",),
                {"attempts": Sum("attempts"), "failures": Sum("failures")},
            ),
        ),
    ),
)


def shares(sums: Sums) -> tuple[tuple[str, ...], np.ndarray]:
    """The components and the share of their attempts that failed."""
    paths = sums.keys["components"]
    assert isinstance(paths, Paths)
    row, size = np.repeat(np.arange(len(paths)), np.diff(paths.indptr)), len(paths.names)
    tried = np.bincount(paths.indices, sums.values["attempts"][row], minlength=size)
    failed = np.bincount(paths.indices, sums.values["failures"][row], minlength=size)
    return paths.names, failed / np.maximum(tried, 1)


def named_if(names: tuple[str, ...], share: np.ndarray, least: float) -> Verdict:
    worst = int(np.argmax(share))
    if share[worst] < least:
        return quiet()
    suspect = Suspect(names[worst], None, "It fails most.")
    return Verdict("named", (suspect,), evidence=(text("Worst", names[worst]),))


def worst_share(window: Window, _params: Params) -> Verdict:
    names, share = shares(window.sums["paths"])
    return named_if(names, share, max(0.03, 2 * float(np.median(share))))


def above_the_mean_of_history(window: Window, _params: Params) -> Verdict:
    names, share = shares(window.sums["paths"])
    usual = np.mean([shares(past.sums["paths"])[1] for past in window.history], axis=0)
    return named_if(names, share - 20 * usual, 0.05)


def above_the_oldest(window: Window, _params: Params) -> Verdict:
    """Takes the third last window for what is usual: a failure in it hides nothing, but recovery looks like change."""
    names, share = shares(window.sums["paths"])
    return named_if(names, np.abs(share - shares(window.history[-3].sums["paths"])[1]), 0.05)


def analyzer(analyze: Callable[[Window, Params], Verdict]) -> Analyzer:
    return replace(ANALYZER, name="naive", inputs=READS, params=(), analyze=analyze, history=6)


@pytest.mark.simulated
@pytest.mark.parametrize("analyze", [worst_share, above_the_oldest])
def test_a_naive_analyzer_passes_the_gentle_cases(analyze: Callable[[Window, Params], Verdict]) -> None:
    check_analyzer(analyzer(analyze), crossing_cases("paths"))


@pytest.mark.parametrize("cases", [sparse_cases, clumped_cases])
def test_an_analyzer_without_chance_accuses_the_healthy(cases: Callable[[str], MakeCase]) -> None:
    with pytest.raises(AssertionError, match="a quiet window accuses"):
        check_analyzer(analyzer(worst_share), cases("paths"), seeds=range(5))


def test_an_analyzer_that_compares_with_one_window_blames_the_recovered() -> None:
    with pytest.raises(AssertionError, match=r"is named first, not|a quiet window accuses"):
        check_analyzer(analyzer(above_the_oldest), recovered_cases("paths"))


def test_an_analyzer_that_takes_means_of_a_failing_history_misses_the_fault() -> None:
    with pytest.raises(AssertionError, match="is not named"):
        check_analyzer(analyzer(above_the_mean_of_history), recovered_cases("paths"), seeds=range(12))


def test_a_declaration_that_cannot_be_read_does_not_pass() -> None:
    absent = (Input("one", (Reduction("paths", "path_outcomes", ("components",), {"n": Sum("failure")}),)),)
    with pytest.raises(AssertionError, match="there is no telemetry kind path_outcomes"):
        check_analyzer(replace(analyzer(worst_share), inputs=absent), crossing_cases("paths"))


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match="no scenario 'weather'; there are region_world"):
        check_quiet(analyzer(worst_share), "weather")
