"""The validator names gray nodes, and never a fleet that is not of one kind."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from analyzers.builtin.paths import texts
from analyzers.builtin.validator import ANALYZER
from analyzers.builtin.validator.analysis import LOWERED
from analyzers.builtin.validator.calibration import SCORES, probability
from analyzers.contract import InvalidParameterError, Paths, Sums, Window, check_params
from analyzers.offline import read, windows
from analyzers.runner import judge
from analyzers.runs.management.line_command import parse_params
from analyzers.simulators.node_benchmarks import (
    EPOCH,
    METRICS,
    Defect,
    Fleet,
    Preset,
    build,
    joined,
    results,
    rows_of,
    samples_of,
    window,
)
from analyzers.testing import Case, check_analyzer

SMALL = Preset(nodes=40, runs=10, metrics=METRICS[:2])
GRAY = "node/gpu-0007"
HOUR = timedelta(hours=1)
SUPERBENCH = os.environ.get("SUPERBENCH_DIR")
FILES = {"baseline": "baseline.json", "rules": "rules.yaml"}


def fleet_window(
    seed: int = 1,
    severity: float = 0.1,
    benign: str = "",
    preset: Preset = SMALL,
    history: int = 0,
    gray: int = 7,
) -> Window:
    """A fleet of which one node is gray in the first metric, after days in which all was well."""
    rng = np.random.default_rng(seed)
    fleet = build(preset, rng)
    past = [window(fleet, results(fleet, rng), day) for day in range(history)]
    defects = [Defect(gray, (0,), severity)] if severity else []
    return window(fleet, results(fleet, rng, defects, benign), history, past)


def verdict_of(seen: Window, **params: Any) -> Mapping[str, Any]:
    return judge(ANALYZER, seen, params)


def named(seen: Window, **params: Any) -> list[str]:
    return [one["component"] for one in verdict_of(seen, **params)["suspects"]]


def of_values(metric: str, values: Mapping[str, list[float]], benchmark: str = "mine") -> Window:
    """A window of one metric, by node."""
    flat = sorted((node, value) for node, found in values.items() for value in set(found))
    keys: dict[str, Any] = {
        "node": tuple(node for node, _ in flat),
        "benchmark": (benchmark,) * len(flat),
        "metric": (metric,) * len(flat),
        "sku": ("",) * len(flat),
        "time": np.zeros(len(flat), dtype=np.int64),
        "value": np.array([value for _, value in flat], dtype=np.float64),
    }
    times = np.array([values[node].count(value) for node, value in flat], dtype=np.int64)
    return replace(fleet_window(), sums={"samples": Sums(keys, {"times": times}, len(flat))})


def nodes(count: int, value: float = 100.0) -> dict[str, list[float]]:
    return {f"node/n{i:02d}": [value + 0.01 * i, value] for i in range(count)}


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    def make(seed: int, faulty: bool) -> Case:
        seen = fleet_window(seed, 0.1 if faulty else 0.0, preset=replace(SMALL, nodes=24, runs=6), history=1)
        return Case(seen, (GRAY,) if faulty else ())

    check_analyzer(ANALYZER, make, seeds=range(1))


def test_a_gray_node_is_named_with_its_metric_its_time_and_its_score() -> None:
    verdict = verdict_of(fleet_window())
    (suspect,) = verdict["suspects"]
    assert suspect["component"] == GRAY
    assert "lower than the fleet in gemm-flops/fp16_tc_flops" in suspect["summary"]
    assert suspect["score"] > 0.95
    assert suspect["sure"]
    assert suspect["first_failure"] == "2026-01-05T00:04:00Z"


def in_rounds(*failing: float) -> Mapping[str, Any]:
    """The suspect of a day with a round every three hours, each with how much worse the gray node is in it."""
    rng = np.random.default_rng(5)
    fleet = build(SMALL, rng)
    rounds = []
    for at, severity in enumerate(failing):
        measured = results(fleet, rng, [Defect(7, (0,), severity)] if severity else [])
        rounds.append(samples_of(fleet, measured, EPOCH + 3 * at * HOUR))
    (suspect,) = verdict_of(replace(fleet_window(), sums={"samples": joined(rounds)}))["suspects"]
    assert suspect["component"] == GRAY
    return cast("Mapping[str, Any]", suspect)


def moment(round_: int) -> str:
    return f"{EPOCH + 3 * round_ * HOUR + timedelta(minutes=4):%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.simulated
@pytest.mark.parametrize(
    ("failing", "first", "last"),
    [
        ((0.1,) * 8, 0, 7),
        ((0, 0, 0.2, 0.2, 0.2, 0.2, 0, 0), 2, 5),
        ((0.2, 0.2, 0.2, 0, 0, 0, 0.2, 0), 0, 6),
        ((0.3, 0.3, 0, 0, 0, 0, 0, 0), 0, 1),
    ],
)
def test_it_failed_in_the_rounds_in_which_it_was_worse(
    failing: tuple[float, ...], first: int, last: int
) -> None:
    suspect = in_rounds(*failing)
    assert (suspect["first_failure"], suspect["last_failure"]) == (moment(first), moment(last))


def test_a_failed_test_fails_in_the_rounds_in_which_it_did() -> None:
    seen = of_values("return_code", {f"node/n{i:02d}": [0.0] for i in range(30)}, "gpu-copy")
    sums = seen.sums["samples"]
    rounds = []
    for at in range(4):
        value = np.asarray(sums.keys["value"]).copy()
        value[7] = 2.0 if at in (1, 2) else 0.0
        time = np.full(len(value), at * 1_000_000, dtype=np.int64)
        rounds.append(replace(sums, keys={**sums.keys, "value": value, "time": time}))
    (suspect,) = verdict_of(replace(seen, sums={"samples": joined(rounds)}))["suspects"]
    found = suspect["component"], suspect["first_failure"], suspect["last_failure"]
    assert found == ("node/n07", "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z")


def test_samples_without_times_name_the_node_all_the_same() -> None:
    seen = fleet_window()
    sums = seen.sums["samples"]
    keys = {name: key for name, key in sums.keys.items() if name != "time"}
    (suspect,) = verdict_of(replace(seen, sums={"samples": replace(sums, keys=keys)}))["suspects"]
    assert (suspect["component"], suspect["first_failure"], suspect["last_failure"]) == (GRAY, None, None)


def test_the_evidence_shows_the_failure_the_runs_and_who_was_cleared() -> None:
    verdict = verdict_of(fleet_window())
    titles = {one["title"]: one for one in verdict["evidence"]}
    failures = titles["Blamed nodes and their failed metrics"]
    row = dict(zip(failures["columns"], failures["rows"][0], strict=True))
    assert (row["node"], row["metric"]) == (GRAY, "gemm-flops/fp16_tc_flops")
    assert row["similarity"] == pytest.approx(0.9, abs=0.01)
    assert titles["Looked into and cleared"]["rows"]
    drawn = titles["Runs of the blamed against the fleet: gemm-flops/fp16_tc_flops"]["chart"]["data"][
        "values"
    ]
    assert {GRAY, "typical node"} <= {one["node"] for one in drawn}


def test_a_node_that_is_better_than_the_fleet_is_not_blamed() -> None:
    assert named(fleet_window(severity=-0.1)) == []


def test_less_than_asked_for_is_no_defect_unless_more_is_asked_for() -> None:
    seen = fleet_window(severity=0.035)
    assert (named(seen), named(seen, similarity=0.98)) == ([], [GRAY])


def test_a_failure_in_a_part_of_the_runs_is_seen() -> None:
    rng = np.random.default_rng(3)
    fleet = build(replace(SMALL, runs=30), rng)
    measured = results(fleet, rng, [Defect(7, (0,), 0.3, often=0.4)])
    assert named(window(fleet, measured)) == [GRAY]


@pytest.mark.simulated
@pytest.mark.parametrize("benign", ["upgrade", "missing", "crash", "warm_up", "clock_step", "drain"])
def test_what_looks_like_trouble_and_is_none_blames_no_one(benign: str) -> None:
    seen = fleet_window(severity=0, benign=benign, preset=replace(SMALL, nodes=72, runs=30))
    assert named(seen) == []


@pytest.mark.simulated
@pytest.mark.parametrize("benign", ["two_skus", "rollout"])
@pytest.mark.parametrize("seed", range(3))
def test_half_a_fleet_is_never_blamed(benign: str, seed: int) -> None:
    verdict = verdict_of(fleet_window(seed, severity=0, benign=benign))
    assert verdict["status"] == "inconclusive"
    assert "unlike the others: two kinds of node" in verdict["reason"]


TAILS = Preset(spread=0.01, tails=True, runs=10, metrics=METRICS[:4])


def odd_fleet() -> Fleet:
    """A fleet with heavy tails, of which one node is 8 % worse in the first metric, for good."""
    fleet = build(TAILS, np.random.default_rng(11))
    fleet.level[7, 0] = 0.92
    return fleet


@pytest.mark.simulated
def test_a_node_that_is_as_far_off_as_tails_reach_is_cleared_with_how_many_chance_makes() -> None:
    fleet, rng = odd_fleet(), np.random.default_rng(12)
    seen = window(fleet, results(fleet, rng))
    assert GRAY in named(seen, most_false=1)
    verdict = verdict_of(seen)
    assert GRAY not in [one["component"] for one in verdict["suspects"]]
    (cleared,) = (one for one in verdict["evidence"] if one["title"] == "Looked into and cleared")
    why = {row[0]: row[-1] for row in cleared["rows"]}[GRAY]
    assert "are to be expected by chance" in why


@pytest.mark.simulated
def test_who_has_become_worse_is_blamed_where_who_always_was_is_not() -> None:
    fleet, rng = odd_fleet(), np.random.default_rng(12)
    before = window(fleet, results(fleet, rng))
    now = window(fleet, results(fleet, rng, [Defect(9, (0,), 0.08)]), 1, [before])
    assert named(now) == ["node/gpu-0009"]


@pytest.mark.simulated
def test_an_upgrade_of_all_is_no_change_of_one() -> None:
    fleet, rng = odd_fleet(), np.random.default_rng(12)
    before = window(fleet, results(fleet, rng))
    now = window(fleet, results(fleet, rng, benign="upgrade"), 1, [before])
    assert named(now) == []


def test_kinds_of_machine_that_are_named_are_judged_apart() -> None:
    rng = np.random.default_rng(1)
    fleet = build(SMALL, rng)
    one, other = results(fleet, rng, [Defect(7, (0,), 0.1)]), results(fleet, rng) * 0.5
    first, second = samples_of(fleet, one, EPOCH, "a100"), samples_of(fleet, other, EPOCH, "v100")
    old = tuple(f"{name}-old" for name in texts(second, "node"))
    both = joined([first, replace(second, keys={**second.keys, "node": old})])
    assert named(replace(window(fleet, one), sums={"samples": both})) == [GRAY]


def test_too_few_nodes_are_inconclusive_with_the_number_needed() -> None:
    verdict = verdict_of(of_values("bw", nodes(2)))
    assert verdict["reason"].startswith("mine/bw: 2 nodes measured, 3 are needed")


@pytest.mark.parametrize("count", [3, 8, 16])
def test_a_slow_node_of_a_small_fleet_is_named_and_the_probability_says_that_few_were_measured(
    count: int,
) -> None:
    seen = fleet_window(preset=replace(SMALL, nodes=count, spread=0.01), gray=1)
    verdict = verdict_of(seen)
    (suspect,) = verdict["suspects"]
    assert suspect["component"] == "node/gpu-0001"
    assert suspect["score"] <= LOWERED[1]
    sampling = next(one for one in verdict["assumptions"] if one["name"] == "sampling")
    assert not sampling["holds"]


@pytest.mark.simulated
@pytest.mark.parametrize("better", [1, 10])
@pytest.mark.parametrize("severity", [0.06, 0.1])
def test_better_nodes_hide_no_gray_one(better: int, severity: float) -> None:
    rng = np.random.default_rng(21)
    fleet = build(replace(SMALL, nodes=64), rng)
    fleet.level[30 : 30 + better] *= 1.08
    assert named(window(fleet, results(fleet, rng, [Defect(7, (0,), severity)]))) == [GRAY]


def test_a_gray_node_is_named_where_nodes_differ_by_one_percent() -> None:
    verdict = verdict_of(fleet_window(preset=replace(SMALL, nodes=72, spread=0.01), gray=1))
    assert [one["component"] for one in verdict["suspects"]] == ["node/gpu-0001"]


def test_one_value_a_metric_is_enough() -> None:
    rng = np.random.default_rng(22)
    fleet = build(replace(SMALL, runs=1), rng)
    assert named(window(fleet, results(fleet, rng, [Defect(7, (0,), 0.1)]))) == [GRAY]


def of_two_kinds(wrong: int, gray: int | None = None) -> Window:
    """Two kinds of machine, the second 12 % slower, of which `wrong` nodes are labelled as the first."""
    rng = np.random.default_rng(23)
    fleet = build(replace(SMALL, nodes=80), rng)
    measured = results(fleet, rng, [Defect(gray, (0,), 0.2)] if gray is not None else [])
    slower = np.where([metric.higher for metric in SMALL.metrics], 0.88, 1 / 0.88)
    measured[40:] *= slower[None, :, None]
    whole = samples_of(fleet, measured, EPOCH)
    number = [int(name[-4:]) for name in texts(whole, "node")]
    skus = tuple("new" if one < 40 + wrong else "old" for one in number)
    return replace(
        window(fleet, measured), sums={"samples": replace(whole, keys={**whole.keys, "sku": skus})}
    )


def test_a_wrong_label_blames_nobody_and_is_told() -> None:
    verdict = verdict_of(of_two_kinds(wrong=4))
    assert (verdict["status"], verdict["measures"]["other_kind"]) == ("quiet", 4)
    (told,) = (one for one in verdict["assumptions"] if one["name"] == "topology")
    assert not told["holds"]
    assert "node/gpu-0040" in told["detail"]


def test_a_gray_node_is_named_beside_wrong_labels() -> None:
    assert named(of_two_kinds(wrong=4, gray=7)) == [GRAY]


def hot_aisle(parents: bool) -> Window:
    """Sixteen nodes of 128 that are 8 % slower in both metrics, and one that is 20 % slower in one."""
    rng = np.random.default_rng(24)
    fleet = build(replace(SMALL, nodes=128), rng)
    fleet.level[16:32] *= 0.92
    seen = window(fleet, results(fleet, rng, [Defect(7, (0,), 0.2)]))
    if not parents:
        return seen
    names = tuple(f"aisle/a{n}" for n in range(8))
    nodes_ = tuple(fleet.name(n) for n in range(128))
    inside = Paths(names, np.arange(129, dtype=np.int64), np.repeat(np.arange(8, dtype=np.int32), 16))
    known = Sums({"component": nodes_, "parents": inside}, {"rows": np.ones(128, dtype=np.int64)}, 128)
    return replace(seen, sums={**seen.sums, "fleet": known})


def test_one_cause_over_many_nodes_is_one_suspect() -> None:
    suspects = {one["component"]: one for one in verdict_of(hot_aisle(parents=False))["suspects"]}
    assert set(suspects) == {GRAY, "node/gpu-0016"}
    assert suspects["node/gpu-0016"]["ambiguous_with"] == [f"node/gpu-{n:04d}" for n in range(17, 32)]
    assert "one cause is likely" in suspects["node/gpu-0016"]["summary"]


def test_what_contains_the_nodes_of_one_cause_is_named_in_their_place() -> None:
    suspects = {one["component"]: one for one in verdict_of(hot_aisle(parents=True))["suspects"]}
    assert set(suspects) == {GRAY, "aisle/a1"}
    assert len(suspects["aisle/a1"]["ambiguous_with"]) == 16


@pytest.mark.parametrize("runs", [4, 8, 32])
def test_single_bad_runs_on_any_node_blame_nobody(runs: int) -> None:
    rng = np.random.default_rng(25)
    fleet = build(replace(SMALL, nodes=64, runs=runs), rng)
    measured = results(fleet, rng)
    bad = np.where(rng.random(measured.shape) < 1 / 30, 1 - rng.uniform(0.1, 0.6, measured.shape), 1.0)
    higher = np.array([metric.higher for metric in SMALL.metrics])[None, :, None]
    assert named(window(fleet, measured * np.where(higher, bad, 1 / bad))) == []


def test_a_failed_run_is_no_slow_node() -> None:
    rng = np.random.default_rng(26)
    fleet = build(SMALL, rng)
    before, measured = results(fleet, rng), results(fleet, rng)
    measured[9, 0, :6] = 0.0
    measured[10, 0] = 0.0
    assert named(window(fleet, measured, 1, [window(fleet, before)])) == []
    twice = window(fleet, measured, 1, [window(fleet, measured)])
    assert named(twice) == ["node/gpu-0010"]


def test_a_baseline_names_who_is_below_it_without_any_other_node() -> None:
    seen = of_values("bw", {"node/n0": [100.0], "node/n1": [92.0]}, "mem")
    (suspect,) = verdict_of(seen, baseline='{"mem/bw": 100}')["suspects"]
    assert (suspect["component"], suspect["score"]) == ("node/n1", None)
    assert "mem/bw is 92, 8 % worse than the baseline of 100" in suspect["summary"]


RULES = """superbench:
  rules:
    slow: {function: variance, criteria: 'lambda x: x < -0.2', categories: Mem, metrics: ['mem/bw']}
"""


def test_rules_name_who_violates_them_and_nobody_else() -> None:
    seen = of_values("bw", {"node/n0": [100.0], "node/n1": [92.0], "node/n2": [79.0]}, "mem")
    verdict = verdict_of(seen, baseline='{"mem/bw": 100}', rules=RULES, min_nodes=20)
    assert [one["component"] for one in verdict["suspects"]] == ["node/n2"]
    assert verdict["evidence"][0]["title"] == "Violations of the given limits"


def test_rules_that_cannot_be_applied_are_told() -> None:
    seen = of_values("bw", {"node/n0": [100.0]}, "mem")
    verdict = verdict_of(seen, rules=RULES)
    assert verdict["reason"] == "The rules cannot be applied: rule slow: mem/bw has no baseline."


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"rules": "a: 1"}, "no rules under superbench.rules"),
        ({"baseline": "[]"}, "not a JSON object of numbers"),
    ],
)
def test_documents_that_cannot_be_read_are_refused(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidParameterError, match=complaint):
        check_params(ANALYZER, given)


def test_a_document_is_read_from_a_file_on_a_command_line(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    assert parse_params(ANALYZER, [f"rules=@{tmp_path}/rules.yaml"])["rules"] == RULES
    with pytest.raises(InvalidParameterError, match="parameter rules: /none: cannot be read"):
        parse_params(ANALYZER, ["rules=@/none"])


@pytest.mark.skipif(
    SUPERBENCH is None, reason="SUPERBENCH_DIR: files that SuperBench wrote are not installed"
)
def test_both_defective_nodes_of_superbench_are_named() -> None:
    assert SUPERBENCH is not None
    given = {name: (Path(SUPERBENCH) / file).read_text() for name, file in FILES.items()}
    tables = read([f"benchmark={SUPERBENCH}/results.jsonl"], BytesIO())
    (seen,) = windows(ANALYZER, ANALYZER.inputs[-1], tables)
    assert set(named(seen, **given)) == {"node/sb-validation-01", "node/sb-validation-03"}


def test_few_nodes_are_judged_by_what_the_fleet_did_before() -> None:
    seen = fleet_window(history=1, gray=3)
    few = seen.sums["samples"]
    kept = [row for row, node in enumerate(texts(few, "node")) if node <= "node/gpu-0004"]
    keys: dict[str, Any] = {
        name: tuple(texts(few, name)[row] for row in kept) for name in ("node", "benchmark", "metric", "sku")
    }
    keys["value"] = np.asarray(few.keys["value"])[kept]
    only = Sums(keys, {"times": few.values["times"][kept]}, len(kept))
    assert named(replace(seen, sums={**seen.sums, "samples": only})) == ["node/gpu-0003"]


def test_results_that_do_not_repeat_judge_no_one() -> None:
    rng = np.random.default_rng(5)
    levels = {name: rng.uniform(0.5, 1.5) for name in nodes(40)}

    def day() -> Window:
        return of_values("bw", {name: [100 * rng.choice([0.5, 1.5, 1.0])] * 2 for name in levels})

    verdict = verdict_of(replace(day(), history=(day(),)))
    assert verdict["status"] == "inconclusive"


def test_an_unknown_direction_is_told_and_can_be_given() -> None:
    values = nodes(30) | {"node/bad": [80.0]}
    unknown = verdict_of(of_values("score", values))
    assert unknown["reason"] == "mine/score: its name does not say which direction is worse."
    assert named(of_values("score", values), higher="score") == ["node/bad"]
    assert named(of_values("score", values), lower="score") == []


def test_a_return_code_that_is_not_zero_is_a_failure_of_its_node() -> None:
    codes = {name: [0.0] for name in nodes(30)} | {"node/bad": [3.0]}
    verdict = verdict_of(of_values("return_code", codes))
    assert verdict["suspects"][0]["summary"] == "node/bad fails mine/return_code (3 instead of 0)."


def test_a_test_that_most_nodes_fail_blames_no_one() -> None:
    codes = {name: [1.0] for name in nodes(30)} | {"node/good": [0.0]}
    assert verdict_of(of_values("return_code", codes))["status"] == "inconclusive"


def test_figures_around_zero_are_not_judged() -> None:
    verdict = verdict_of(of_values("bw", {name: [0.0] for name in nodes(30)}))
    assert "usual value is not above 0" in verdict["reason"]


def test_equal_figures_everywhere_are_quiet() -> None:
    assert verdict_of(of_values("bw", {name: [5.0] for name in nodes(30)}))["status"] == "quiet"


def test_an_empty_window_is_inconclusive() -> None:
    assert verdict_of(of_values("bw", {}))["reason"] == "No benchmark was run in this window."


def test_all_nodes_but_one_failing_is_no_matter_of_nodes() -> None:
    values = {name: [50.0, 50.5] for name in nodes(30)} | {"node/odd": [100.0]}
    assert named(of_values("bw", values)) == []


def test_scores_rise_as_chance_explains_less() -> None:
    at = [probability(by_chance) for by_chance in (1e3, 10, 1, 0.1, 1e-2, 1e-4, 0)]
    assert at == sorted(at)
    assert at[-1] == SCORES[-1][1]


def test_rows_and_windows_of_the_simulator_agree() -> None:
    rng = np.random.default_rng(2)
    fleet = build(SMALL, rng)
    measured = results(fleet, rng, benign="missing")
    cut = window(fleet, measured)
    rows = rows_of(fleet, measured, EPOCH)
    assert sum(len(row["values"]) for row in rows) == int(cut.sums["samples"].values["times"].sum())
