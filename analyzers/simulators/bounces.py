"""NetBouncer's probes: packets that a switch at the top sends back, over links of which some lose packets. Pure.

Setting of Tan et al. (NSDI 2019): a Clos network, every path from a host up to the highest tier, 100 probes a path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analyzers.contract import Paths, Sums
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.fabric import Fabric, Losses, build, fat_tree, healthy_loss, send
from analyzers.simulators.region import Row, stamp
from analyzers.simulators.routes import Routes, path_table
from analyzers.simulators.truth import happened

PROBES = 100
NOISE = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class Bounced:
    """One epoch: the routes probed, what was sent and lost on each, the names of the bad links, and the loss of every
    link, shape (links,).
    """

    fabric: Fabric
    routes: Routes
    losses: Losses
    sent: np.ndarray[Any, np.dtype[np.int64]]
    bad: tuple[str, ...]
    rates: np.ndarray[Any, np.dtype[np.float64]]

    def thinned(self, share: float, rng: np.random.Generator) -> Bounced:
        """Without a share of the rows, as when some senders' reports are missing."""
        return _only(self, rng.random(len(self.routes)) >= share)

    def with_bursts(
        self, share: float, rng: np.random.Generator, low: float = 0.02, high: float = 0.2
    ) -> Bounced:
        """A share of the paths loses U(low, high) of its probes besides, for reasons of its own: no link is bad."""
        lost = self.losses.lost.copy()
        struck = np.flatnonzero(rng.random(len(lost)) < share)
        lost[struck] += rng.binomial(self.sent[struck] - lost[struck], rng.uniform(low, high, len(struck)))
        return replace(self, losses=replace(self.losses, lost=lost))


EVENTS = ("upgrade", "drain", "clock_step", "agent_crash", "missing_rows", "stale_topology")
"""Events in which no link is at fault: a T1 is taken down for a planned upgrade, or a switch at the top is drained, and
no longer probed; of one prober in twenty the next epoch is counted too, or nothing arrives; 5 % of the rows are
missing, or name the path that another probe of the same prober takes.
"""


def with_event(one: Bounced, rng: np.random.Generator, event: str) -> Bounced:
    """Record of a healthy epoch in which one of `EVENTS` happened."""
    if event == "missing_rows":
        return one.thinned(0.05, rng)
    rows = len(one.routes)
    first = one.routes.padded()[:, 0]
    few = np.isin(first, rng.permutation(np.unique(first))[: max(1, round(0.05 * len(np.unique(first))))])
    if event in ("upgrade", "drain"):
        hosts, tors, t1s, t2s = one.fabric.shape.counts
        tier, size = (hosts + tors, t1s) if event == "upgrade" else (hosts + tors + t1s, t2s)
        links = one.fabric.links_at([tier + int(rng.integers(0, size))])
        return _only(one, ~one.routes.crossing(links, len(one.fabric.links)))
    if event == "agent_crash":
        return _only(one, ~few)
    if event == "clock_step":
        again = send(one.routes, one.sent, healthy_loss(one.fabric, rng, NOISE), rng)
        lost = one.losses.lost + np.where(few, again.lost, 0)
        return replace(one, sent=one.sent * (1 + few), losses=replace(one.losses, lost=lost))
    if event == "stale_topology":
        like = np.arange(rows)
        wrong = np.flatnonzero(rng.random(rows) < 0.05)
        for row in wrong.tolist():
            like[row] = rng.choice(np.flatnonzero(first == first[row]))
        return replace(one, routes=one.routes.taken(like))
    raise ValueError(f"no benign event {event!r}; there are {', '.join(EVENTS)}")


def _only(one: Bounced, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Bounced:
    losses = replace(one.losses, lost=one.losses.lost[rows])
    return replace(one, routes=one.routes.taken(rows), losses=losses, sent=one.sent[rows])


def bounce(
    k: int,
    bad: int,
    rng: np.random.Generator,
    low: float = 0.02,
    high: float = 1.0,
    probes: int = PROBES,
    noise: float = NOISE,
    probers: int = 1,
) -> Bounced:
    """A k-ary fat tree with so many probers a ToR and `bad` links that lose U(low, high) of their packets, the others
    U(0, noise).
    """
    fabric = build(fat_tree(k, probers), directed=False)
    routes = fabric.bounces(np.arange(fabric.hosts))
    loss = healthy_loss(fabric, rng, noise)
    chosen = rng.choice(len(fabric.links), bad, replace=False)
    loss[chosen] = rng.uniform(low, high, bad)
    sent = np.full(len(routes), probes, dtype=np.int64)
    losses = send(routes, sent, loss, rng)
    return Bounced(fabric, routes, losses, sent, tuple(fabric.links[link] for link in chosen.tolist()), loss)


def again(one: Bounced, rng: np.random.Generator, share: float = 1.0) -> Bounced:
    """Another epoch of the same network, in which the bad links are bad for the last `share` of the probes."""
    bad = np.isin(np.array(one.fabric.links), one.bad)
    struck = rng.binomial(one.sent, share)
    before = send(one.routes, one.sent - struck, np.where(bad, 0.0, one.rates), rng)
    since = send(one.routes, struck, one.rates, rng)
    return replace(one, losses=replace(since, lost=before.lost + since.lost))


def sums_of(one: Bounced) -> Sums:
    """Sums of the reduction of `probe` rows."""
    paths, place = path_table(one.fabric.links, one.routes)
    lost, sent = (
        np.bincount(place, values, minlength=len(paths)).astype(np.int64)
        for values in (one.losses.lost, one.sent)
    )
    keys: dict[str, Any] = {"layer": ("underlay",) * len(paths), "hops": paths}
    assert isinstance(paths, Paths)
    return Sums(keys, {"sent": sent, "lost": lost}, len(paths))


def probe_rows(one: Bounced, minute: float) -> list[Row]:
    """A row a path; the prober sends to the switch at the top, which sends back."""
    links, rows = one.fabric.links, []
    for number in range(len(one.routes)):
        hops = [links[link] for link in one.routes[number]]
        host, top = hops[0].partition("/")[2].split("~")[0], hops[-1].split("~")[1]
        rows.append(
            {
                "time": stamp(EPOCH, minute),
                "src": f"host/{host}",
                "dst": f"switch/{top}",
                "sent": int(one.sent[number]),
                "lost": int(one.losses.lost[number]),
                "hops": hops,
            }
        )
    return rows


def bounce_scenario(
    name: str, seed: int, bad: int, event: str = ""
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """`probe` rows of one epoch over 288 links, and the truth."""
    rng = np.random.default_rng(seed)
    one = bounce(8, bad, rng)
    one = with_event(one, rng, event) if event else one
    faults = [
        {"component": link, "kind": "lossy_link", "start": stamp(EPOCH, 0), "end": stamp(EPOCH, 5)}
        for link in sorted(one.bad)
    ]
    truth = {
        "scenario": name,
        "seed": seed,
        "start": stamp(EPOCH, 0),
        "end": stamp(EPOCH, 5),
        "faults": faults,
        "benign": happened(event, stamp(EPOCH, 0), stamp(EPOCH, 5)),
    }
    return {"probe": probe_rows(one, 1.0)}, truth
