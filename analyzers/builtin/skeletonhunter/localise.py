"""Localisation: overlay rules first, then votes of the paths, then offloaded rules.

Overlay and underlay faults do not reach the other layer (the paper's assumption), so each is looked for by itself. A
finding needs anomalies in two slices, and of two pairs unless a flow table shows the fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.skeletonhunter import tables as flow
from analyzers.builtin.skeletonhunter.analyzer import SLICE
from analyzers.builtin.skeletonhunter.detect import Anomalies
from analyzers.builtin.skeletonhunter.observed import Observed
from analyzers.builtin.skeletonhunter.tables import FlowTables
from analyzers.builtin.skeletonhunter.votes import Charge, Voted, container_of, vote
from analyzers.contract import Params, Window

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SLICES = 2
"""Slices in which a suspect must be anomalous."""
DEAD = 0.9
"""Share of lost probes from which a pair, or a component, does not answer."""
MISMATCHED = 0.5
"""Share of the pairs of a suspect whose offloaded rules differ, from which the card is at fault."""
TOUCHED = 0.2
"""Share of the pairs of a card whose offloaded rules differ, from which its virtual switch may be at fault; and of all
other pairs, from which dumps say nothing."""

FIRST = {
    "latency": ("nic", "vswitch", "host", "tor", "spine", "switch", "link", "container", "endpoint"),
    "loss": ("nic", "container", "tor", "spine", "switch", "host", "vswitch", "link", "endpoint"),
}
"""Ranks of components that cannot be told apart: the kind with most of the published types of faults leads."""


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A component at fault. `others` cannot be told from it, `indicator` is the signal that shows it, `path` leads from
    it to an anomalous pair. `slices` are those of the window in which its pairs are anomalous.
    """

    component: str
    others: tuple[str, ...]
    indicator: str
    pairs: tuple[int, ...]
    slices: Ints
    path: tuple[str, ...]
    charge: Charge | None = None
    delay: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """Suspects, the votes behind them by symptom, and anomalous pairs that nobody explains."""

    named: tuple[Named, ...]
    votes: dict[str, Voted] = field(default_factory=dict)
    unexplained: tuple[int, ...] = ()
    tables: FlowTables = field(default_factory=lambda: FlowTables({}, {}, {}))


def localise(window: Window, seen: Observed, found: Anomalies, params: Params) -> Located:
    """Name what explains the anomalies of a window."""
    tables = flow.read(window)
    lossy = (seen.lost * seen.judged)[:, seen.now]
    sent = (seen.sent * seen.judged)[:, seen.now]
    retained = ~((seen.sent > 0) & ~seen.judged)[:, seen.now].any(axis=1) & (sent.sum(axis=1) > 0)
    dead = (lossy >= DEAD * np.maximum(sent, 1)) & (sent > 0)
    judge = _Judge(window, seen, found, params, tables, lossy > 0)
    silent = np.flatnonzero(retained & (dead.sum(axis=1) >= SLICES) & _overlay(seen))
    named = judge.overlay(silent) if tables else []
    explained = {pair for one in named for pair in one.pairs}
    retained[list(explained)] = False
    votes: dict[str, Voted] = {}
    if lossy[retained].any():
        votes["loss"] = judge.vote("loss", retained)
        named += judge.suspects("loss", votes["loss"])
    late = retained & found.pairs
    if late.any():
        votes["latency"] = judge.vote("latency", retained)
        named += judge.suspects("latency", votes["latency"])
    explained = {pair for one in named for pair in one.pairs}
    left = [at for at in np.flatnonzero(late).tolist() if at not in explained]
    cards = judge.cards(left)
    named += cards
    explained |= {pair for one in cards for pair in one.pairs}
    unexplained = tuple(
        at for at in left if at not in explained and judge.slices([at], "latency").size >= SLICES
    )
    return Located(tuple(judge.once(named)), votes, unexplained, tables)


def _overlay(seen: Observed) -> Mask:
    return np.array([pair[2] == "overlay" for pair in seen.pairs], dtype=bool)


class _Judge:
    def __init__(
        self,
        window: Window,
        seen: Observed,
        found: Anomalies,
        params: Params,
        tables: FlowTables,
        lossy: Mask,
    ) -> None:
        self.window, self.seen, self.found, self.params, self.tables = window, seen, found, params, tables
        self.anomalous = {"loss": lossy, "latency": found.late}

    def vote(self, symptom: str, retained: Mask) -> Voted:
        limit = self.found.limit
        return vote(self.window, self.seen, symptom, limit, retained, self.tables.switch_of, self.params)

    def slices(self, pairs: list[int], symptom: str) -> Ints:
        """The slices of the window in which any of the pairs is anomalous; of pairs late all along, all of them."""
        long = self.found.drifted | self.found.level
        marks = self.anomalous[symptom][pairs]
        if symptom == "latency" and long[pairs].any():
            marks = marks | (self.seen.answers[pairs][:, self.seen.now] > 0)
        return np.flatnonzero(marks.any(axis=0))

    def _dead(self, pairs: list[int]) -> bool:
        """Whether the pairs together answered nothing in two slices or more."""
        sent, lost = (one[pairs][:, self.seen.now].sum(axis=0) for one in (self.seen.sent, self.seen.lost))
        return int(np.count_nonzero((sent > 0) & (lost >= DEAD * sent))) >= SLICES

    def overlay(self, silent: Ints) -> list[Named]:
        """Faults of overlay rules behind pairs that do not answer."""
        hits = flow.broken(self.tables, self.seen.pairs, self.seen.endpoints, silent.tolist())
        return [
            Named(
                one.element,
                one.others,
                "rule_loop" if one.state == "loop" else "rule_missing",
                one.pairs,
                self.slices(list(one.pairs), "loss"),
                (*reversed(one.path), self.seen.pairs[one.pairs[0]][0]),
            )
            for one in hits
        ]

    def suspects(self, symptom: str, voted: Voted) -> list[Named]:
        """The charges that are corroborated: by two anomalous pairs, and in two slices."""
        out = []
        for charge in voted.charges:
            flagged = [at for at in charge.pairs if symptom == "loss" or self.found.pairs[at]]
            slices = self.slices(flagged, symptom)
            if len(flagged) < 2 or len(slices) < SLICES:
                continue
            lead, others = ordered(charge.names, symptom)
            indicator = symptom
            if symptom == "loss" and self._dead(flagged):
                indicator = "unreachable"
            wrong = self._offloaded(lead, others, flagged)
            lead, others, indicator = wrong or (lead, others, indicator)
            if not wrong and symptom == "latency":
                lead, others = self._acquitted(lead, others, flagged, int(slices.min()))
            delay = float(np.median(self.found.ratio[flagged])) if symptom == "latency" else 0.0
            out.append(
                Named(
                    lead,
                    others,
                    indicator,
                    tuple(flagged),
                    slices,
                    self._path(lead, flagged[0]),
                    charge,
                    delay,
                )
            )
        return out

    def _offloaded(
        self, lead: str, others: tuple[str, ...], pairs: list[int]
    ) -> tuple[str, tuple[str, ...], str] | None:
        """The card whose offloaded rules differ on most overlay pairs that leave it, or the virtual switch of several
        such cards, if it is among the suspects."""
        names, endpoints = {lead, *others}, self.seen.endpoints
        cards = {
            end.nic: end
            for end in endpoints.values()
            if names & {end.nic, end.name, self.tables.switch_of(end.host) or end.nic, container_of(end)}
        }
        differ = {card: self._differing(card, pairs) for card in sorted(cards)}
        touched = [card for card, share in differ.items() if share >= TOUCHED]
        if (switch := self._switch({cards[card].host for card in touched}, len(touched))) in names:
            return (switch, (), "offloaded_rules")
        wrong = [card for card in touched if differ[card] >= MISMATCHED]
        if not wrong:
            return None
        own = {wrong[0], cards[wrong[0]].name, container_of(cards[wrong[0]])}
        return (wrong[0], (), "offloaded_rules") if names & own else None

    def _differing(self, card: str, pairs: list[int]) -> float:
        """The share of the overlay pairs that leave a card whose offloaded rule differs."""
        mine = [at for at in pairs if self._leaves(at, card)]
        return self._mismatched(mine) / max(1, len(mine))

    def _mismatched(self, pairs: list[int]) -> int:
        endpoints = self.seen.endpoints
        return sum(self.tables.mismatch(self.seen.pairs[at], endpoints) is not None for at in pairs)

    def _acquitted(
        self, lead: str, others: tuple[str, ...], pairs: list[int], first: int
    ) -> tuple[str, tuple[str, ...]]:
        """The host ahead of its virtual switch where the same probes pass both, if copies of the switch's rules that
        were dumped after the onset (slice `first`) are right. Two of the three published faults of a virtual switch are
        faults of offloading; it stays in the group for the third.
        """
        names = {lead, *others}
        hosts = {end.host for end in self.seen.endpoints.values()} & names
        switches = {self.tables.switch_of(host) for host in hosts} & names
        if len(hosts) != 1 or not switches:
            return lead, others
        (host,), (switch,) = hosts, switches
        onset = (self.window.start + first * SLICE).timestamp() * 1e6
        away = [at for at in pairs if self._from(at, host)]
        if not away or self.tables.dumped.get(str(switch), 0) < onset or self._mismatched(away):
            return lead, others
        if self._usual() > TOUCHED:
            return lead, others
        return host, tuple(sorted(names - {host}))

    def _from(self, at: int, host: str) -> bool:
        src, _, layer = self.seen.pairs[at]
        end = self.seen.endpoints.get(src)
        return layer == "overlay" and end is not None and end.host == host

    def _usual(self) -> float:
        """The share of up to 500 overlay pairs in time whose offloaded rule differs."""
        well = np.flatnonzero(~self.found.pairs & _overlay(self.seen)).tolist()[:500]
        return self._mismatched(well) / max(1, len(well))

    def _switch(self, hosts: set[str], cards: int) -> str:
        """The virtual switch of a host if so many cards of it alone hold other rules, two or more: it offloads to all
        of them, and a card spoils its own copies only. "" otherwise.
        """
        return (self.tables.switch_of(min(hosts)) or "") if len(hosts) == 1 and cards > 1 else ""

    def _leaves(self, at: int, card: str) -> bool:
        src, _, layer = self.seen.pairs[at]
        end = self.seen.endpoints.get(src)
        return layer == "overlay" and end is not None and end.nic == card

    def cards(self, pairs: list[int]) -> list[Named]:
        """Late overlay pairs that no vote explains and whose offloaded rule differs: the card of the source, or the
        virtual switch of several cards of one host."""
        endpoints, hits = self.seen.endpoints, dict[str, list[int]]()
        if not self.tables.offloaded or not pairs or self._usual() > MISMATCHED:
            return []
        for at in pairs:
            src, _, layer = self.seen.pairs[at]
            if (
                layer == "overlay"
                and src in endpoints
                and self.tables.mismatch(self.seen.pairs[at], endpoints)
            ):
                hits.setdefault(endpoints[src].nic, []).append(at)
        for host in sorted({end.host for end in endpoints.values()}):
            cards = sorted({end.nic for end in endpoints.values() if end.host == host} & set(hits))
            if switch := self._switch({host}, len(cards)):
                hits[switch] = sorted(at for card in cards for at in hits.pop(card))
        out = []
        for card, mine in sorted(hits.items()):
            slices = self.slices(mine, "latency")
            if len(slices) >= SLICES:
                delay = float(np.median(self.found.ratio[mine]))
                path = self._path(card, mine[0])
                out.append(Named(card, (), "offloaded_rules", tuple(mine), slices, path, None, delay))
        return out

    def _path(self, lead: str, pair: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys((lead, *self.seen.pairs[pair][:2])))

    def once(self, named: list[Named]) -> list[Named]:
        """Each component once: what loses probes also answers late, and what came first counts."""
        out: dict[str, Named] = {}
        for one in named:
            out.setdefault(one.component, one)
        return list(out.values())


def ordered(names: tuple[str, ...], symptom: str) -> tuple[str, tuple[str, ...]]:
    """The leading name and the others, sorted; an endpoint is left out beside its card or container."""
    kinds = FIRST[symptom]

    def rank(name: str) -> tuple[int, int]:
        kind = name.partition("/")[0]
        return kinds.index(kind) if kind in kinds else len(kinds) - 2, names.index(name)

    lead, *others = sorted(names, key=rank)
    return lead, tuple(sorted(one for one in others if not one.startswith("endpoint/")))
