"""The benign suite: events in which nothing is at fault, told to every analyzer whose telemetry they touch.

python -m tests.benchmarks.benign [--windows N] [--first SEED] [--table] [ANALYZER ...]

A planned upgrade, a drain, a clock step, a crashed agent, 5 % of the rows missing, a stale topology; for analyzers of
training jobs checkpoint stalls, evaluation phases, elastic resize, GPUs shared in time, a slow read from storage, and
uneven experts: each in healthy windows of the analyzer's own simulator, where whoever is named is blamed falsely. What
an event is for one of them is said in its simulator; cells that make no sense say why. Figures use seeds from
`FIRST_REPORTING_SEED` on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from analyzers.builtin import (
    availability,
    boolean,
    c4d,
    deepview,
    netbouncer,
    panorama,
    perftracker,
    pingmesh,
    skeletonhunter,
    straggler,
    tor_availability,
    trace_blame,
    validator,
    voting,
)
from analyzers.builtin.pingmesh.analyzer import FEW, FINE
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Analyzer, Sums, Verdict, Window, check_params
from analyzers.simulators import (
    bounces,
    mesh_windows,
    node_benchmarks,
    observations,
    observers,
    outages,
    profiles,
    traces,
    uptimes,
)
from analyzers.simulators.availability_events import device_month, unit_month
from analyzers.simulators.collectives import rows as collectives
from analyzers.simulators.deepview import CLUMPED, EPOCH, FIRST_REPORTING_SEED
from analyzers.simulators.deepview_events import eventful_hour
from analyzers.simulators.fleet import M, build
from analyzers.simulators.mesh import Mesh
from analyzers.simulators.mesh import build as build_mesh
from analyzers.simulators.trace_rows import case
from analyzers.simulators.training_windows import window_of
from tests.benchmarks import c4d as c4d_trials
from tests.benchmarks import skeletonhunter as skeletonhunter_trials
from tests.benchmarks import straggler as straggler_trials
from tests.benchmarks import voting_trials as flows
from tests.benchmarks.glance import told
from tests.benchmarks.scoring import spread

Row = dict[str, Any]

EVENTS = ("upgrade", "drain", "clock_step", "agent_crash", "missing_rows", "stale_topology")
SPOKEN = (
    "none",
    "planned upgrade",
    "drain",
    "clock step",
    "agent crash",
    "5 % of rows missing",
    "stale topology",
)

TRAINING = ("checkpoint", "evaluation", "elastic_resize", "time_shared", "slow_read", "moe_imbalance")
TRAINING_SPOKEN = (
    "none",
    "checkpoint stall",
    "evaluation",
    "elastic resize",
    "GPUs shared in time",
    "slow read",
    "uneven experts",
)
OF_TRAINING = ("c4d", "perftracker", "straggler", "skeletonhunter")

WINDOWS = 60
MONTHS, UNITS = replace(outages.HEALTHY, devices=5000, monthly=0.0002), uptimes.Month(units=1500, farther=0.0)


@dataclass(frozen=True)
class Job:
    """One healthy window of an analyzer in which an event happens; an empty text is none."""

    analyzer: str
    event: str
    seed: int


@dataclass(frozen=True)
class Told:
    """Windows judged (several of one system where windows slide), blames in them, whether anyone was blamed."""

    windows: int
    false: int
    accused: int
    undecided: int


def judged(analyzer: Analyzer, windows: Sequence[Window], **params: object) -> Told:
    chosen = check_params(analyzer, params)
    verdicts: list[Verdict] = [analyzer.analyze(window, chosen) for window in windows]
    false = [len(verdict.suspects) for verdict in verdicts]
    undecided = sum(verdict.status == "inconclusive" for verdict in verdicts)
    return Told(len(verdicts), sum(false), sum(count > 0 for count in false), undecided)


def _drawn(seed: int, event: str) -> np.random.Generator:
    return np.random.default_rng([seed, 6, ("", *EVENTS).index(event)])


def _deepview(seed: int, event: str) -> Told:
    rng = _drawn(seed, event)
    return judged(deepview.ANALYZER, [eventful_hour(build(M, rng), rng, CLUMPED, event)])


def _voting(seed: int, event: str) -> Told:
    job = flows.Job(seed, 0, benign=event)
    return judged(voting.ANALYZER, [flows.made(job).window])


def _boolean(seed: int, event: str) -> Told:
    """On voting's windows: the analyzers read the same probes."""
    window = flows.made(flows.Job(seed, 0, benign=event)).window
    paths = window.sums["paths"]
    values = {"attempts": paths.values["sent"], "failures": paths.values["lost"]}
    seen = replace(window, sums={"paths": Sums(paths.keys, values, paths.rows)})
    return judged(boolean.ANALYZER, [seen])


def _netbouncer(seed: int, event: str) -> Told:
    rng = _drawn(seed, event)
    one = bounces.bounce(8, 0, rng)
    noted = bounces.with_event(one, rng, event) if event else one
    sums = {"paths": bounces.sums_of(noted)}
    return judged(netbouncer.ANALYZER, [Window(EPOCH, EPOCH, "simulated", "probe", sums)])


@cache
def _mesh() -> Mesh:
    return build_mesh(3, 6, 8)


def _pingmesh(seed: int, event: str) -> Told:
    rng = _drawn(seed, event)
    one = mesh_windows.scene(_mesh(), rng)
    if event:
        one = mesh_windows.with_event(one, rng, mesh_windows.EVENTS[event])
    return judged(pingmesh.ANALYZER, [mesh_windows.window_of(one, rng, FEW, FINE, 60)])


_ONSET, _SECONDS, _LENGTH = 25.0, 40.0, 20.0


def _panorama(seed: int, event: str) -> Told:
    """Windows of 20 s that end every 2 s."""
    rng = _drawn(seed, event)
    system = observers.build(observers.Shape(processes=int(rng.integers(10, 51))), rng)
    faults, transport = observers.draw_event(system, rng, event, _ONSET)
    reports = observers.observe(system, rng, _SECONDS, faults, transport)
    ends = np.arange(_ONSET, _SECONDS - 2, 2.0).tolist()
    windows = [observations.window_of(reports, end - _LENGTH, end, known_at=end) for end in ends]
    return judged(panorama.ANALYZER, windows)


def _validator(seed: int, event: str) -> Told:
    rng = _drawn(seed, event)
    fleet = node_benchmarks.build(node_benchmarks.Preset(), rng)
    measured = node_benchmarks.results(fleet, rng, benign=node_benchmarks.EVENTS.get(event, ""))
    return judged(validator.ANALYZER, [node_benchmarks.window(fleet, measured)])


def _trace_blame(seed: int, event: str) -> Told:
    window, _, _ = case(seed, benign=traces.EVENTS.get(event))
    return judged(trace_blame.ANALYZER, [window])


def _tor_availability(seed: int, event: str) -> Told:
    rng = _drawn(seed, event)
    record = outages.draw(MONTHS, seed)
    return judged(tor_availability.ANALYZER, [device_month(record, rng, event)])


def _availability(seed: int, event: str) -> Told:
    rng = _drawn(seed, event)
    life = uptimes.draw(UNITS, seed)
    return judged(availability.ANALYZER, [unit_month(life, rng, event)])


def _c4d(seed: int, event: str) -> Told:
    """Windows of a minute that end 10 to 50 s after the event began."""
    name = [*c4d_trials.JOBS][seed % len(c4d_trials.JOBS)]
    job = replace(c4d_trials.JOBS[name], experts=event == "moe_imbalance")
    event = {"elastic_resize": "resize", "moe_imbalance": "experts"}.get(event, event)
    windows = [collectives.case(job, seed, "", event, c4d_trials.ONSET, at)[0] for at in (80.0, 90.0, 120.0)]
    return judged(c4d.ANALYZER, windows)


def _perftracker(seed: int, event: str) -> Told:
    made = profiles.profile(profiles.Preset(), np.random.default_rng([seed, 23]), (), event)
    return judged(perftracker.ANALYZER, [profiles.window_of(made)])


def _straggler(seed: int, event: str) -> Told:
    return judged(
        straggler.ANALYZER, [window_of(straggler_trials.world(straggler_trials.Job(seed, "", event)))]
    )


def _skeletonhunter(seed: int, event: str) -> Told:
    event = {"checkpoint": "checkpoint_stall", "time_shared": "congestion"}.get(event, event)
    window, _ = skeletonhunter_trials.window_of(skeletonhunter_trials.Trial(seed, (), event))
    return judged(skeletonhunter.ANALYZER, [window])


CASES: Mapping[str, Callable[[int, str], Told]] = MappingProxyType(
    {
        "deepview": _deepview,
        "voting": _voting,
        "boolean": _boolean,
        "netbouncer": _netbouncer,
        "pingmesh": _pingmesh,
        "panorama": _panorama,
        "validator": _validator,
        "trace_blame": _trace_blame,
        "tor_availability": _tor_availability,
        "availability": _availability,
        "c4d": _c4d,
        "perftracker": _perftracker,
        "straggler": _straggler,
        "skeletonhunter": _skeletonhunter,
    }
)

WHY_NOT: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("pingmesh", "upgrade"): "as drain",
        ("panorama", "stale_topology"): "reads none",
        ("trace_blame", "stale_topology"): "reads none",
        ("availability", "stale_topology"): "reads no places",
        ("skeletonhunter", "slow_read"): "touches no probe",
        ("skeletonhunter", "moe_imbalance"): "as GPUs shared in time: congestion",
    }
)
"""Cells that make no sense, with the reason in a word."""

QUICK = ("deepview", "netbouncer", "pingmesh")
"""Analyzers whose window takes less than 20 ms of CPU, the simulation included."""

BLAME_NOBODY = ("colocation", "selector")
"""Analyzers that are not asked: one measures a ratio, the other says which nodes to validate."""


def events_of(name: str) -> tuple[str, ...]:
    return TRAINING if name in OF_TRAINING else EVENTS


def _spoken(name: str) -> tuple[str, ...]:
    return TRAINING_SPOKEN if name in OF_TRAINING else SPOKEN


def run(job: Job) -> Told:
    return CASES[job.analyzer](job.seed, job.event)


def totals(names: Sequence[str], windows: int, first: int) -> dict[tuple[str, str], Told]:
    """The sums over all windows by analyzer and event."""
    cells = [
        (name, event) for name in names for event in ("", *events_of(name)) if (name, event) not in WHY_NOT
    ]
    jobs = [Job(name, event, first + n) for name, event in cells for n in range(windows)]
    found = iter(spread(run, jobs))
    sums = {}
    for cell in cells:
        parts = [next(found) for _ in range(windows)]
        sums[cell] = Told(*(sum(getattr(one, name) for one in parts) for name in Told.__dataclass_fields__))
    return sums


def figures(names: Sequence[str], windows: int, first: int) -> Iterator[Row]:
    for (name, event), seen in totals(names, windows, first).items():
        low, high = wilson(seen.accused, seen.windows)
        accused, undecided = ([hits, seen.windows] for hits in (seen.accused, seen.undecided))
        cells: Row = {"benign": accused} if event else {"healthy": accused, "healthy_undecided": undecided}
        yield (told(name, **cells) if event or name == "boolean" else {}) | {
            "name": f"{name}: false blames per window, {_spoken(name)[('', *events_of(name)).index(event)]}",
            "value": round(seen.false / seen.windows, 4),
            "unit": "",
            "bar": "<= 0.05",
            "interval": [low, high],
            "note": f"{seen.accused} of {seen.windows} windows accuse anyone [{low:.3f}, {high:.3f}], "
            f"{seen.undecided} inconclusive",
        }


def table(names: Sequence[str], windows: int, first: int) -> Iterator[str]:
    """The same as tables in Markdown: of analyzers of training jobs, and of all others."""
    sums = totals(names, windows, first)
    for spoken in (SPOKEN, TRAINING_SPOKEN):
        mine = [name for name in names if _spoken(name) is spoken]
        if not mine:
            continue
        yield f"| | {' | '.join(spoken)} |"
        yield f"|{' --- |' * (len(spoken) + 1)}"
        for name in mine:
            shown = [
                _shown(sums.get((name, event)), WHY_NOT.get((name, event), ""))
                for event in ("", *events_of(name))
            ]
            yield f"| `{name}` | {' | '.join(shown)} |"
        if spoken is SPOKEN:
            nobody = ", ".join(f"`{name}`" for name in BLAME_NOBODY)
            yield f"| {nobody} | {' | '.join(['blames nobody'] * len(spoken))} |"
        yield ""


def _shown(seen: Told | None, why_not: str) -> str:
    if seen is None:
        return why_not
    low, high = wilson(seen.accused, seen.windows)
    doubt = f"; {seen.undecided} inconclusive" if seen.undecided else ""
    return (
        f"{seen.false / seen.windows:.3f} ({seen.accused} of {seen.windows} [{low:.3f}, {high:.3f}]{doubt})"
    )


def main(windows: int = 12, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    """Of the quick ten times as many windows: one of twelve is above the bar, whatever the rate."""
    slow = [name for name in CASES if name not in QUICK]
    return [*figures(QUICK, 10 * windows, first), *figures(slow, windows, first)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="ANALYZER", help=", ".join(CASES))
    parser.add_argument("--windows", type=int, default=WINDOWS, help="of each cell")
    parser.add_argument("--first", type=int, default=FIRST_REPORTING_SEED)
    parser.add_argument("--table", action="store_true", help="as Markdown")
    arguments = parser.parse_args()
    chosen = arguments.names or list(CASES)
    if arguments.table:
        for text in table(chosen, arguments.windows, arguments.first):
            print(text, flush=True)
    else:
        from tests.benchmarks.__main__ import line

        for one in figures(chosen, arguments.windows, arguments.first):
            print(line(one), flush=True)
