"""Worth of probes chosen by expected information beside probes chosen at random and by degree.

python -m tests.benchmarks.questions [--trials N] [--first SEED]

A trial is a failure that a few watching paths see: components that all failing paths share and no good path passes are
the suspects. One of them loses packets; in the trials `outside` none does. A policy chooses among the same probes (of
paths that test the same suspects the shortest), at most `MOST` one after the other; answers update the beliefs.

* `information`: the order of the product.
* `random`: any probe that tests a suspect.
* `degree`: the suspect on most paths that is still open (posterior above a twentieth of the leading one's), by the path
  that passes it and the fewest others.

Worlds: `leaf-spine`, drawn here, and `clos`, the irregular fabric of `tests.worlds.clos` by another hand (unequal pods,
missing and parallel links, polarised ECMP, a name for each direction of a link). Packets are lost as no model says:
background rates differ by path (log-uniform, 1e-6 to 1e-3), losses come in bursts of two, the estimate of the loss is
off by a factor (log-normal, .4), and one probe of fifty takes another path than reported. Nothing was tuned on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np

from analyzers.runs.scoring import Share
from incidents.domain.questions import (
    NONE,
    RULED_OUT,
    SETTLED,
    Beliefs,
    Group,
    Path,
    Question,
    candidates,
    entropy,
    leading,
    lost_for_positive,
    measured,
    prior,
    ranked,
    updated,
)
from tests.benchmarks.scoring import spread
from tests.worlds.clos import Fabric, fabric

FIRST_SEED, TRIALS = 1, 600
MOST = 15
"""Probes of one trial."""
SCORE = 0.9
OPEN_PATHS = 250
"""Paths that earlier probes reported."""
POLICIES = ("information", "random", "degree")
WORLDS = ("leaf-spine", "clos")
Rng = np.random.Generator


@dataclass(frozen=True)
class Trial:
    """Suspects, the probes that test them, and what is at fault: the share of packets it loses; "" for none of them."""

    suspects: tuple[str, ...]
    questions: tuple[Question, ...]
    paths: tuple[Path, ...]
    culprit: str
    loss: float


@dataclass(frozen=True)
class Outcome:
    """Bits gained after the first and third probe; probes until one suspect had `SETTLED`, `MOST` + 1 if none had; who
    led at the end, and how likely."""

    first: float
    third: float
    steps: int
    leader: str
    probability: float


# Worlds
# ----------------------------------------------------------------------------------------------------------
def leaf_spine(rng: Rng) -> Callable[[], Path]:
    leaves, spines, hosts = int(rng.integers(4, 10)), int(rng.integers(2, 6)), int(rng.integers(2, 5))

    def path() -> Path:
        a, b = rng.choice(leaves * hosts, 2, replace=False).tolist()
        below, above, spine = a // hosts, b // hosts, int(rng.integers(spines))
        passed = {
            f"link/h{a}~leaf{below}",
            f"link/h{b}~leaf{above}",
            f"switch/leaf{below}",
            f"switch/leaf{above}",
        }
        if below != above:
            passed |= {
                f"link/leaf{below}~spine{spine}",
                f"link/leaf{above}~spine{spine}",
                f"switch/spine{spine}",
            }
        return Path(f"host/h{a}", f"host/h{b}", tuple(sorted(passed)))

    return path


def clos(rng: Rng) -> Callable[[], Path]:
    made: Fabric = fabric(rng, pods=3, hosts=(2, 4))

    def path() -> Path:
        while True:
            src, dst = (np.array([int(one)]) for one in rng.choice(len(made.hosts), 2, replace=False))
            if made.rack[src[0]] == made.rack[dst[0]] or not bool(made.connected(src, dst)[0]):
                continue
            links = [int(one) for one in made.paths(rng, src, dst)[0] if one >= 0]
            devices = {f"switch/{end}" for link in links for end in made.ends[link]}
            ends = {f"switch/{made.hosts[one[0]].partition('/')[2]}" for one in (src, dst)}
            hops = tuple(sorted({made.links[link] for link in links} | (devices - ends)))
            return Path(made.hosts[src[0]], made.hosts[dst[0]], hops)

    return path


def trial(world: str, seed: int, outside: bool) -> Trial | None:
    """None where the watching paths leave fewer than three suspects, or the probes cannot tell all apart."""
    rng = np.random.default_rng([seed, WORLDS.index(world)])
    draw = (leaf_spine if world == "leaf-spine" else clos)(rng)
    paths = tuple(dict.fromkeys(draw() for _ in range(OPEN_PATHS)))
    watching = [paths[int(one)] for one in rng.choice(len(paths), int(rng.integers(3, 12)), replace=False)]
    culprit = str(rng.choice(watching[0].hops))
    failing = [one for one in watching if culprit in one.hops]
    shared = set.intersection(*(set(one.hops) for one in failing))
    suspects = tuple(
        sorted(shared - {name for one in watching if culprit not in one.hops for name in one.hops})
    )
    if len(suspects) < 3:
        return None
    loss = float(np.exp(rng.uniform(np.log(0.02), np.log(0.6))))
    told = min(1.0, loss * float(np.exp(rng.normal(0, 0.4))))
    questions = [one for one in candidates(suspects, paths, {}, told) if one.kind == "probe"]
    marks = {tuple(name in one.tests for one in questions) for name in suspects}
    if len(marks) < len(suspects):
        return None
    return Trial(suspects, tuple(questions), paths, "" if outside else culprit, loss)


def answer(one: Trial, question: Question, rng: Rng) -> tuple[Question, Any]:
    """The probes as they go out: bursts, a background of the path's own, sometimes another path."""
    hops = question.hops if rng.random() >= 0.02 else one.paths[int(rng.integers(len(one.paths)))].hops
    background = float(np.exp(rng.uniform(np.log(1e-6), np.log(1e-3))))
    share = background + (one.loss if one.culprit in hops else 0.0)
    lost = min(question.packets, 2 * int(rng.binomial(question.packets // 2, min(1.0, share))))
    told = measured(question, question.packets)
    return told, "positive" if lost >= lost_for_positive(question.packets) else "negative"


# Policies
# ----------------------------------------------------------------------------------------------------------
def choose(policy: str, beliefs: Beliefs, left: Sequence[Question], one: Trial, rng: Rng) -> Question | None:
    if policy == "information":
        best = ranked(beliefs, left)
        return best[0].question if best else None
    if not left:
        return None
    if policy == "random":
        return left[int(rng.integers(len(left)))]
    top = max(p for name, p in beliefs.items() if name != NONE)
    still = [name for name in one.suspects if beliefs[name] * RULED_OUT >= top]
    degree = {name: sum(name in path.hops for path in one.paths) for name in still}
    for name in sorted(still, key=lambda each: (-degree[each], each)):
        passing = [each for each in left if name in each.tests]
        if passing:
            return min(passing, key=lambda each: (len(set(each.tests) & set(still)), each.id))
    return left[0]


def played(one: Trial, policy: str, seed: int) -> Outcome:
    rng = np.random.default_rng([seed, 7, POLICIES.index(policy)])
    beliefs: dict[str, float] = prior([Group(one.suspects, SCORE)])
    start, left, gained, steps = entropy(beliefs), list(one.questions), [0.0], MOST + 1
    for step in range(1, MOST + 1):
        chosen = choose(policy, beliefs, left, one, rng)
        if chosen is None:
            break
        left.remove(chosen)
        told, outcome = answer(one, chosen, rng)
        beliefs = updated(beliefs, replace(told), outcome)
        gained.append(start - entropy(beliefs))
        if leading(beliefs)[1] >= SETTLED:
            steps = step
            break
    name, p = leading(beliefs)
    return Outcome(gained[min(1, len(gained) - 1)], gained[min(3, len(gained) - 1)], steps, name, p)


def play(job: tuple[str, int, bool]) -> tuple[int, str, list[Outcome]] | None:
    """Number of suspects, the culprit, and each policy's outcome."""
    world, seed, outside = job
    one = trial(world, seed, outside)
    if one is None:
        return None
    return len(one.suspects), one.culprit, [played(one, policy, seed) for policy in POLICIES]


# Figures
# ----------------------------------------------------------------------------------------------------------
def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    for world in WORLDS:
        yield from _gains(world, trials, first)
        yield from _outside(world, trials, first + 100_000)


def _gains(world: str, trials: int, first: int) -> Iterator[dict[str, Any]]:
    done = [
        one for one in spread(play, [(world, first + n, False) for n in range(trials)]) if one is not None
    ]
    of = f"{len(done)} ambiguities of {fmean(one[0] for one in done):.1f} suspects"
    by_policy = {name: [one[2][n] for one in done] for n, name in enumerate(POLICIES)}
    for name, found in by_policy.items():
        settled = Share(sum(one.steps <= MOST for one in found), len(found))
        right = sum(
            one.steps <= MOST and one.leader == each[1] for one, each in zip(found, done, strict=True)
        )
        truth = Share(right, settled.hits)
        notes = (
            f"first {_mean([one.first for one in found])} bits; settled {_share(settled)}, "
            f"right when settled {_share(truth)}; {of}"
        )
        yield _row(f"{world}: bits after 3 probes, {name}", fmean(one.third for one in found), "", notes)
        yield _row(
            f"{world}: probes to one suspect, {name}",
            fmean(one.steps for one in found),
            "",
            _mean([one.steps for one in found]),
        )
    ours = by_policy["information"]
    for name in POLICIES[1:]:
        more = [a.third - b.third for a, b in zip(ours, by_policy[name], strict=True)]
        fewer = [float(b.steps - a.steps) for a, b in zip(ours, by_policy[name], strict=True)]
        yield _row(f"{world}: bits more than {name} after 3 probes", fmean(more), "> 0", _mean(more))
        yield _row(f"{world}: probes fewer than {name}", fmean(fewer), "> 0", _mean(fewer))


def _outside(world: str, trials: int, first: int) -> Iterator[dict[str, Any]]:
    done = [one for one in spread(play, [(world, first + n, True) for n in range(trials)]) if one is not None]
    accused = Share(sum(one[2][0].steps <= MOST for one in done), len(done))
    yield _row(f"{world}: innocent suspects settled on", accused.value or 0.0, "<= 0.1", _share(accused))


def _row(name: str, value: float, bar: str, note: str) -> dict[str, Any]:
    return {"name": name, "value": round(value, 3), "unit": "", "bar": bar or None, "note": note}


def _mean(values: Sequence[float]) -> str:
    half = 1.96 * stdev(values) / len(values) ** 0.5
    return f"{fmean(values):.2f} [{fmean(values) - half:.2f}, {fmean(values) + half:.2f}] of {len(values)}"


def _share(one: Share) -> str:
    low, high = one.interval
    return f"{one.hits} of {one.trials} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    from tests.benchmarks.script import script

    script(rows, TRIALS, FIRST_SEED)
