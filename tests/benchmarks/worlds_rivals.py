"""Simpler methods for windows of paths: PLL, a greedy likelihood as in Flock, 007's votes, twenty lines of ratios."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from scipy.special import pdtrc

from analyzers.builtin.flows.observed import observe
from analyzers.builtin.flows.votes import discounted
from analyzers.builtin.paths import Incidence, bad_paths, incidence, of_layer, solve
from analyzers.contract import Paths, Window
from tests.benchmarks.worlds import Method

Q_BAD, Q_GOOD, PRIOR = 5e-3, 2e-4, 1e-4
"""Loss of a bad and of a good path, and how probable a bad component is: the defaults of Flock's public code."""


def seen_of(window: Window) -> Incidence:
    sums = of_layer(window.sums["paths"], "underlay")
    key = sums.keys["hops"] if "hops" in sums.keys else sums.keys["components"]
    assert isinstance(key, Paths)
    tried, failed = ("attempts", "failures") if "attempts" in sums.values else ("sent", "lost")
    return incidence(key, sums.values[tried], sums.values[failed])


def pll(window: Window) -> list[str]:
    """deTector (Peng et al., ATC 2017), a path being bad when it loses more than one in two hundred."""
    seen = seen_of(window)
    return [seen.names[one.component] for one in solve("pll", bad_paths(seen, 0.005))]


def pll_any(window: Window) -> list[str]:
    """The same, a path being bad when it loses more than one in a thousand."""
    seen = seen_of(window)
    return [seen.names[one.component] for one in solve("pll", bad_paths(seen, 1e-3))]


def flock(window: Window) -> list[str]:
    """Greedy likelihood with one loss of bad paths and one of good ones (Harsh et al., CoNEXT 2023), paths known."""
    seen = seen_of(window)
    gain = seen.failures * np.log(Q_BAD / Q_GOOD) + (seen.attempts - seen.failures) * np.log(
        (1 - Q_BAD) / (1 - Q_GOOD)
    )
    good = np.ones(seen.paths, dtype=bool)
    named: list[int] = []
    while len(named) < 100:
        gains = seen.per_component(gain * good) + np.log(PRIOR)
        best = int(np.argmax(gains)) if len(gains) else 0
        if not len(gains) or gains[best] <= 0:
            break
        named.append(best)
        good &= ~seen.containing([best])
    return [seen.names[one] for one in named]


def votes(window: Window) -> list[str]:
    """007 with its threshold of one per cent, and losses of three pairs of hosts at least."""
    seen = observe(window, "underlay")
    return [seen.paths.names[one.component] for one in discounted(seen, 0.01, 3)]


def published_votes(window: Window) -> list[str]:
    """007 as published: no floor under its threshold of one per cent."""
    seen = observe(window, "underlay")
    return [seen.paths.names[one.component] for one in discounted(seen, 0.01, 1)]


def ratio(window: Window) -> list[str]:
    """Components that lose improbably more than the rate of all, the worst first; paths of each are then taken away."""
    return ratio_of(seen_of(window))


def ratio_of(seen: Incidence) -> list[str]:
    """The same, of attempts and failures by path."""
    left = np.ones(seen.paths, dtype=bool)
    named: list[str] = []
    while len(named) < 100:
        tried = seen.per_component(seen.attempts * left)
        failed = seen.per_component(seen.failures * left)
        usual = max(float((seen.failures * left).sum()) / max(float((seen.attempts * left).sum()), 1.0), 1e-6)
        chance = pdtrc(np.maximum(failed - 1, 0), tried * usual)
        chance[(failed < 3) | (failed < 3 * tried * usual)] = 1.0
        worst = np.lexsort((-failed / np.maximum(tried, 1), chance))
        if not len(worst) or chance[worst[0]] > 1e-3 / seen.components:
            break
        named.append(seen.names[int(worst[0])])
        left &= ~seen.containing([int(worst[0])])
    return named


VOTING: Mapping[str, Method] = MappingProxyType(
    {"007": votes, "007 as published": published_votes, "PLL": pll_any, "Flock": flock, "ratio": ratio}
)
NETBOUNCER: Mapping[str, Method] = MappingProxyType({"PLL": pll, "Flock": flock, "ratio": ratio})
BOOLEAN: Mapping[str, Method] = MappingProxyType({"PLL": pll, "Flock": flock, "ratio": ratio})
