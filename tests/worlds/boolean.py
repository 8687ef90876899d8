"""Attempts on the paths of a Clos fabric of which a link or a switch passes nothing, as Boolean tomography assumes.

Topology and routes: `tests.worlds.clos`, unequal pods, missing links, polarised ECMP. A path depends on its links (a
name for each direction) and on the switches that it passes; servers are not named. Paths are drawn by how busy servers
are (log-normal), so that links are covered very unequally and some by a few paths only.

Noise. Good links fail attempts at gamma distributed rates around 1e-6 to 1e-3; attempts are log-normal; bursts fail 10
to 100 % of the attempts of a path for reasons of no component (a server that restarts). Boolean methods (Duffield, IEEE
Trans. IT 2006; SCORE: Kompella et al., NSDI 2005; deTector: Peng et al., ATC 2017) call a path bad or good by a
threshold, which all of this disturbs.

Truth. A fault fails at least `MOST_FAINT` attempts on three rows or more in each of its windows. `Fault.acceptable` are
components in whose place the rows would look the same (fewer than 3 failures unexplained and fewer than 6 to be
expected elsewhere), and the links of a switch that stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, Row, World
from tests.worlds.clos import Fabric, fabric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_FAINT = 20
"""Attempts that a fault fails in a window at least, for it to be planted."""

_START = datetime(2025, 7, 8, 3, tzinfo=UTC)
_EVERY = timedelta(minutes=5)


@dataclass(frozen=True)
class _Plan:
    """Settings of a case: how many links and switches fail, what they fail, and what disturbs."""

    links: int = 0
    switches: int = 0
    loss: tuple[float, float] = (1.0, 1.0)
    paths: int = 1500
    windows: int = 5
    calm: int = 2
    noise: tuple[float, float] = (1e-6, 2e-5)
    volume: float = 150.0
    spread: float = 0.5
    bursts: float = 0.0
    missing: float = 0.0
    wrong: float = 0.0


_NOISE = (3e-4, 1e-3)
_PLANS: dict[str, tuple[_Plan, str]] = {
    "healthy": (_Plan(), "nothing is broken"),
    "healthy_noise": (_Plan(noise=_NOISE), "good links fail 3e-4 to 1e-3 of the attempts; nothing is broken"),
    "healthy_bursts": (_Plan(bursts=0.02), "bursts on 2 % of the paths; nothing is broken"),
    "link": (_Plan(links=1), "one direction of a link passes nothing"),
    "switch": (_Plan(switches=1), "a switch passes nothing"),
    "link_noise": (_Plan(links=1, noise=_NOISE), "a link passes nothing, good links fail 3e-4 to 1e-3"),
    "switch_noise": (
        _Plan(switches=1, noise=_NOISE),
        "a switch passes nothing, good links fail 3e-4 to 1e-3",
    ),
    "link_bursts": (_Plan(links=1, bursts=0.02), "a link passes nothing, bursts on 2 % of the paths"),
    "switch_bursts": (_Plan(switches=1, bursts=0.02), "a switch passes nothing, bursts on 2 % of the paths"),
    "few_paths": (_Plan(links=1, paths=250), "a link passes nothing, 250 paths are measured"),
    "unequal": (
        _Plan(links=1, spread=2.0),
        "a link passes nothing, attempts of paths differ by a factor of 1000",
    ),
    "low_volume": (
        _Plan(links=1, volume=4.0, noise=_NOISE),
        "a link passes nothing, about four attempts a path",
    ),
    "missing": (_Plan(links=1, missing=0.5), "a link passes nothing, half of the rows are missing"),
    "wrong": (
        _Plan(switches=1, wrong=0.05),
        "a switch passes nothing, 5 % of the recorded components are wrong",
    ),
    "wrong_healthy": (
        _Plan(wrong=0.05, bursts=0.01),
        "5 % of the recorded components are wrong; nothing is broken",
    ),
    "several": (_Plan(links=3, switches=1), "three links and a switch pass nothing"),
    "partial": (_Plan(links=1, loss=(0.1, 0.6)), "a link fails 10 to 60 % of the attempts"),
    "always": (_Plan(links=1, calm=0), "a link passes nothing from the first row on"),
}
CASES: dict[str, str] = {name: text for name, (_, text) in _PLANS.items()}
"""Each case in one sentence."""


def make(seed: int, case: str) -> World:
    """The world of a case; the same seed gives the same rows. Raises KeyError for a case that is not in `CASES`."""
    plan = _PLANS[case][0]
    rng = np.random.default_rng([seed, 20050502, sum(case.encode())])
    net = _net(rng, plan)
    attempts, failures, kept = _normal(rng, plan, net)
    faults, notes = [], []
    start, end = _START + plan.calm * _EVERY, _START + plan.windows * _EVERY
    for one, loss in _broken(rng, plan, net, np.where(kept, attempts, 0)):
        extra = rng.binomial(attempts - failures, loss) * net.crosses[:, one]
        extra[: plan.calm] = 0
        shown = np.where(kept, extra, 0)[plan.calm :]
        least, rows = int(shown.sum(axis=1).min()), int((shown > 0).sum(axis=1).min())
        if least < MOST_FAINT or rows < 3:
            notes.append(
                f"{net.names[one]} would have failed {least} attempts in a window: nothing failed there"
            )
            continue
        acceptable = _alike(net, one, np.where(kept, attempts, 0)[plan.calm :], shown)
        failures = failures + extra
        kind = "stop" if loss == 1.0 else "partial"
        faults.append(Fault(net.names[one], kind, start, end, acceptable))
        notes.append(
            f"{net.names[one]} {kind}: {shown.sum()} failures, at least {least} a window on {rows} rows"
        )
    return World(
        case=case,
        seed=seed,
        rows={"path_outcome": _rows(rng, plan, net, attempts, failures, kept)},
        every=_EVERY,
        judged_from=_START,
        faults=tuple(faults),
        notes=(f"{len(net.names)} components, {len(net.crosses)} paths", CASES[case], *notes),
    )


@dataclass(frozen=True)
class _Net:
    """Components by number, and whether a path crosses them and is recorded to: (paths, components)."""

    fabric: Fabric
    names: tuple[str, ...]
    is_link: Flags
    crosses: Flags
    recorded: Flags


def _net(rng: np.random.Generator, plan: _Plan) -> _Net:
    made = fabric(rng)
    busy = rng.lognormal(0.0, 0.7, len(made.hosts))
    src, dst = rng.choice(len(made.hosts), (2, plan.paths), p=busy / busy.sum())
    kept = (made.rack[src] != made.rack[dst]) & made.connected(src, dst)
    paths = np.unique(made.paths(rng, src[kept], dst[kept])[:, 1:5], axis=0)
    links = sorted({int(link) for link in paths.ravel() if link >= 0})
    devices = sorted({end for link in links for end in made.ends[link]})
    kinds = {"t": "tor", "a": "agg", "s": "spine"}
    names = [made.links[link] for link in links]
    names += [f"{kinds[one.rpartition('-')[2][0]]}/{one}" for one in devices]
    number = {link: i for i, link in enumerate(links)}
    device = {one: len(links) + i for i, one in enumerate(devices)}
    crosses = np.zeros((len(paths), len(names)), dtype=bool)
    for path, of in enumerate(paths.tolist()):
        for link in of:
            if link >= 0:
                crosses[path, [number[link], *(device[end] for end in made.ends[link])]] = True
    is_link = np.arange(len(names)) < len(links)
    return _Net(made, tuple(names), is_link, crosses, _recorded(rng, plan, crosses, is_link))


def _recorded(rng: np.random.Generator, plan: _Plan, crosses: Flags, is_link: Flags) -> Flags:
    """The paths as they are recorded: a share of the components is another of its kind (link or switch)."""
    recorded = crosses.copy()
    for path, one in np.argwhere(crosses & (rng.random(crosses.shape) < plan.wrong)):
        recorded[path, one] = False
        recorded[path, int(rng.choice(np.flatnonzero(is_link == is_link[one])))] = True
    return recorded


def _normal(rng: np.random.Generator, plan: _Plan, net: _Net) -> tuple[Ints, Ints, Flags]:
    """Attempts and failures without any fault, and which rows are kept: (windows, paths) each."""
    shape = (plan.windows, len(net.crosses))
    mean = plan.volume * rng.lognormal(-(plan.spread**2) / 2, plan.spread, shape[1])
    attempts = np.maximum(rng.poisson(mean * rng.gamma(10.0, 0.1, shape)), 1)
    level = math.exp(rng.uniform(math.log(plan.noise[0]), math.log(plan.noise[1])))
    rates = level * rng.gamma(1.5, 1 / 1.5, len(net.names)) * net.is_link
    failures = rng.binomial(attempts, -np.expm1(-(net.crosses @ rates))[None, :] * np.ones(shape))
    hit = rng.random(shape) < plan.bursts
    failures += rng.binomial(attempts - failures, np.where(hit, rng.uniform(0.1, 1.0, shape), 0.0))
    return attempts, failures, rng.random(shape) >= plan.missing


def _broken(rng: np.random.Generator, plan: _Plan, net: _Net, attempts: Ints) -> list[tuple[int, float]]:
    """Components that fail, and how much; such as have rows enough to show."""
    rows = (net.crosses * (attempts > 0).mean(axis=0)[:, None]).sum(axis=0)
    carried = attempts.mean(axis=0) @ net.crosses
    chosen: list[tuple[int, float]] = []
    for among, count in ((~net.is_link, plan.switches), (net.is_link, plan.links)):
        loss = math.exp(rng.uniform(math.log(plan.loss[0]), math.log(plan.loss[1])))
        shows = among & (rows >= 6) & (carried * loss >= 2 * MOST_FAINT)
        few = np.flatnonzero(shows & (net.crosses.mean(axis=0) < 0.3))
        chosen += [(int(one), loss) for one in rng.choice(few, count, replace=False)]
    return chosen


def _alike(net: _Net, one: int, attempts: Ints, shown: Ints) -> tuple[str, ...]:
    """Components in whose place the rows would look the same in every window of the fault."""
    mine = net.crosses[:, one]
    alike = np.ones(len(net.names), dtype=bool)
    for tried, failed in zip(attempts, shown, strict=True):
        level = failed.sum() / max(1, int(tried[mine].sum()))
        alike &= (failed @ ~net.recorded < 3) & ((tried * ~mine * level) @ net.recorded < 6)
    names = {net.names[other] for other in np.flatnonzero(alike)}
    if not net.is_link[one]:
        device = net.names[one].partition("/")[2]
        names |= {
            name
            for name, ends in zip(net.fabric.links, net.fabric.ends, strict=True)
            if device in ends and name in net.names
        }
    return tuple(sorted(names - {net.names[one]}))


def _rows(
    rng: np.random.Generator, plan: _Plan, net: _Net, attempts: Ints, failures: Ints, kept: Flags
) -> list[Row]:
    members = [[net.names[one] for one in np.flatnonzero(path)] for path in net.recorded]
    start, length = int(_START.timestamp()), int(_EVERY.total_seconds())
    rows: list[Row] = []
    for window in range(plan.windows):
        used = np.flatnonzero(kept[window])
        seconds = (start + window * length + rng.integers(0, length, len(used))).tolist()
        counts = attempts[window, used].tolist(), failures[window, used].tolist()
        for path, second, many, failed in zip(used.tolist(), seconds, *counts, strict=True):
            row = {"components": members[path], "attempts": many, "failures": failed}
            rows.append({"time": second * 10**9, **row})
    return rows
