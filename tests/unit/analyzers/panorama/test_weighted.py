"""`panorama`, the weighted method: gray failures, unreliable observers, what passes and what cannot be told."""

from datetime import datetime

import numpy as np
import pytest

from analyzers.builtin.panorama import ANALYZER
from analyzers.builtin.panorama.likelihood import REACH, STRAY, Problem, solve
from analyzers.builtin.panorama.observed import observe as counted
from analyzers.builtin.panorama.observed import tally
from analyzers.simulators import observers as sim
from analyzers.testing import Case, check_analyzer
from tests.unit.analyzers.panorama.cases import (
    TINY,
    Report,
    calls,
    end_of,
    mesh,
    named,
    simulated,
    spoilt,
    verdict,
    window,
)

WATCHERS = ["proc/p1", "proc/p2", "proc/p3"]


def with_heartbeats(reports: list[Report], bad: range = range(0)) -> list[Report]:
    return [*reports, *calls(WATCHERS, "proc/p0", "heartbeat", range(20), bad, each=1)]


def test_a_system_in_which_all_is_well_is_quiet() -> None:
    assert verdict(with_heartbeats(mesh()))["status"] == "quiet"


def test_a_subject_that_its_callers_see_fail_and_probes_do_not_is_a_gray_failure() -> None:
    found = verdict(with_heartbeats(spoilt(mesh(), since=12, subject="proc/p0", context="write", share=0.5)))
    assert named(found) == ["proc/p0"]
    assert "is a gray failure" in found["suspects"][0]["summary"]
    assert found["measures"]["gray"] == 1


def test_the_context_that_fails_is_told() -> None:
    found = verdict(with_heartbeats(spoilt(mesh(), since=12, subject="proc/p0", context="write")))
    (blamed,) = (one for one in found["evidence"] if one["title"] == "Blamed")
    assert blamed["rows"][0][:3] == ["proc/p0", "gray failure", "write"]


def test_differential_observability_is_shown_as_quadrants() -> None:
    found = verdict(with_heartbeats(spoilt(mesh(), since=12, subject="proc/p0", context="write")))
    (table,) = (one for one in found["evidence"] if one["title"].startswith("Callers' view"))
    assert table["rows"][0][3] == "callers unhealthy, probes healthy: gray"


def test_a_subject_that_probes_see_fail_too_is_no_gray_failure() -> None:
    found = verdict(with_heartbeats(spoilt(mesh(), since=12, subject="proc/p0"), bad=range(12, 20)))
    assert named(found) == ["proc/p0"]
    assert "proc/p0 fails" in found["suspects"][0]["summary"]


def test_without_probes_nothing_is_called_gray() -> None:
    found = verdict(spoilt(mesh(), since=12, subject="proc/p0", context="write"))
    assert (named(found), found["measures"]["gray"]) == (["proc/p0"], 0)


def test_which_contexts_probe_is_a_parameter() -> None:
    reports = spoilt(mesh(contexts=("write", "lookup")), since=12, subject="proc/p0", context="write")
    assert verdict(reports, probe_contexts="lookup, other")["measures"]["gray"] == 1


def test_a_subject_that_only_probes_see_fail_is_cleared() -> None:
    found = verdict(with_heartbeats(mesh(), bad=range(10, 20)))
    assert found["status"] == "quiet"
    (cleared,) = (one for one in found["evidence"] if one["title"] == "Looked into and cleared")
    assert cleared["rows"][0][-1] == "only probes fail; its callers are well"


def test_a_subject_that_is_only_probed_is_named_by_its_probes() -> None:
    reports = [*calls(WATCHERS, "proc/p0", "ping", range(20), range(10, 20)), *mesh(contexts=("ping",))[:200]]
    assert named(verdict(reports)) == ["proc/p0"]


def test_an_observer_that_complains_about_everyone_takes_the_blame() -> None:
    found = verdict(spoilt(mesh(), since=12, observer="proc/p4", share=0.4))
    assert named(found) == ["proc/p4"]
    assert "while others find them healthy" in found["suspects"][0]["summary"]


def test_a_gray_failure_is_found_among_forty_percent_overloaded_observers() -> None:
    reports = spoilt(mesh(size=10), since=12, subject="proc/p0", context="write", share=0.7)
    for overloaded in ("proc/p6", "proc/p7", "proc/p8", "proc/p9"):
        reports = spoilt(reports, since=12, observer=overloaded, share=0.5)
    assert set(named(verdict(reports))) == {"proc/p0", "proc/p6", "proc/p7", "proc/p8", "proc/p9"}


def test_the_paper_accuses_healthy_subjects_of_overloaded_observers() -> None:
    reports = mesh(size=5)
    for overloaded in ("proc/p3", "proc/p4"):
        reports = spoilt(reports, since=12, observer=overloaded, share=1.0)
    assert {"proc/p0", "proc/p1", "proc/p2"} & set(named(verdict(reports, method="paper")))
    assert set(named(verdict(reports))) == {"proc/p3", "proc/p4"}


def test_calls_that_are_never_answered_are_failures() -> None:
    asked = calls(WATCHERS, "proc/p0", "write", range(20), range(20), status="pending")
    answers = calls(WATCHERS, "proc/p0", "write", range(10))
    assert named(verdict([*mesh(), *[(o, s, "slow", t, n) for o, s, _, t, n in [*asked, *answers]]])) == [
        "proc/p0"
    ]


def test_calls_that_are_answered_a_little_later_are_none() -> None:
    asked = calls(WATCHERS, "proc/p0", "slow", range(20), range(20), status="pending")
    answers = calls(WATCHERS, "proc/p0", "slow", range(2, 20))
    assert verdict([*mesh(), *asked, *answers])["status"] == "quiet"


def test_an_observer_that_falls_silent_makes_nothing_hang() -> None:
    asked = calls(WATCHERS, "proc/p0", "slow", range(12), range(12), status="pending")
    answers = calls(WATCHERS, "proc/p0", "slow", range(12))[: -len(WATCHERS)]
    others = [report for report in mesh() if report[0] not in WATCHERS]
    assert verdict([*others, *asked, *answers])["status"] == "quiet"


def test_a_failure_of_five_seconds_that_is_over_passes() -> None:
    found = verdict(spoilt(mesh(), since=8, until=13, subject="proc/p0"))
    assert found["status"] == "quiet"
    assert found["measures"]["passing"] == 1


def test_a_failure_that_lasted_and_is_over_is_named_with_its_times() -> None:
    (suspect,) = verdict(spoilt(mesh(40), since=8, until=30, subject="proc/p0"), 40)["suspects"]
    times = [datetime.fromisoformat(suspect[name]).second for name in ("first_failure", "last_failure")]
    assert times == [8, 30]


def test_one_window_is_enough_only_after_ten_seconds() -> None:
    short, long = (verdict(spoilt(mesh(), since=since, subject="proc/p0")) for since in (15, 5))
    assert [one["suspects"][0]["sure"] for one in (short, long)] == [False, True]


def test_the_only_observer_of_the_only_subject_cannot_be_told_from_it() -> None:
    reports = [*calls(["proc/a"], "proc/b", "write", range(20), range(8, 20), each=20)]
    found = verdict([*reports, *calls(["proc/a"], "proc/b", "read", range(20), range(8, 20), each=20)])
    assert found["status"] == "inconclusive" or found["suspects"][0]["ambiguous_with"]


def test_where_most_observers_complain_about_everyone_nobody_is_believed() -> None:
    reports = mesh(size=6)
    for overloaded in range(1, 6):
        reports = spoilt(reports, since=8, observer=f"proc/p{overloaded}", share=0.6)
    found = verdict(reports)
    assert (found["status"], found["suspects"]) == ("inconclusive", [])


def test_a_single_complaint_is_no_evidence() -> None:
    assert (
        verdict(spoilt(mesh(), since=15, until=16, observer="proc/p1", subject="proc/p0"))["status"]
        == "quiet"
    )


@pytest.mark.parametrize("method", ["weighted", "paper"])
def test_a_window_without_observations_is_inconclusive(method: str) -> None:
    assert verdict([], method=method)["status"] == "inconclusive"


@pytest.mark.parametrize("method", ["weighted", "paper"])
def test_one_report_is_too_little_to_blame_anyone(method: str) -> None:
    found = verdict([("proc/a", "proc/b", "write", "healthy", 3)], method=method)
    assert found["status"] == "quiet"


def test_a_long_window_is_looked_at_in_coarser_steps() -> None:
    reports = [report for report in mesh(3000, size=4, contexts=("read",)) if report[4] % 7 == 0]
    found = verdict(spoilt(reports, since=1500, subject="proc/p0"), 3000)
    assert named(found) == ["proc/p0"]


@pytest.mark.simulated
def test_the_set_found_is_as_probable_as_the_best_of_all_in_nearly_every_case() -> None:
    rng, as_good = np.random.default_rng(4), 0
    for _ in range(10):
        problem = small_problem(rng)
        as_good += posterior(problem, solve(problem).chosen) >= best_of_all(problem) - 0.5
    assert as_good >= 9


def small_problem(rng: np.random.Generator) -> Problem:
    """Three observers and two subjects in two contexts each; some cells bad by chance or by culprits."""
    cells = [(o, s, 2 * s + c) for o in range(3) for s in range(2) for c in range(2)]
    owner = np.array(cells, dtype=np.int64).T
    sick = (owner[0] == rng.integers(0, 5)) | (owner[2] == rng.integers(0, 8))
    weight = np.where(
        sick ^ (rng.random(len(cells)) < 0.05), rng.uniform(2, 7, len(cells)), rng.uniform(-7, -1, len(cells))
    )
    return Problem(weight, owner, (3, 2, 4), (2.0, 2.0, 2.5))


def posterior(problem: Problem, chosen: tuple[np.ndarray, ...]) -> float:
    """The log-likelihood of a set of culprits, by its definition, less what each needs."""
    spared = np.full(len(problem.weight), 1 - STRAY)
    for sort in range(3):
        spared *= np.where(chosen[sort][problem.owner[sort]], 1 - REACH[sort], 1.0)
    price = sum(float(on.sum()) * needed for on, needed in zip(chosen, problem.needed, strict=True))
    return float(np.log(spared + (1 - spared) * np.exp(problem.weight)).sum()) - price


def best_of_all(problem: Problem) -> float:
    best = -np.inf
    for code in range(2**9):
        bits = np.array([code >> place & 1 for place in range(9)], dtype=bool)
        best = max(best, posterior(problem, (bits[:3], bits[3:5], bits[5:])))
    return best


def test_hanging_calls_are_counted_within_the_look_back() -> None:
    asked = calls(["proc/a"], "proc/b", "slow", range(20), range(20), each=2, status="pending")
    seen = counted(window([*asked, *calls(["proc/a"], "proc/b", "slow", range(10), each=2)]))
    found = tally(seen, 6, 3)
    assert found.hung[0, 9] == 0
    assert (found.hung[0, 19], found.failed[0, 19], found.total[0, 19]) == (12, 12, 12)


def test_calls_that_hang_are_counted_though_later_ones_are_answered() -> None:
    asked = calls(["proc/a"], "proc/b", "slow", range(20), range(20), each=9, status="pending")
    well = calls(["proc/a"], "proc/b", "slow", range(10), each=9)
    partly = calls(["proc/a"], "proc/b", "slow", range(10, 20), each=6)
    found = tally(counted(window([*asked, *well, *partly])), 6, 3)
    assert (found.hung[0, 9], found.hung[0, 19], found.total[0, 19]) == (0, 18, 54)


def test_where_answers_go_missing_everywhere_it_is_usual() -> None:
    observers = ["proc/a", "proc/c", "proc/d", "proc/e", "proc/f"]
    asked = calls(observers, "proc/b", "slow", range(20), range(20), each=10, status="pending")
    some = calls(observers, "proc/b", "slow", range(20), each=9)
    every = calls(observers, "proc/b", "slow", range(20), each=10)
    lossy = tally(counted(window([*asked, *some])), 6, 3)
    whole = tally(counted(window([*asked, *every])), 6, 3)
    assert lossy.usual.max() < 10
    assert whole.usual.min() == 100


def test_reports_that_are_lost_make_nothing_hang() -> None:
    asked = calls(["proc/a"], "proc/b", "slow", range(20), range(20), each=10, status="pending")
    answers = calls(["proc/a"], "proc/b", "slow", range(20), each=10)[::1]
    found = tally(counted(window([*asked, *answers[:30], *answers[31:]])), 6, 3)
    assert found.hung.max() <= 1


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    def case(seed: int, faulty: bool) -> Case:
        system = sim.build(TINY, np.random.default_rng(seed))
        fault = sim.draw_gray(system, np.random.default_rng(seed), "gray", 14.0, witnesses=3)
        reports = simulated(seed, [fault] if faulty else [])
        return Case(end_of(reports), (system.processes[fault.process],) if faulty else ())

    check_analyzer(ANALYZER, case, seeds=range(2))


@pytest.mark.simulated
def test_the_published_method_is_a_good_analyzer_too() -> None:
    def case(seed: int, faulty: bool) -> Case:
        reports = simulated(seed, [sim.Fault("crash", 2, 14.0)] if faulty else [])
        return Case(end_of(reports), ("proc/p03",) if faulty else ())

    check_analyzer(ANALYZER, case, {"method": "paper"}, seeds=range(1))
