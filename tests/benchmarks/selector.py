"""Whether the selector's probabilities hold, and what following its advice gains, on simulated wear of GPU nodes.

python -m tests.benchmarks.selector [--traces N] [--first SEED]

What is learnt comes from one fleet that nobody validates (200 nodes, half a year); it is tried on another fleet that
wears faster. There policies meet the same luck: never validate, all benchmarks on every node every day or every week,
what the selector says at each of many targets, as many node-hours on nodes taken at random, and an oracle that mends a
part the moment its spares are gone. The simulated rates set how much can be gained at all, so that the ratio to `never`
says nothing without the oracle's.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.selector import ANALYZER
from analyzers.builtin.selector.episodes import episodes
from analyzers.builtin.selector.hazard import Model, State, fit
from analyzers.builtin.selector.plan import Past, Step, choose, greedy
from analyzers.builtin.selector.trial import Trial, scored
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Sums, Window, check_params
from analyzers.simulators.node_wear import (
    BENCHMARKS,
    COVARIATES,
    EPOCH,
    FIRST_REPORTING_SEED,
    HOURS,
    SHIFTED,
    STEP_HOURS,
    Fleet,
    Policy,
    Rates,
    Trace,
    benchmark_rows,
    draw,
    incident_sums,
    name_of,
    rows_of,
    run,
)
from tests.benchmarks.glance import told
from tests.benchmarks.growth import peak_memory
from tests.benchmarks.scoring import spread
from tests.benchmarks.worlds import reliability

Row = dict[str, Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TARGETS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
HORIZON = 24.0
SHOWN = "incidents within a day, at the default target"
DEFAULT = float(check_params(ANALYZER, {})["target_probability"])
PUBLISHED = (
    "the authors report up to 22.61x in production (USENIX ATC 2024), with another hazard and another model"
)


@dataclass(frozen=True)
class Job:
    """One pair of fleets: learn on the first, try on the second."""

    seed: int


@dataclass(frozen=True)
class Outcome:
    """Totals of a policy: node hours of work, incidents, node hours of benchmarks and of repair."""

    up: float
    incidents: int
    validation: float
    repair: float


@dataclass(frozen=True)
class Result:
    outcomes: dict[str, Outcome]
    predicted: Floats
    happened: Mask


def window_of(rates: Rates, trace: Trace) -> Window:
    sums = {"incidents": incident_sums(rows_of(trace))}
    return Window(EPOCH, EPOCH + timedelta(days=rates.days), "simulated", "incidents", sums)


def learn(seed: int, rates: Rates) -> tuple[Model, tuple[Step, ...], tuple[int, ...]]:
    """The model of a fleet that nobody validates, the order of benchmarks, and where its covariates stand."""
    luck = draw(rates, np.random.default_rng([seed, 1]))
    params = check_params(ANALYZER, {})
    told = episodes(
        window_of(rates, run(rates, luck)),
        frozenset(str(params["not_incidents"]).split(",")),
        frozenset(str(params["gone"]).split(",")),
    )
    order = tuple(("incidents_before", *COVARIATES).index(name) for name in told.names)
    return fit(told, HORIZON, 10), greedy(_past(run(rates, luck)), 0.5), order


def _past(trace: Trace) -> Past:
    """Defects that each benchmark showed in the rounds that all nodes take."""
    found: dict[str, frozenset[tuple[str, int]]] = {}
    for b, benchmark in enumerate(BENCHMARKS):
        found[benchmark] = frozenset(
            (name_of(int(node)), step) for step, shown in trace.rounds for node in np.flatnonzero(shown[:, b])
        )
    return Past(found, dict(zip(BENCHMARKS, HOURS.tolist(), strict=True)))


def state_of(fleet: Fleet, seen: Floats, order: tuple[int, ...], step: int) -> State:
    """Knowledge of the nodes, as the model has it."""
    covariates = np.column_stack([np.log1p(fleet.incidents), seen])[:, list(order)]
    return State(covariates, fleet.since, np.full(len(seen), (step + 1) * STEP_HOURS), fleet.incidents.copy())


def following(
    model: Model, steps: tuple[Step, ...], order: tuple[int, ...], target: float, incident_hours: float
) -> Policy:
    """Do what the selector says, on as many nodes at once as it recommends."""
    most = int(check_params(ANALYZER, {})["most_nodes"])
    column = {name: b for b, name in enumerate(BENCHMARKS)}

    def policy(step: int, fleet: Fleet, seen: Floats) -> Mask:
        chance = model.chance(state_of(fleet, seen, order, step), HORIZON)
        chosen = np.zeros((len(chance), len(BENCHMARKS)), dtype=bool)
        likely = np.flatnonzero((chance > target) & (fleet.away <= 0))
        for node in likely[np.argsort(-chance[likely], kind="stable")][:most].tolist():
            for name in choose(float(chance[node]), steps, target, incident_hours).benchmarks:
                chosen[node, column[name]] = True
        return chosen

    return policy


def run_pair(job: Job) -> Result:
    model, steps, order = learn(job.seed, Rates())
    luck = draw(SHIFTED, np.random.default_rng([job.seed, 2]))
    everything = np.ones((SHIFTED.nodes, len(BENCHMARKS)), dtype=bool)
    nothing = np.zeros_like(everything)
    predicted: list[Floats] = []

    def watching(step: int, fleet: Fleet, seen: Floats) -> Mask:
        """Validates no one, and notes what the model says."""
        predicted.append(model.chance(state_of(fleet, seen, order, step), HORIZON))
        return nothing

    never = run(SHIFTED, luck, watching)
    traces = {
        "never": never,
        "always": run(SHIFTED, luck, lambda _step, _fleet, _seen: everything),
        "weekly": run(SHIFTED, luck, lambda step, _fleet, _seen: everything if step % 14 == 0 else nothing),
        "oracle": run(SHIFTED, luck, oracle=True),
    }
    usual = float(check_params(ANALYZER, {})["incident_hours"])
    for target in TARGETS:
        traces[f"target {target:g}"] = run(SHIFTED, luck, following(model, steps, order, target, usual))
    share = traces[f"target {DEFAULT:g}"].validation / traces["always"].validation
    dice = np.random.default_rng([job.seed, 3])
    traces["at random, the hours of the default"] = run(
        SHIFTED, luck, lambda _step, _fleet, _seen: everything & (dice.random(SHIFTED.nodes) < share)[:, None]
    )
    for target in TARGETS[:3]:
        costly = following(model, steps, order, target, 10 * usual)
        traces[f"target {target:g}, incidents of {10 * usual:g} node-hours"] = run(SHIFTED, luck, costly)
    outcomes = {
        name: Outcome(one.up, len(one.incidents), one.validation, one.repair) for name, one in traces.items()
    }
    return Result(outcomes, np.concatenate(predicted[:-1]), _happened(never, len(predicted) - 1))


def _happened(trace: Trace, decisions: int) -> Mask:
    """Whether each node had an incident in the day after each decision (every second step, before its luck is drawn
    for the next).
    """
    struck = np.zeros((2 * decisions + 3, SHIFTED.nodes), dtype=bool)
    for step, node in trace.incidents:
        if step < len(struck):
            struck[step, node] = True
    return np.concatenate([struck[2 * d + 1] | struck[2 * d + 2] for d in range(decisions)])


def total(results: list[Result], policy: str) -> Outcome:
    found = [one.outcomes[policy] for one in results]
    return Outcome(
        sum(one.up for one in found),
        sum(one.incidents for one in found),
        sum(one.validation for one in found),
        sum(one.repair for one in found),
    )


def mtbi(one: Outcome) -> float:
    return one.up / max(1, one.incidents)


def policy_rows(results: list[Result]) -> Iterator[Row]:
    never, always = total(results, "never"), total(results, "always")
    cost = float(check_params(ANALYZER, {})["incident_hours"])
    default = f"target {DEFAULT:g}"
    for name in results[0].outcomes:
        one = total(results, name)
        gains = [mtbi(r.outcomes[name]) / mtbi(r.outcomes["never"]) for r in results]
        per_node = len(results) * SHIFTED.nodes * SHIFTED.days
        lost = one.validation + cost * one.incidents
        note = (
            f"{min(gains):.1f} to {max(gains):.1f} by fleet; MTBI {mtbi(one):,.0f} h, {one.incidents} incidents; "
            f"benchmarks {24 * one.validation / (24 * per_node):.3f} h per node and day "
            f"({one.validation / max(always.validation, 1):.1%} of always); incidents and benchmarks cost "
            f"{lost / per_node:.3f} h per node and day"
        )
        note += f"; {PUBLISHED}" if name == default else ""
        gain = f"MTBI {mtbi(one) / mtbi(never):.2f} x never for {one.validation / max(always.validation, 1):.1%} of the"
        cells = told(
            "selector", SHOWN, published=f"{gain} hours of always; theirs up to 22.61 x (production)"
        )
        shown = f"selector, {name}{' (default)' if name == default else ''}" if "target" in name else name
        yield {
            "name": f"MTBI against never: {shown}",
            "value": round(mtbi(one) / mtbi(never), 2),
            "unit": "x",
            "bar": None,
            "note": note,
            **(cells if name == default else {}),
        }


def calibration_rows(results: list[Result]) -> Iterator[Row]:
    said, struck = (
        np.concatenate([getattr(one, name) for one in results]) for name in ("predicted", "happened")
    )
    yield from reliability(
        "selector, simulator", list(zip(said.tolist(), struck.tolist(), strict=True)), of="selector"
    )
    tried: Trial = scored(said, struck)
    bins = "; ".join(f"{one.predicted:.4f} -> {one.happened:.4f}" for one in tried.bins)
    yield {
        "name": "Brier score against always saying the usual share, on another fleet",
        "value": round(tried.brier / tried.climate, 4),
        "unit": "",
        "bar": "< 1",
        "note": f"{tried.brier:.5f} against {tried.climate:.5f}, {tried.predictions:,} predictions of 24 h",
    }
    yield {
        "name": "concordance, on another fleet",
        "value": round(tried.concordance or 0.0, 4),
        "unit": "",
        "bar": None,
        "note": f"reliability by fifths (said -> happened): {bins}",
    }


def warning_rows(results: list[Result]) -> Iterator[Row]:
    """Nodes that the probabilities pick, where nobody acts on them: before an incident, and before none."""
    said = np.concatenate([one.predicted for one in results])
    happened = np.concatenate([one.happened for one in results])
    usual = float(happened.mean())
    for target in TARGETS:
        picked = said > target
        hits, of, incidents = int((picked & happened).sum()), int(picked.sum()), int(happened.sum())
        low, high = wilson(hits, of)
        least, most = wilson(hits, incidents)
        cells = told("selector", SHOWN, precision=[hits, of], recall=[hits, incidents], time="a day ahead")
        yield (cells if target == DEFAULT else {}) | {
            "name": f"incidents within a day foreseen at target {target:g}",
            "value": round(hits / max(1, incidents), 3),
            "unit": "recall",
            "bar": None,
            "note": (
                f"{least:.3f} to {most:.3f}; precision {hits / max(1, of):.3f} ({low:.3f} to {high:.3f}), "
                f"{hits / max(1, of) / usual:.1f} times the usual share {usual:.4f}; {of:,} warnings"
            ),
        }


def result_sums(rows: list[Row]) -> Sums:
    """`benchmark` rows as the selector's reduction of them."""
    keyed = sorted(
        (row["node"], row["benchmark"], row["metric"], row["time"], value)
        for row in rows
        for value in row["values"]
    )
    nodes, benchmarks, metrics, times, values = zip(*keyed, strict=True)
    moments = {text: int(datetime.fromisoformat(text).timestamp()) * 1_000_000 for text in set(times)}
    keys: dict[str, Any] = {
        "node": nodes,
        "benchmark": benchmarks,
        "metric": metrics,
        "sku": ("",) * len(keyed),
        "time": np.array([moments[text] for text in times]),
        "value": np.array(values),
    }
    return Sums(keys, {"times": np.ones(len(keyed), dtype=np.int64)}, len(keyed))


def growth_rows() -> list[Row]:
    """Seconds over fleets of more and more nodes, half a year each."""
    took, sizes = [], (600, 1_800, 5_400)
    params = check_params(ANALYZER, {})
    for nodes in sizes:
        rates = replace(Rates(), nodes=nodes)
        rng = np.random.default_rng(FIRST_REPORTING_SEED)
        trace = run(rates, draw(rates, rng))
        seen = window_of(rates, trace)
        results = result_sums(benchmark_rows(trace, rates, rng))
        seen = replace(seen, sums={**seen.sums, "results": results})
        best = math.inf
        for _ in range(2):
            began = time.process_time()
            ANALYZER.analyze(seen, params)
            best = min(best, time.process_time() - began)
        took.append(best)
    peak = peak_memory(ANALYZER.analyze, seen, params)
    exponent = math.log(took[-1] / took[0]) / math.log(sizes[-1] / sizes[0])
    shown = ", ".join(f"{n:,}: {s:.2f} s" for n, s in zip(sizes, took, strict=True))
    weeks, rounds = rates.days // 7, len(trace.rounds)
    return [
        {
            "name": f"seconds for {sizes[-1]:,} nodes seen {weeks} times, {rounds} rounds of benchmarks",
            "value": round(took[-1], 2),
            "unit": "s",
            "bar": None,
            "note": f"peak {peak:.0f} MB; steps of {STEP_HOURS:g} h",
        },
        {
            "name": "growth of time with nodes, exponent",
            "value": round(exponent, 3),
            "unit": "",
            "bar": "<= 1.2",
            "note": shown,
            **told(
                "selector",
                seconds=f"{took[-1]:.1f} ({sizes[-1]:,} nodes)",
                memory=f"{peak:.0f} MB (the same)",
                growth=f"{exponent:.2f} (nodes)",
            ),
        },
    ]


def main(traces: int = 12) -> list[Row]:
    return list(figures(traces))


def figures(traces: int, first: int = FIRST_REPORTING_SEED) -> Iterator[Row]:
    results = spread(run_pair, [Job(first + n) for n in range(traces)])
    yield from policy_rows(results)
    yield from calibration_rows(results)
    yield from warning_rows(results)
    yield from growth_rows()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--traces", type=int, default=12, help="pairs of fleets")
    parser.add_argument("--first", type=int, default=FIRST_REPORTING_SEED, help="first seed")
    arguments = parser.parse_args()
    from tests.benchmarks.__main__ import line

    for row in figures(arguments.traces, arguments.first):
        print(line(row), flush=True)
