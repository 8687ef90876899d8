"""From episodes to what is said of each component: gray, failing, or complaining about others without cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.panorama.episodes import (
    Episode,
    Partition,
    Stop,
    component_of,
    episodes_of,
    explained,
    explains,
    stops_of,
)
from analyzers.builtin.panorama.likelihood import (
    OBSERVER,
    PLACE,
    SUBJECT,
    Weighed,
    cell_weights,
    rivals,
    weigh,
)
from analyzers.builtin.panorama.observed import Observed, Tally, Usual, tally, usual_of
from analyzers.contract import Assumption, Params, Window

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Nature = Literal["gray", "failing", "observer"]

_AS_GOOD = 1.5
"""Nats: what explains as much but for these cannot be told apart."""

_SWAP = 2
"""Least number of subjects that an observer must complain about to be blamed for its complaints."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Parameters in steps and nats."""

    look_back: int
    limit: int
    patience: int
    least: int
    restart: int
    sure: int
    margin: float
    probes: frozenset[str]

    @classmethod
    def of(cls, seen: Observed, params: Params) -> Rules:
        names = (name.strip() for name in str(params["probe_contexts"]).split(","))
        return cls(
            look_back=seen.steps_of(float(params["look_back_seconds"])),
            limit=seen.steps_of(float(params["pending_seconds"])),
            patience=seen.steps_of(float(params["patience_seconds"])),
            least=seen.steps_of(float(params["least_seconds"])),
            restart=seen.steps_of(float(params["restart_seconds"])),
            sure=seen.steps_of(float(params["sure_seconds"])),
            margin=float(params["margin"]),
            probes=frozenset(name for name in names if name),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One component that is blamed, with the episodes that blame it, the one with most evidence first.

    `witnesses` complained about it, of `asked` observers; `contexts` are those in which it fails (all that its
    callers use if `everywhere`). `rivals` are components that explain as much.
    """

    component: int
    nature: Nature
    episodes: tuple[Episode, ...]
    witnesses: int
    others: int
    contexts: tuple[int, ...]
    everywhere: bool
    rivals: tuple[int, ...]

    @property
    def main(self) -> Episode:
        return self.episodes[0]

    @property
    def surplus(self) -> float:
        return self.main.surplus

    @property
    def ongoing(self) -> bool:
        return any(one.ongoing for one in self.episodes)

    @property
    def first(self) -> int:
        return min(one.first for one in self.episodes)

    @property
    def last(self) -> int:
        return max(one.last for one in self.episodes)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Result of the weighted method; `passing` are episodes too short to be blamed, `restarts` the components that
    are or were gone for no longer than a restart takes, which explains some of those. `partition` is the cut of the
    network that explains episodes, if one does.
    """

    seen: Observed
    counted: Tally
    usual: Usual
    rules: Rules
    probe: Bools
    findings: tuple[Finding, ...]
    passing: tuple[Episode, ...]
    restarts: Mapping[int, Stop]
    alarms: tuple[Episode, ...]
    crowd: float
    partition: Partition | None = None
    assumptions: tuple[Assumption, ...] = ()


def find(seen: Observed, past: Sequence[Window], params: Params) -> Found:
    rules = Rules.of(seen, params)
    counted = tally(seen, rules.look_back, rules.limit)
    probing = np.array([name in rules.probes for name in seen.contexts], dtype=bool)
    probe = probing[seen.context] if seen.cells else np.zeros(0, dtype=bool)
    usual = usual_of(seen, counted, past, rules.look_back)
    weighed = weigh(seen, counted, usual, probe, rules.margin)
    episodes = episodes_of(seen, counted, usual, weighed, probe, rules.look_back)
    restarts = {
        component: stop
        for component, stop in stops_of(seen, probe, episodes).items()
        if stop.steps < rules.restart
    }
    cut_off, partition = explained(seen, counted, episodes)
    lengths = _lengths(episodes)
    lasting = [
        one
        for one in episodes
        if one not in cut_off
        and _lasts(one, lengths[one.sort, one.subject], rules)
        and _spoken_for(seen, counted, usual, one)
        and not _restarts(seen, restarts, one)
    ]
    passing = [one for one in episodes if one not in lasting]
    named, alarms = _by_component(seen, lasting, probe)
    found = [
        _finding(seen, counted, usual, weighed, probe, component, mine)
        for component, mine in sorted(named.items())
    ]
    found.sort(key=lambda one: (-one.surplus, seen.components[one.component]))
    return Found(
        seen,
        counted,
        usual,
        rules,
        probe,
        tuple(found),
        tuple(passing),
        restarts,
        tuple(alarms),
        _crowd(seen, weighed),
        partition,
    )


def _restarts(seen: Observed, restarts: Mapping[int, Stop], one: Episode) -> bool:
    stop = restarts.get(component_of(seen, one)) if one.sort != OBSERVER else None
    return stop is not None and explains(seen, stop, one)


def _lengths(episodes: Sequence[Episode]) -> Mapping[tuple[int, int], int]:
    """Steps of all episodes of each culprit together: what fails again and again has not passed."""
    found: dict[tuple[int, int], int] = {}
    for one in episodes:
        found[one.sort, one.subject] = found.get((one.sort, one.subject), 0) + one.steps
    return found


def _lasts(one: Episode, together: int, rules: Rules) -> bool:
    """Whether it went on for long enough: for `patience` and still does, or for `least`, all times together."""
    return together >= rules.least or (one.ongoing and one.steps >= rules.patience)


def _spoken_for(seen: Observed, counted: Tally, usual: Usual, one: Episode) -> bool:
    """Whether enough others testify: two observers of a subject that has two, two subjects of an observer."""
    around = seen.subject if one.sort == OBSERVER else seen.observer
    observers = _observers_of(counted, usual, one)
    if one.sort == OBSERVER:
        return len(np.unique(around[observers])) >= _SWAP
    return len(np.unique(around[observers])) >= min(2, len(np.unique(around[one.cells])))


def _observers_of(counted: Tally, usual: Usual, one: Episode) -> Ints:
    """The episode's cells that were bad when it had most evidence, or at its last failure."""
    bad = np.zeros(len(one.cells), dtype=bool)
    for step in (one.best, one.last):
        failed, total = counted.failed[one.cells, step], counted.total[one.cells, step]
        bad |= cell_weights(failed, total, usual, one.cells) > 0
    return one.cells[bad]


def _by_component(
    seen: Observed, lasting: list[Episode], probe: Bools
) -> tuple[dict[int, list[Episode]], list[Episode]]:
    """Episodes by the component to blame; and those in which only probes fail while callers are well."""
    probed_places = np.zeros(len(seen.place_subject), dtype=bool)
    probed_places[seen.place[probe]] = True
    used = set(seen.subject[~probe].tolist())
    named: dict[int, list[Episode]] = {}
    only_probes: list[Episode] = []
    for one in lasting:
        if one.sort == PLACE and probed_places[one.subject] and int(seen.place_subject[one.subject]) in used:
            only_probes.append(one)
            continue
        component = int(seen.place_subject[one.subject]) if one.sort == PLACE else one.subject
        named.setdefault(component, []).append(one)
    alarms = []
    for one in only_probes:
        subject = int(seen.place_subject[one.subject])
        if any(other.sort != OBSERVER for other in named.get(subject, ())):
            named[subject].append(one)
        else:
            alarms.append(one)
    return named, alarms


def _finding(
    seen: Observed,
    counted: Tally,
    usual: Usual,
    weighed: Weighed,
    probe: Bools,
    component: int,
    mine: list[Episode],
) -> Finding:
    subject = [one for one in mine if one.sort != OBSERVER]
    about = subject or mine
    order = sorted(about, key=lambda one: (-one.ongoing, -one.surplus, one.sort, one.first))
    observers = np.concatenate([_observers_of(counted, usual, one) for one in order])
    cells = np.concatenate([one.cells for one in order])
    others = seen.observer if subject else seen.subject
    places = {one.subject for one in order if one.sort == PLACE}
    return Finding(
        component=component,
        nature=_nature(seen, counted, probe, component, order) if subject else "observer",
        episodes=tuple(order),
        witnesses=len(np.unique(others[observers])),
        others=len(np.unique(others[cells])),
        contexts=tuple(sorted({int(seen.place_context[place]) for place in places})),
        everywhere=any(one.sort == SUBJECT for one in order),
        rivals=_rivals(seen, weighed, order[0], component),
    )


def _nature(seen: Observed, counted: Tally, probe: Bools, component: int, mine: list[Episode]) -> Nature:
    """Gray: callers see it fail and probes, at the same time, do not. Without probes it is just failing."""
    watched = np.flatnonzero(probe & (seen.subject == component))
    main = mine[0]
    inside = slice(main.first, main.last + 1)
    total = int(seen.healthy[watched, inside].sum()) + int(seen.unhealthy[watched, inside].sum())
    failed = int(seen.unhealthy[watched, inside].sum()) + int(counted.hung[watched, main.last].sum())
    alarmed = any(one.sort == PLACE and bool(np.isin(one.cells, watched).any()) for one in mine)
    clients = any(not np.isin(one.cells, watched).all() for one in mine)
    return "gray" if clients and total and not alarmed and 2 * failed < total else "failing"


def _rivals(seen: Observed, weighed: Weighed, one: Episode, component: int) -> tuple[int, ...]:
    """Other components that explain the step with most evidence as well."""
    here = weighed.step == one.best
    problem = weighed.problem
    local = type(problem)(problem.weight[here], problem.owner[:, here], problem.counts, problem.needed)
    number = int(
        np.flatnonzero((weighed.name[one.sort] == one.subject) & (weighed.at[one.sort] == one.best))[0]
    )
    found = set()
    for sort, other in rivals(local, list(weighed.solution.chosen), one.sort, number, _AS_GOOD):
        subject = int(weighed.name[sort][other])
        found.add(int(seen.place_subject[subject]) if sort == PLACE else subject)
    return tuple(sorted(found - {component}))


def _crowd(seen: Observed, weighed: Weighed) -> float:
    """Share of the observers that are unreliable at the step at which most of them are."""
    on = weighed.solution.chosen[OBSERVER]
    if not on.any():
        return 0.0
    most = int(np.bincount(weighed.at[OBSERVER][on]).max())
    return most / len(np.unique(seen.observer))
