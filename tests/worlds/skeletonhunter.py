"""Probes between endpoints of containerised training jobs, five minutes a window, for `skeletonhunter`.

Topology. Hosts with two to four network cards in pods of unequal size; every rail of a pod has a switch of its own,
rails share a few spines, over which a pair keeps one path until its hash changes (5 % of the pairs in an hour).
An endpoint is a container and a card; agents probe endpoints of the same rail on other hosts every 30 s, through
the overlay (vswitch, card, underlay, card, vswitch) and from card to card below it. Hops are links and devices. Flow
tables are dumped every 5 min: `vswitch/A` forwards `vport/D` to `vswitch/B`, which hands it on; the card holds a copy
(Liu et al., "SkeletonHunter", SIGCOMM 2025; its 19 kinds of failures, of which those that probes can show are here).

Noise. Round trips are log-normal around 13 to 20 us by pair, 3 us more over a spine, with a tail (1 % threefold and
more), bursts of the job's own traffic every 25 to 70 s, and in some cases incast from many to many. One probe in 20,000
is lost. A report may be lost, an agent silent, clocks of hosts off by seconds; containers are ready minutes apart.

Truth: a fault loses at least 3 % of the probes that pass it or adds at least 4 us to four tenths of them, and is passed
by two pairs or more; what probes cannot tell apart is acceptable (a card, its link and its endpoint).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

START = datetime(2026, 7, 6, 13, tzinfo=UTC)
WINDOW, ROUND = 300, 30
EVERY = timedelta(seconds=WINDOW)
HISTORY, JUDGED = 4, 3
OVERLAY_PROBES, UNDERLAY_PROBES = 24, 12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """A case. `pods` are numbers of hosts; `loss` and `delay` (us) are ranges of a fault that loses or delays."""

    says: str
    pods: tuple[int, ...] = (4, 3, 3)
    rails: int = 2
    faults: tuple[str, ...] = ()
    loss: tuple[float, float] = (0.05, 0.3)
    delay: tuple[float, float] = (8.0, 60.0)
    begins: int | None = None
    lasts: int = 2
    history: int = 0
    benign: str = ""
    missing: float = 0.0
    silent: int = 0
    skew: float = 0.0
    tables: bool = True
    judged: int = JUDGED

    @property
    def length(self) -> int:
        """Seconds of a world."""
        return (HISTORY + self.judged) * WINDOW


PLANS = {
    "healthy": Plan("ten hosts of two rails in three pods"),
    "healthy_four_rails": Plan("eight hosts of four rails", (5, 3), 4),
    "healthy_pair": Plan("two hosts", (2,)),
    "healthy_tables": Plan("no flow table is dumped", tables=False),
    "healthy_missing": Plan("a fifth of the reports lost, an agent silent", missing=0.2, silent=1),
    "healthy_skew": Plan("clocks of hosts off by up to 5 s", skew=5.0),
    "healthy_after_faults": Plan("two faults in the history", history=2),
    "startup": Plan("containers become ready within ten minutes", benign="startup"),
    "checkpoints": Plan("writes to storage raise all times for 40 s", benign="checkpoints"),
    "evaluation": Plan("the job's bursts stop for minutes", benign="evaluation"),
    "elastic_resize": Plan("a quarter of the endpoints leaves and returns", benign="resize"),
    "time_shared": Plan("another job takes turns on the same network", benign="shared"),
    "storage_slow": Plan("reads from storage load all links for three minutes", benign="storage"),
    "moe_imbalance": Plan("all-to-all: incast raises the times of others every round", benign="incast"),
    "planned_reboot": Plan("endpoints of a host are taken out, it reboots, they return", benign="reboot"),
    "link_loss": Plan("a link to a spine corrupts packets", faults=("link_loss",)),
    "link_faint": Plan("a link to a spine loses 3 to 5 %", faults=("link_loss",), loss=(0.03, 0.05)),
    "port_flapping": Plan("a port of a spine is down every other minute", faults=("port_flapping",)),
    "spine_down": Plan("a spine is gone", faults=("spine_down",)),
    "tor_slow": Plan("queues of a rail switch without congestion control", faults=("tor_slow",)),
    "card_down": Plan("a card is unreachable", faults=("card_down",)),
    "card_flapping": Plan("the port of a card loses", faults=("card_loss",)),
    "card_slow": Plan("firmware of a card answers late", faults=("card_slow",)),
    "card_faint": Plan("a card adds 4 to 6 us", faults=("card_slow",), delay=(4.0, 6.0)),
    "host_slow": Plan("huge pages are misconfigured on a host", faults=("host_slow",)),
    "vswitch_slow": Plan("a virtual switch does not use RDMA: overlay only", faults=("vswitch_slow",)),
    "rule_missing": Plan("a flow table has no next hop for an endpoint", faults=("rule_missing",)),
    "rule_loop": Plan("two flow tables send an endpoint's packets in a circle", faults=("rule_loop",)),
    "offload_stale": Plan("rules are gone from a card: 120 us through software", faults=("offload_stale",)),
    "container_crash": Plan("a container is gone, its host answers", faults=("container_crash",)),
    "two_at_once": Plan("a lossy link and a slow virtual switch", faults=("link_loss", "vswitch_slow")),
    "three_at_once": Plan("three different faults", faults=("card_down", "tor_slow", "rule_missing")),
    "always": Plan("a slow card from the first row on", faults=("card_slow",), begins=0, lasts=7),
    "after_faults": Plan("a slow card after two other faults", faults=("card_slow",), history=2),
    "missing": Plan("a fifth of the reports lost", faults=("link_loss",), missing=0.2),
    "missing_overlay": Plan("a fifth of the reports lost", faults=("rule_missing",), missing=0.2, silent=1),
    "skewed": Plan("clocks of hosts off by up to 5 s", faults=("card_slow",), skew=5.0),
    "incast": Plan("a lossy card under all-to-all", faults=("card_loss",), benign="incast"),
    "four_rails": Plan("a slow host of four rails", (5, 3), 4, faults=("host_slow",)),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


def _kind(
    says: str, kind: str, loss: tuple[float, float] = (0.05, 0.3), delay: tuple[float, float] = (8.0, 60.0)
) -> Plan:
    return Plan(says, faults=(kind,), loss=loss, delay=delay, begins=HISTORY, lasts=1, judged=1)


_TYPES = {
    "crc_error": _kind("a link to a spine corrupts packets", "link_loss"),
    "switch_port_down": _kind("a port of a spine is down", "port_down"),
    "switch_port_flapping": _kind("a port of a spine is down every other minute", "port_flapping"),
    "switch_offline": _kind("a rail switch or a spine is gone", "switch_offline"),
    "rnic_hardware_failure": _kind("a card is broken", "card_down"),
    "rnic_firmware": _kind("firmware of a card answers late", "card_slow"),
    "rnic_port_down": _kind("the port of a card is down", "card_down"),
    "rnic_port_flapping": _kind("the port of a card is down every other minute", "card_flapping"),
    "offloading_failure": _kind("rules are gone from a card: 120 us through software", "offload_stale"),
    "bond_error": _kind("the bond of a card's ports is broken", "card_down"),
    "gid_change": _kind("the address of a card is another one", "card_down"),
    "pcie_nic_error": _kind("the PCIe switch before a host's cards is slow", "host_slow", delay=(5.0, 50.0)),
    "gpu_direct_error": _kind("a host copies through its memory", "host_slow"),
    "not_using_rdma": _kind("a virtual switch does not use RDMA", "vswitch_slow", delay=(20.0, 90.0)),
    "repetitive_offloading": _kind("a virtual switch offloads rules again and again", "vswitch_often"),
    "suboptimal_offloading": _kind("a virtual switch keeps half of its flows", "vswitch_half"),
    "container_crash": _kind("a container is gone, its host answers", "container_crash"),
    "hugepage_misconfiguration": _kind("huge pages are wrong on a host", "host_slow", delay=(4.0, 30.0)),
    "no_congestion_control": _kind("queues of a switch fill", "queue_slow", delay=(10.0, 60.0)),
}
TYPES = {f"type_{name}": plan for name, plan in _TYPES.items()}
"""The 19 published types, each in the first judged window, seen from both layers."""


@dataclass(frozen=True)
class End:
    """An endpoint: host, rail, pod; ready from a second on."""

    host: int
    rail: int
    pod: int
    ready: float

    @property
    def place(self) -> str:
        return f"h{self.host:02d}"

    @property
    def name(self) -> str:
        return f"endpoint/job7-{self.host}-r{self.rail}"

    @property
    def card(self) -> str:
        return f"nic/{self.place}-{self.rail}"

    @property
    def tor(self) -> str:
        return f"switch/tor-p{self.pod}-r{self.rail}"


@dataclass
class Planted:
    kind: str
    component: str
    acceptable: tuple[str, ...]
    begin: float
    end: float
    loss: float
    delay: float
    share: float
    overlay: bool = True
    underlay: bool = True
    endpoints: frozenset[str] = frozenset()
    """The overlay probes to these endpoints are struck; empty: all probes that pass the component."""
    elements: tuple[str, ...] = ()


@dataclass
class Fabric:
    plan: Plan
    rng: np.random.Generator
    ends: list[End]
    spines: int
    planted: list[Planted] = field(default_factory=list)

    def path(self, a: End, b: End, spine: int) -> list[str]:
        """Devices and links between two cards of a rail, both included."""
        links = [f"link/{a.card[4:]}~{a.tor[7:]}", f"link/{b.card[4:]}~{b.tor[7:]}"]
        if a.pod == b.pod:
            return [a.card, links[0], a.tor, links[1], b.card]
        across = f"switch/spine-{spine}"
        up, down = (f"link/{end.tor[7:]}~spine-{spine}" for end in (a, b))
        return [a.card, links[0], a.tor, up, across, down, b.tor, links[1], b.card]


def make(seed: int, case: str) -> World:
    """The world of a case or type. Raises KeyError for what is neither in `CASES` nor in `TYPES`."""
    plan = PLANS[case] if case in PLANS else TYPES[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    fabric = _fabric(plan, rng)
    fabric.planted = _planted(fabric)
    rows: dict[str, list[dict[str, Any]]] = {"endpoint": _endpoints(fabric), "probe": _probes(fabric)}
    rows["flow_rule"] = _rules(fabric) if plan.tables else []
    faults = tuple(
        Fault(one.component, one.kind, _when(one.begin), _when(one.end), one.acceptable)
        for one in fabric.planted
    )
    notes = tuple(f"{one.kind}: loses {one.loss:.2f}, adds {one.delay:.0f} us" for one in fabric.planted)
    given = {kind: told for kind, told in rows.items() if told}
    return World(case, seed, given, EVERY, START + HISTORY * EVERY, faults, notes)


def _fabric(plan: Plan, rng: np.random.Generator) -> Fabric:
    ends, host = [], 0
    for pod, hosts in enumerate(plan.pods):
        for _ in range(hosts):
            late = float(rng.uniform(0, 600)) if plan.benign == "startup" else float(rng.uniform(-900, -300))
            ends += [End(host, rail, pod, late + 3 * rail) for rail in range(plan.rails)]
            host += 1
    return Fabric(plan, rng, ends, 2 + int(rng.integers(2)))


def _planted(fabric: Fabric) -> list[Planted]:
    plan, rng = fabric.plan, fabric.rng
    kinds = [
        (str(rng.choice(("card_loss", "tor_slow", "container_crash"))), 2 * n, 1) for n in range(plan.history)
    ]
    for kind in plan.faults:
        first = (
            plan.begins
            if plan.begins is not None
            else HISTORY + int(rng.integers(0, plan.judged - plan.lasts + 1))
        )
        kinds.append((kind, first, plan.lasts))
    order = [int(one) for one in rng.permutation(sum(plan.pods))]
    planted = []
    for kind, first, lasts in kinds:
        begin = 0.0 if plan.begins == 0 else first * WINDOW + float(rng.uniform(10, 60))
        end = (first + lasts) * WINDOW - float(rng.uniform(10, 40))
        if first + lasts == HISTORY + plan.judged:
            end = float(plan.length)
        host = order.pop()
        mine = [one for one in fabric.ends if one.host == host]
        planted.append(_one(fabric, kind, mine, begin, end))
    return planted


def _one(fabric: Fabric, kind: str, mine: list[End], begin: float, end: float) -> Planted:
    """A fault of a kind at a host, at what the host is connected to, or at one of the spines."""
    plan, rng = fabric.plan, fabric.rng
    loss, delay = float(rng.uniform(*plan.loss)), float(rng.uniform(*plan.delay))
    chosen = mine[int(rng.integers(len(mine)))]
    host, vswitch = f"host/{chosen.place}", f"vswitch/{chosen.place}"
    link = f"link/{chosen.card[4:]}~{chosen.tor[7:]}"
    spine = int(rng.integers(fabric.spines))
    uplink = f"link/{chosen.tor[7:]}~spine-{spine}"
    containers = (*(one.name for one in mine), host, vswitch, f"container/job7-{chosen.host}")
    own = (link, chosen.name)

    def planted(
        component: str, acceptable: tuple[str, ...], lost: float, late: float, share: float = 1.0
    ) -> Planted:
        return Planted(kind, component, acceptable, begin, end, lost, late, share)

    if kind == "link_loss":
        return planted(uplink, (), loss, 0.0)
    if kind == "port_flapping":
        return planted(uplink, (), 0.95, 0.0)
    if kind == "port_down":
        return planted(uplink, (), 1.0, 0.0)
    if kind == "spine_down":
        return planted(f"switch/spine-{spine}", (), 1.0, 0.0)
    if kind in ("switch_offline", "queue_slow"):
        switch = f"switch/spine-{spine}" if rng.random() < 0.5 else chosen.tor
        return planted(switch, (), float(kind == "switch_offline"), delay * (kind == "queue_slow"), 0.5)
    if kind == "tor_slow":
        return planted(chosen.tor, (), 0.0, delay, 0.4)
    if kind == "card_down":
        return planted(chosen.card, own, 1.0, 0.0)
    if kind == "card_flapping":
        return planted(chosen.card, own, 0.95, 0.0)
    if kind == "card_loss":
        return planted(chosen.card, own, max(loss, 0.08), 0.0)
    if kind == "card_slow":
        return planted(chosen.card, own, 0.0, delay, 0.8)
    if kind == "host_slow":
        one = planted(host, (vswitch, *(f"nic/{end.place}-{end.rail}" for end in mine)), 0.0, delay, 0.8)
        one.endpoints = frozenset(end.name for end in mine) | frozenset(end.card for end in mine)
        return one
    one = planted(vswitch, (host,), 0.0, delay + 10.0, 0.9)
    one.underlay = False
    if kind in ("vswitch_often", "vswitch_half"):
        # Half of the packets go through software: any half, or those of half of the endpoints.
        one.share = 0.5 if kind == "vswitch_often" else 0.9
        others = [end.name for end in fabric.ends if end.host != chosen.host]
        half = rng.choice(others, len(others) // 2, replace=False).tolist()
        one.elements = tuple(half) if kind == "vswitch_half" else ()
    elif kind == "container_crash":
        one.component, one.acceptable, one.loss, one.delay = containers[-1], containers[:-1], 1.0, 0.0
        one.endpoints = frozenset(end.name for end in mine)
    elif kind in ("rule_missing", "rule_loop"):
        # Packets of this host for endpoints of another one have nowhere to go, or come back.
        other = [end for end in fabric.ends if end.host != chosen.host]
        far = other[int(rng.integers(len(other)))]
        there = [end for end in fabric.ends if end.host == far.host]
        one.loss, one.delay = 1.0, 0.0
        one.endpoints = frozenset(end.name for end in there)
        one.elements = (vswitch, *(f"vport/{end.name.partition('/')[2]}" for end in there))
        if kind == "rule_loop":
            third = next(end for end in other if end.host != far.host)
            one.acceptable = (host, f"vswitch/{third.place}", f"host/{third.place}")
            one.elements = (*one.elements, f"vswitch/{third.place}")
    elif kind == "offload_stale":
        one.component, one.acceptable = chosen.card, (chosen.name, vswitch, link, host)
        one.delay, one.share = 105.0, 1.0
        one.endpoints = frozenset([chosen.name])
    return one


def _endpoints(fabric: Fabric) -> list[dict[str, Any]]:
    rows = []
    for end in fabric.ends:
        row = {
            "endpoint": end.name,
            "job": "job7",
            "host": f"host/{end.place}",
            "nic": end.card,
            "rail": end.rail,
        }
        row |= {"container": f"job7-{end.host}", "tenant": "vni-1041"}
        rows.append({"time": _when(end.ready).isoformat(), **row})
        for begin, back in _absences(fabric, end):
            rows.append({"time": _when(begin).isoformat(), **row, "active": False})
            rows.append({"time": _when(back).isoformat(), **row})
    rows.sort(key=lambda row: (row["time"], row["endpoint"]))
    return rows


def _absences(fabric: Fabric, end: End) -> list[tuple[float, float]]:
    """Times at which an endpoint was taken out and came back."""
    benign, hosts = fabric.plan.benign, sum(fabric.plan.pods)
    if benign == "resize" and end.host >= hosts - max(1, hosts // 4):
        return [((HISTORY + 1) * WINDOW + 40.0, (HISTORY + 2) * WINDOW + 70.0)]
    if benign == "reboot" and end.host == 1:
        return [(HISTORY * WINDOW + 100.0, HISTORY * WINDOW + 520.0)]
    return []


def _there(fabric: Fabric, end: End, second: float) -> bool:
    return end.ready <= second and not any(begin <= second < back for begin, back in _absences(fabric, end))


def _probes(fabric: Fabric) -> list[dict[str, Any]]:
    plan, rng = fabric.plan, fabric.rng
    pairs = [(a, b) for a in fabric.ends for b in fabric.ends if a.rail == b.rail and a.host != b.host]
    usual = {
        pair: float(np.exp(rng.normal(np.log(15.0), 0.06))) + 3.0 * (pair[0].pod != pair[1].pod)
        for pair in pairs
    }
    spine = {pair: int(rng.integers(fabric.spines)) for pair in pairs}
    offset = rng.uniform(-plan.skew, plan.skew, sum(plan.pods)) if plan.skew else np.zeros(sum(plan.pods))
    quiet = set(range(plan.silent))
    period = float(rng.uniform(25, 70))
    rows: list[dict[str, Any]] = []
    for begin in range(0, plan.length, ROUND):
        load = _load(fabric, begin, period)
        crowd = (
            set(rng.choice(sum(plan.pods), 2, replace=False).tolist()) if plan.benign == "incast" else set()
        )
        for pair in pairs:
            a, b = pair
            if rng.random() < 0.0004:
                spine[pair] = int(rng.integers(fabric.spines))
            second = begin + float(rng.uniform(0, ROUND))
            if a.host in quiet or not (_there(fabric, a, second) and _there(fabric, b, second)):
                continue
            if plan.missing and (
                rng.random() < plan.missing / 2 or (begin // 60 + 7 * a.host) % 10 < 5 * plan.missing
            ):
                continue
            path = fabric.path(a, b, spine[pair])
            busy = load + 0.6 * (b.host in crowd)
            when = _when(second + float(offset[a.host])).isoformat()
            whole = [f"vswitch/{a.place}", *path, f"vswitch/{b.place}"]
            sent = OVERLAY_PROBES
            rows.append(
                {"time": when, "src": a.name, "dst": b.name, "layer": "overlay", "hops": whole, "sent": sent}
                | _answers(
                    fabric, (a.name, b.name, whole), second, usual[pair] + 2.0, busy, sent, overlay=True
                )
            )
            rows.append(
                {"time": when, "src": a.card, "dst": b.card, "layer": "underlay", "hops": path}
                | {"sent": UNDERLAY_PROBES}
                | _answers(
                    fabric, (a.card, b.card, path), second, usual[pair], busy, UNDERLAY_PROBES, overlay=False
                )
            )
    rows.sort(key=lambda row: (row["time"], row["src"], row["dst"]))
    return rows


def _load(fabric: Fabric, begin: int, period: float) -> float:
    """The share of probes that meet a burst in this round."""
    benign = fabric.plan.benign
    burst = 0.12 + 0.1 * np.sin(2 * np.pi * begin / period)
    if benign == "checkpoints" and begin % 420 < 40:
        return 0.7
    if benign == "evaluation" and begin % 700 < 260:
        return 0.02
    if benign == "shared":
        return float(burst + 0.35 * (begin % 90 < 45))
    if benign == "storage" and HISTORY * WINDOW + 120 <= begin < HISTORY * WINDOW + 300:
        return 0.6
    return float(burst)


def _answers(
    fabric: Fabric,
    way: tuple[str, str, list[str]],
    second: float,
    usual: float,
    busy: float,
    sent: int,
    *,
    overlay: bool,
) -> dict[str, Any]:
    """`lost` and `rtt_us` of some probes."""
    rng = fabric.rng
    times = usual * np.exp(0.12 * rng.standard_normal(sent))
    times += np.where(rng.random(sent) < busy, rng.gamma(2.0, 1.6, sent), 0.0)
    times *= np.where(rng.random(sent) < 0.01, 1.5 + rng.pareto(2.0, sent), 1.0)
    gone = rng.random(sent) < 5e-5
    for one in fabric.planted:
        if not (one.begin <= second < one.end) or not _struck(one, way, overlay=overlay):
            continue
        if one.kind.endswith("flapping") and int(second) % 120 >= 60:
            continue
        gone |= rng.random(sent) < one.loss
        late = rng.random(sent) < one.share
        times += np.where(late, one.delay * np.exp(0.25 * rng.standard_normal(sent)), 0.0)
    return {"lost": int(gone.sum()), "rtt_us": np.round(times[~gone], 3).tolist()}


def _struck(one: Planted, way: tuple[str, str, list[str]], *, overlay: bool) -> bool:
    if not (one.overlay if overlay else one.underlay):
        return False
    source, target, hops = way
    if one.kind in ("rule_missing", "rule_loop"):
        # An answer has to find its way back, and takes the tables of the other host.
        return target in one.endpoints and hops[0] == one.elements[0]
    if one.endpoints:
        return source in one.endpoints or target in one.endpoints
    if one.kind == "vswitch_half" and not {source, target} & set(one.elements):
        return False
    return one.component in hops


def _rules(fabric: Fabric) -> list[dict[str, Any]]:
    """Tables of all hosts, dumped every five minutes, and what the cards hold of them."""
    rng = fabric.rng
    rows: list[dict[str, Any]] = []
    hosts = sorted({end.place: end for end in fabric.ends}.values(), key=lambda end: end.host)
    for begin in range(0, fabric.plan.length, WINDOW):
        for here in hosts:
            second = begin + WINDOW * 0.8 + float(rng.uniform(0, 20))
            if fabric.plan.missing and rng.random() < fabric.plan.missing / 2:
                continue
            live = [one for one in fabric.planted if one.begin <= second < one.end]
            for end in fabric.ends:
                if _there(fabric, end, second):
                    rows += _rule(live, here, end, _when(second).isoformat())
    return rows


def _rule(live: list[Planted], here: End, end: End, when: str) -> list[dict[str, Any]]:
    """The rule of a host for an endpoint, in its virtual switch and in its card."""
    element, match = f"vswitch/{here.place}", f"vport/{end.name.partition('/')[2]}"
    onward = match if here.host == end.host else f"vswitch/{end.place}"
    offloaded = True
    for one in live:
        if one.kind == "rule_missing" and element == one.elements[0] and match in one.elements:
            onward = ""
        elif one.kind == "rule_loop" and match in one.elements and element in one.elements:
            onward = one.elements[-1] if element == one.elements[0] else one.elements[0]
        elif (
            one.kind == "offload_stale"
            and end.name not in one.endpoints
            and here.card.rpartition("-")[0] in one.component
        ):
            # The copy is gone for what leaves by this card.
            offloaded = not one.component.endswith(f"-{end.rail}") or here.host == end.host
        elif one.kind == "vswitch_half" and element == one.component:
            offloaded = offloaded and end.name not in one.elements
        elif one.kind == "vswitch_often" and element == one.component:
            offloaded = offloaded and crc32(f"{match} {when}".encode()) % 2 > 0
    rule: dict[str, Any] = {"time": when, "element": element, "match": match, "layer": "vswitch"}
    copy = rule | {"layer": "nic", "next": onward}
    if onward:
        rule["next"] = onward
    return [rule, copy] if offloaded and onward else [rule]


def _when(second: float) -> datetime:
    return START + timedelta(seconds=round(second, 3))
