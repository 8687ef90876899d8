"""The network of training jobs: endpoints that probe each other over two layers, flow tables, faults and benign events.

Hosts stand in segments; each rail of a segment has a ToR and each rail a plane of spines (rail-optimised). A path is
drawn per row of ten probes, as source ports are. Overlay probes pass the virtual switches of both hosts, underlay
probes do not. Round-trip times are lognormal about 12 to 18 us a pair (sigma .05 to .1), with queueing by the job's own
bursts. The 19 types of faults and their symptoms are those of SkeletonHunter (Liu et al., SIGCOMM 2025); what they add
to a time or how much they lose is drawn from ranges of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.region import Row, stamp
from analyzers.simulators.truth import happened

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WINDOW = 300.0
"""Seconds of a window."""
ROW, PROBES = 10.0, 10
"""Seconds between rows of a pair, and probes in each."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Hosts of `rails` network cards; the cards of a host are shared out among `containers`. `peers` on either side of
    its rail's ring are probed by each endpoint. `underlay`: whether there are underlay probes, too.
    """

    segments: int = 4
    hosts: int = 4
    rails: int = 4
    spines: int = 4
    containers: int = 2
    peers: int = 2
    windows: int = 3
    underlay: bool = True


@dataclass(frozen=True, slots=True)
class Symptom:
    """Place of a type of fault, its losses and the microseconds by which it delays a share of what passes; `off` is
    the share of time in which it pauses, in spells. `overlay`: only overlay probes are touched. `table`: what
    happens to flow tables; of copies on cards, those of one card are gone (`stale`), half of those of a virtual switch
    (`part`), or another half in each dump (`often`).
    """

    place: str
    loss: tuple[float, float] = (0.0, 0.0)
    delay: tuple[float, float] = (0.0, 0.0)
    share: float = 1.0
    off: float = 0.0
    overlay: bool = False
    table: str = ""


ALL = (1.0, 1.0)
TYPES: Mapping[str, Symptom] = MappingProxyType(
    {
        "crc_error": Symptom("link", loss=(0.02, 0.3)),
        "switch_port_down": Symptom("link", loss=ALL),
        "switch_port_flapping": Symptom("link", loss=ALL, off=0.6),
        "switch_offline": Symptom("switch", loss=ALL),
        "rnic_hardware_failure": Symptom("nic", loss=ALL),
        "rnic_firmware": Symptom("nic", delay=(10.0, 100.0)),
        "rnic_port_down": Symptom("nic", loss=ALL),
        "rnic_port_flapping": Symptom("nic", loss=ALL, off=0.6),
        "offloading_failure": Symptom("nic", delay=(20.0, 110.0), overlay=True, table="stale"),
        "bond_error": Symptom("nic", loss=ALL),
        "gid_change": Symptom("nic", loss=ALL),
        "pcie_nic_error": Symptom("host", delay=(5.0, 50.0)),
        "gpu_direct_error": Symptom("host", delay=(8.0, 60.0)),
        "not_using_rdma": Symptom("vswitch", delay=(30.0, 100.0), overlay=True),
        "repetitive_offloading": Symptom(
            "vswitch", delay=(15.0, 80.0), share=0.5, overlay=True, table="often"
        ),
        "suboptimal_offloading": Symptom("vswitch", delay=(5.0, 20.0), overlay=True, table="part"),
        "container_crash": Symptom("container", loss=ALL, overlay=True),
        "hugepage_misconfiguration": Symptom("host", delay=(4.0, 30.0), share=0.7),
        "no_congestion_control": Symptom("switch", delay=(10.0, 60.0), share=0.6),
    }
)
"""The 19 types."""
TABLES: Mapping[str, Symptom] = MappingProxyType(
    {
        "rule_missing": Symptom("vswitch", overlay=True, table="missing"),
        "rule_loop": Symptom("vswitch", overlay=True, table="loop"),
    }
)
"""Wrong overlay rules, for the replay."""
EVENTS = (
    "checkpoint_stall",
    "evaluation",
    "elastic_resize",
    "congestion",
    "reboot",
    "agent_crash",
    "missing_rows",
    "clock_step",
    "start_up",
)
"""Nobody's fault: training stops and starts again; probes of an idle network; endpoints leave and others join; all
pairs are late; a host is rebooted after its endpoints were deregistered; agents of a host are silent; a fifth of all
rows is missing; a host's clock is 20 s off; endpoints that are not registered yet do not answer.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """`hurts` are the components whose passing hurts; `alike` others that the rows cannot tell from `component`."""

    component: str
    kind: str
    start: float
    end: float
    symptom: Symptom
    loss: float
    delay: float
    alike: tuple[str, ...] = ()
    hurts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Network:
    """Endpoints as (host, rail) with what they pass, and the pairs that probe."""

    shape: Shape
    ends: tuple[tuple[int, int], ...]
    pairs: tuple[tuple[int, int], ...]
    base: Floats
    sigma: Floats

    def name(self, end: int) -> str:
        host, rail = self.ends[end]
        return f"endpoint/j0-{host}-r{rail}"

    def nic(self, end: int) -> str:
        host, rail = self.ends[end]
        return f"nic/h{host}-{rail}"

    def container(self, end: int) -> str:
        host, rail = self.ends[end]
        return f"container/h{host}-c{rail * self.shape.containers // self.shape.rails}"

    def route(self, src: int, dst: int, spine: int) -> list[str]:
        """Route of a probe in the network, one name for both directions of a link."""
        (a, rail), (b, _) = self.ends[src], self.ends[dst]
        near, far = (f"s{host // self.shape.hosts}-r{rail}" for host in (a, b))
        hops = [f"link/h{a}-{rail}~{near}", f"tor/{near}", f"tor/{far}", f"link/h{b}-{rail}~{far}"]
        if near == far:
            return hops
        up = f"r{rail}-{spine}"
        return [*hops, f"link/{near}~{up}", f"spine/{up}", f"link/{far}~{up}"]

    def own(self, end: int, overlay: bool) -> list[str]:
        """Components of its own host that an endpoint needs."""
        host = self.ends[end][0]
        software = [f"vswitch/h{host}", self.container(end)] if overlay else []
        return [self.nic(end), f"host/h{host}", *software]


def build(rng: np.random.Generator, shape: Shape) -> Network:
    count = shape.segments * shape.hosts
    ends = tuple((host, rail) for host in range(count) for rail in range(shape.rails))
    pairs = []
    for at, (host, rail) in enumerate(ends):
        for step in (*range(-shape.peers, 0), *range(1, shape.peers + 1)):
            # Far enough apart to leave the segment half of the time.
            peer = (host + step * (shape.hosts // 2 + 1)) % count
            if peer != host:
                pairs.append((at, peer * shape.rails + rail))
    pairs = sorted(set(pairs))
    return Network(
        shape, ends, tuple(pairs), rng.uniform(12, 18, len(pairs)), rng.uniform(0.05, 0.1, len(pairs))
    )


def draw_fault(net: Network, rng: np.random.Generator, kind: str, start: float, end: float) -> Fault:
    """A fault of one of `TYPES` or `TABLES` somewhere; times in seconds from the start."""
    symptom = {**TYPES, **TABLES}[kind]
    host, rail = net.ends[int(rng.integers(len(net.ends)))]
    shape, segment = net.shape, host // net.shape.hosts
    spine, at = int(rng.integers(shape.spines)), host * shape.rails + rail
    alike: tuple[str, ...] = ()
    if symptom.place == "link":
        component = f"link/s{segment}-r{rail}~r{rail}-{spine}"
    elif symptom.place == "switch":
        component = f"spine/r{rail}-{spine}" if rng.random() < 0.5 else f"tor/s{segment}-r{rail}"
    elif symptom.place == "nic":
        component, alike = net.nic(at), (f"link/h{host}-{rail}~s{segment}-r{rail}",)
    elif symptom.place == "container":
        component, alike = net.container(at), (f"vswitch/h{host}",) if shape.containers == 1 else ()
    else:
        component = f"{symptom.place}/h{host}"
    hurts = frozenset({component})
    if symptom.place == "host" and not shape.underlay:
        alike = (f"vswitch/h{host}",)
    if symptom.place == "vswitch" and not shape.underlay:
        alike = (f"host/h{host}",)
    loss, delay = float(rng.uniform(*symptom.loss)), float(rng.uniform(*symptom.delay))
    return Fault(component, kind, start, end, symptom, loss, delay, alike, hurts)


SMALL = Shape(segments=3, hosts=2, spines=2)
"""24 endpoints: files that open in an editor."""


def scenario(
    name: str, seed: int, kinds: tuple[str, ...] | None, event: str = "", shape: Shape = SMALL
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """Rows by kind and the truth: the faults in the last window, each from its first minute on, and so an event.
    Without `kinds` the fault is one of `TYPES` by the seed.
    """
    rng = np.random.default_rng([seed, 19])
    kinds = (list(TYPES)[seed % len(TYPES)],) if kinds is None else kinds
    net = build(rng, shape)
    last, end = (shape.windows - 1) * WINDOW, shape.windows * WINDOW
    faults = [draw_fault(net, rng, kind, last + float(rng.uniform(0, 60)), end) for kind in kinds]
    world = _World(net, rng, faults, event, last, end)
    rows = {"probe": world.probes(), "endpoint": world.endpoints(), "flow_rule": world.rules()}
    truth = {
        "scenario": name,
        "seed": seed,
        "start": stamp(EPOCH, 0),
        "end": stamp(EPOCH, end / 60),
        "faults": [
            {
                "component": one.component,
                "kind": one.kind,
                "alike": list(one.alike),
                "start": stamp(EPOCH, one.start / 60),
                "end": stamp(EPOCH, one.end / 60),
            }
            for one in faults
        ],
        "benign": happened(event, stamp(EPOCH, last / 60), stamp(EPOCH, end / 60)),
    }
    return rows, truth


class _World:
    def __init__(
        self, net: Network, rng: np.random.Generator, faults: list[Fault], event: str, last: float, end: float
    ) -> None:
        self.net, self.rng, self.faults, self.event, self.last, self.end = net, rng, faults, event, last, end
        hosts = net.shape.segments * net.shape.hosts
        self.host = int(rng.integers(hosts))
        """The host that the event happens to."""
        self.broken = {at: self._broken(one) for at, one in enumerate(faults) if one.symptom.table}

    def _broken(self, fault: Fault) -> set[tuple[str, int]]:
        """(virtual switch, destination) of the rules that a fault spoils."""
        host = int(fault.component.partition("/h")[2].partition("-")[0])
        mine = [pair for pair in self.net.pairs if self.net.ends[pair[0]][0] == host]
        if fault.symptom.place == "nic":
            mine = [pair for pair in mine if self.net.nic(pair[0]) == fault.component]
            return {(f"vswitch/h{host}", dst) for _, dst in mine}
        if fault.symptom.table == "often":
            return {(f"vswitch/h{host}", dst) for _, dst in mine}
        of = 2 if fault.symptom.table == "part" else 3
        chosen = self.rng.permutation(len(mine))[: max(1, len(mine) // of)]
        return {(f"vswitch/h{host}", mine[at][1]) for at in chosen.tolist()}

    def probes(self) -> list[Row]:
        rows: list[Row] = []
        for at in range(len(self.net.pairs)):
            for overlay in (True, False) if self.net.shape.underlay else (True,):
                rows += self._rows(at, overlay)
        rows.sort(key=lambda row: str(row["time"]))
        return rows

    def _rows(self, at: int, overlay: bool) -> list[Row]:
        """The rows of a pair in one layer; of what it passes only the spine changes."""
        net, rng, (src, dst) = self.net, self.rng, self.net.pairs[at]
        hosts, every = (net.ends[src][0], net.ends[dst][0]), ROW if overlay else 2 * ROW
        time = np.arange(rng.uniform(0, every), self.end, every)
        spine = rng.integers(net.shape.spines, size=len(time))
        routes = [net.route(src, dst, one) for one in range(net.shape.spines)]
        shape = len(time), PROBES
        rtt = net.base[at] * np.exp(net.sigma[at] * rng.standard_normal(shape))
        rtt += np.where(rng.random(shape) < 0.15, rng.exponential(0.8, shape), 0.0)
        alive = np.ones(shape, dtype=bool)
        own = {*net.own(src, overlay), *net.own(dst, overlay)}
        for number, fault in enumerate(self.faults):
            if fault.symptom.overlay and not overlay:
                continue
            on = (time >= fault.start) & (time < fault.end)
            if fault.symptom.table in ("missing", "loop"):
                alive[on] &= (f"vswitch/h{hosts[0]}", dst) not in self.broken[number]
                continue
            on &= np.array([bool(fault.hurts & {*route, *own}) for route in routes])[spine]
            on &= np.floor(time / 20.0) * 0.618 % 1 >= fault.symptom.off
            alive &= ~on[:, None] | (rng.random(shape) >= fault.loss)
            struck = on[:, None] & (rng.random(shape) < fault.symptom.share)
            rtt += np.where(struck, fault.delay * rng.uniform(0.7, 1.3, shape), 0.0)
        rtt, alive, reported = self._event(rtt, alive, hosts, time)
        shown = time + (20.0 if self.event == "clock_step" and hosts[0] == self.host else 0.0)
        ends = (net.name(src), net.name(dst)) if overlay else (net.nic(src), net.nic(dst))
        return [
            {
                "time": stamp(EPOCH, float(shown[one]) / 60),
                "src": ends[0],
                "dst": ends[1],
                "sent": PROBES,
                "lost": int((~alive[one]).sum()),
                "rtt_us": [round(value, 3) for value in rtt[one][alive[one]].tolist()],
                "hops": routes[spine[one]],
                "layer": "overlay" if overlay else "underlay",
            }
            for one in np.flatnonzero(reported).tolist()
        ]

    def _event(
        self, rtt: Floats, alive: Mask, hosts: tuple[int, int], time: Floats
    ) -> tuple[Floats, Mask, Mask]:
        """Times and answers as the event leaves them, and which rows there are."""
        since, rng, reported = time - self.last, self.rng, np.ones(len(time), dtype=bool)
        on = since >= 0
        if self.event in ("checkpoint_stall", "evaluation"):
            idle = on & (since < (120 if self.event == "checkpoint_stall" else np.inf))
            rtt = rtt * np.where(idle, 0.93, 1.0)[:, None]
        if self.event == "checkpoint_stall":
            again = (since >= 120) & (since < 150)
            rtt = rtt * np.where(again[:, None], 1 + 0.4 * rng.random(rtt.shape), 1.0)
        if self.event == "congestion":
            rtt = rtt + np.where(
                ((since >= 60) & (since < 240))[:, None], rng.exponential(12.0, rtt.shape), 0.0
            )
        gone = {"reboot": since >= 90, "elastic_resize": since >= 120, "start_up": since < 150}.get(
            self.event
        )
        if gone is not None and self.host in hosts:
            alive = alive & ~gone[:, None]
        if self.event == "reboot" and hosts[0] == self.host:
            reported = ~gone if gone is not None else reported
        if self.event == "missing_rows":
            reported = rng.random(len(time)) >= 0.2
        if self.event == "agent_crash" and hosts[0] == self.host:
            reported = ~on
        return rtt, alive, reported

    def endpoints(self) -> list[Row]:
        """Registrations, and what a reboot, a resize or a late start changes."""
        rows = []
        for end, (host, rail) in enumerate(self.net.ends):
            late = self.event == "start_up" and host == self.host
            since = self.last + 150 if late else -float(self.rng.uniform(1, 600))
            row = {
                "time": stamp(EPOCH, since / 60),
                "endpoint": self.net.name(end),
                "job": "j0",
                "host": f"host/h{host}",
                "nic": self.net.nic(end),
                "rail": rail,
                "container": self.net.container(end),
            }
            rows.append(row)
            if self.event in ("reboot", "elastic_resize") and host == self.host:
                gone = self.last + (90.0 if self.event == "reboot" else 120.0)
                rows.append({**row, "time": stamp(EPOCH, gone / 60), "active": False})
        return rows

    def rules(self) -> list[Row]:
        """A dump of all tables a window, ten seconds after the fault began; the offloaded copies after those of the
        virtual switches.
        """
        rows: list[Row] = []
        for window in range(self.net.shape.windows):
            time = window * WINDOW + 75.0
            for element, dst, on in self._needed():
                peer = f"vswitch/h{self.net.ends[dst][0]}"
                match = f"vport/{self.net.name(dst).partition('/')[2]}"
                rule = {"time": stamp(EPOCH, time / 60), "element": element, "match": match}
                following = self._next(element, dst, match if element == peer else peer, time)
                rows.append({**rule, **({"next": following} if following else {}), "layer": "vswitch"})
                if on and not self._stale(element, dst, time):
                    rows.append({**rule, "next": following or peer, "layer": "nic"})
        return rows

    def _needed(self) -> list[tuple[str, int, bool]]:
        """Rules as (element, destination, offloaded)."""
        sending = {(f"vswitch/h{self.net.ends[src][0]}", dst) for src, dst in self.net.pairs}
        local = {(f"vswitch/h{self.net.ends[dst][0]}", dst) for _, dst in self.net.pairs}
        return sorted((element, dst, (element, dst) in sending) for element, dst in sending | local)

    def _next(self, element: str, dst: int, usual: str, time: float) -> str:
        for at, fault in enumerate(self.faults):
            if fault.start <= time < fault.end and (element, dst) in self.broken.get(at, ()):
                if fault.symptom.table == "missing":
                    return ""
                if fault.symptom.table == "loop":
                    return element
        return usual

    def _stale(self, element: str, dst: int, time: float) -> bool:
        """Whether a rule is not on the card: `often`, each dump finds another half of them gone."""
        return any(
            fault.start <= time < fault.end
            and (element, dst) in self.broken.get(at, ())
            and (
                fault.symptom.table in ("stale", "part")
                or (fault.symptom.table == "often" and self.rng.random() < 0.5)
            )
            for at, fault in enumerate(self.faults)
        )


def start_of(window: int) -> datetime:
    """The start of a window of a scenario."""
    return EPOCH + timedelta(seconds=window * WINDOW)
