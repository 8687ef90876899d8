"""Similar past incidents and the suggested team: how long learning and asking take, and how often a
suggestion is false.

python -m tests.benchmarks.similar [--tickets N]

Incidents are synthetic: components of twelve kinds at six teams of unequal size, each kind with symptoms of
its own, some of which are another team's (a VM whose disk times out is Storage's; a host that is unreachable
is Network's in every second cluster). `noise` of the incidents were resolved by any team. `lot`: all were, so
every suggestion is a guess. `moved`: halfway through two teams swap all that they own. A suggestion is false
if another team resolved the incident; incidents that are asked about were not learned from, but for `moved`
each is learned as soon as it was asked about, in blocks of a tenth.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from analyzers.runs.scoring import Share
from incidents.domain.similarity.text import Described
from incidents.similarity.team_prediction import Suggesting

Row = dict[str, Any]
Ticket = tuple[Described, str]
TEAMS: dict[str, tuple[int, tuple[str, ...]]] = {
    "network": (5, ("tor", "link", "spine")),
    "storage": (4, ("storage_cluster", "disk")),
    "compute": (6, ("host", "vm")),
    "gpu": (4, ("gpu", "node")),
    "power": (1, ("pdu",)),
    "cooling": (1, ("crac", "chiller")),
}
SYMPTOMS = {
    "tor": ("packet loss on uplink", "is unreachable", "port flaps"),
    "link": ("CRC errors rise", "flaps"),
    "spine": ("drops packets", "is unreachable"),
    "storage_cluster": ("latency above 20 ms", "disks fail", "fails 3 % of what depends on it"),
    "disk": ("is slow", "SMART errors"),
    "host": ("not ready", "is unreachable", "memory errors"),
    "vm": ("disk timeout", "is unreachable", "steal time high"),
    "gpu": ("XID 79", "ECC errors rise"),
    "node": ("not ready", "NVLink down"),
    "pdu": ("over current",),
    "crac": ("inlet temperature high",),
    "chiller": ("flow low",),
}
SEED = 7_000_000


def tickets(count: int, noise: float, seed: int) -> list[Ticket]:
    draw = random.Random(seed)
    names, weights = list(TEAMS), [weight for weight, _ in TEAMS.values()]
    return [_ticket(draw, draw.choices(names, weights)[0], noise) for _ in range(count)]


def _ticket(draw: random.Random, team: str, noise: float) -> Ticket:
    kind = draw.choice(TEAMS[team][1])
    name = f"{kind}/dc{draw.randint(1, 4)}-{kind[0]}{draw.randint(1, 300)}"
    symptom, cluster = draw.choice(SYMPTOMS[kind]), draw.randint(1, 20)
    if symptom == "disk timeout":
        team = "storage"
    elif symptom == "is unreachable" and kind in ("vm", "host") and cluster % 2:
        team = "network"
    if draw.random() < noise:
        team = draw.choice(list(TEAMS))
    labels = {"alertname": symptom.title(), "cluster": f"c{cluster}", "rack": f"r{draw.randint(1, 300)}"}
    return Described(f"{name} {symptom}", name, labels, name), team


def _learned(past: Sequence[Ticket]) -> Suggesting:
    return Suggesting([one for one, _ in past], [team for _, team in past])


def asked(model: Suggesting, some: Sequence[Ticket]) -> list[bool]:
    """Of the incidents for which a team is suggested whether it is the right one."""
    said = [(model.suggest(one).team, team) for one, team in some]
    return [suggested == team for suggested, team in said if suggested is not None]


def world(name: str, count: int) -> tuple[list[bool], int]:
    """The suggestions, and for how many incidents one was asked for."""
    if name == "moved":
        return _moved(count)
    noise = {"noise .1": 0.1, "noise .3": 0.3, "lot": 1.0}[name]
    fresh = tickets(1_000, noise, SEED + 1)
    return asked(_learned(tickets(count, noise, SEED)), fresh), len(fresh)


def _moved(count: int) -> tuple[list[bool], int]:
    swap = {"compute": "gpu", "gpu": "compute"}
    before, after = tickets(count, 0.1, SEED), tickets(count, 0.1, SEED + 1)
    past, said = list(before), list[bool]()
    moved = [(one, swap.get(team, team)) for one, team in after]
    for start in range(0, count, count // 10):
        block = moved[start : start + count // 10]
        said += asked(_learned(past), block)
        past += block
    return said, count


def main(count: int = 2_000) -> list[Row]:
    return list(figures(count))


def figures(count: int) -> Iterator[Row]:
    for name, bar in (("noise .1", "<= 0.30"), ("noise .3", "<= 0.30"), ("lot", None), ("moved", None)):
        said, of = world(name, count)
        false = Share(said.count(False), len(said))
        low, high = false.interval if said else (0.0, 1.0)
        note = f"[{low:.3f}, {high:.3f}] of {len(said)} suggestions, {count} incidents learned"
        yield _row(f"suggested team, {name}: false suggestions", false.value or 0.0, bar, note)
        coverage = "<= 0.02" if name == "lot" else None
        yield _row(f"suggested team, {name}: coverage", len(said) / of, coverage, f"of {of} incidents")
    yield from _speed()


def _speed() -> Iterator[Row]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    import django

    django.setup()
    from incidents.similarity.similar import Similarity  # beside models, which ask for Django's settings

    seconds = {}
    for count in (1_000, 10_000):
        past = tickets(count, 0.1, SEED)
        began = time.process_time()
        model = Similarity([UUID(int=place) for place in range(count)], [one for one, _ in past])
        seconds[count] = time.process_time() - began
        took = []
        for one, _ in tickets(200, 0.1, SEED + 1):
            at = time.perf_counter()
            model.nearest(one, 5)
            took.append(time.perf_counter() - at)
        p95 = float(np.quantile(took, 0.95))
        yield _row(f"similar: learn {count:,} incidents (CPU s)", seconds[count], None, "")
        yield _row(f"similar: ask of {count:,} incidents, p95 (s)", p95, "<= 0.1", "")
    growth = float(np.log10(seconds[10_000] / seconds[1_000]))
    yield _row("similar: growth exponent of learning", growth, "<= 1.2", "1,000 to 10,000 incidents")
    past = tickets(10_000, 0.1, SEED)
    began = time.process_time()
    _learned(past)
    yield _row("suggested team: learn 10,000 incidents (CPU s)", time.process_time() - began, None, "")


def _row(name: str, value: float, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 4), "unit": "", "bar": bar, "note": note}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tickets", type=int, default=2_000)
    arguments = parser.parse_args()
    from tests.benchmarks.__main__ import line

    for row in figures(arguments.tickets):
        print(line(row), flush=True)
