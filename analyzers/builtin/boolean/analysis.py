"""Boolean tomography as an analyzer: what the classic methods conclude from good and bad paths.

The methods know no rates and no chance, so nothing here is a probability: scores are null, no suspect is `sure`, and
a finding opens an incident only when it comes back in further windows. Their assumptions are checked on each window:
the methods abstain where good paths are not recorded, and are not quiet where bad paths stay unexplained.

- `noise`: a path without a faulty component is good. Bad paths that no blamed component explains are counted against
  it. A component is blamed only if its bad paths would not meet on it by chance at that rate (binomial tail, times the
  number of components).
- `sampling`: good paths are recorded as often as bad ones. All methods clear components by their good paths; where only
  failing flows are recorded, hardly any component of a bad path has one.
- `topology`: a path passes the components that it names, and a faulty one fails all of its paths. A component on many
  bad paths that nobody explains, and cleared by a few good ones, speaks against either.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import (
    LEAST_PATHS,
    Bad,
    Found,
    Incidence,
    bad_paths,
    incidence,
    names_of,
    simpler_methods,
    solve,
    spans,
)
from analyzers.builtin.stats.probability import at_least
from analyzers.builtin.text import count, listed, percent
from analyzers.contract import (
    Assumption,
    Evidence,
    Params,
    Paths,
    Sums,
    Suspect,
    Verdict,
    Window,
    chart,
    inconclusive,
    quiet,
    table,
    text,
)

Json = dict[str, Any]
Floats = NDArray[np.float64]


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

_CITED = {
    "tomo": "Boolean tomography as in NetDiagnoser (Dhamdhere et al., CoNEXT 2007): components on a good path "
    "are cleared; of the others the one on most bad paths is blamed, in turn",
    "score": "SCORE (Kompella et al., NSDI 2005): of components with mostly bad paths the one on most of them is "
    "blamed, in turn; of the shares tried, the one with the cheapest answer (our reading)",
    "coverage": "maximum coverage (Kompella et al., INFOCOM 2007): the component on most bad paths is blamed, in turn",
    "pll": "PLL of deTector (Peng et al., ATC 2017): of components with mostly bad paths the one that explains most "
    "losses is blamed, in turn",
}

_RUNNERS = 8


def analyze(window: Window, params: Params) -> Verdict:
    seen = _observe(window, str(params["layer"]))
    bad = bad_paths(seen, float(params["threshold"]))
    measures = {
        "paths": seen.paths,
        "components": len(seen.number()),
        "attempts": int(seen.attempts.sum()),
        "failures": int(seen.failures.sum()),
        "bad_paths": len(bad.failures),
    }
    reason = _nothing_to_judge(seen, bad, window)
    if reason is not None:
        return inconclusive(reason, measures)
    found = beyond_chance(
        seen,
        bad,
        solve(str(params["method"]), bad, float(params["hit_ratio"]), int(params["min_paths"])),
    )
    measures["unexplained_bad_paths"] = len(bad.failures) - sum(one.paths for one in found)
    assumptions = checked(seen, bad, found) if len(bad.failures) else ()
    doubt = undecidable(found, assumptions)
    if doubt is not None:
        return Verdict("inconclusive", (), doubt, measures, _evidence(seen, bad, (), params), assumptions)
    evidence = _evidence(seen, bad, found, params)
    if not found:
        return quiet(measures, evidence, assumptions)
    when = _when(window, seen, found, params)
    suspects = tuple(_suspect(seen, bad, one, when.get(one.component)) for one in found)
    return Verdict("named", suspects, None, measures, evidence, assumptions)


def _observe(window: Window, layer: str) -> Incidence:
    sums = window.sums["paths"]
    paths = sums.keys[_paths(window)]
    assert isinstance(paths, Paths)
    attempts = np.where(_of_layer(sums, layer), sums.values["attempts"], 0)
    return incidence(paths, attempts, sums.values["failures"])


def _paths(window: Window) -> str:
    """The key that holds the paths."""
    return "hops" if window.input == "probe" else "components"


def _of_layer(sums: Sums, layer: str) -> NDArray[np.bool_]:
    """Rows of that layer; all, where rows have none."""
    if "layer" not in sums.keys:
        return np.ones(sums.rows, dtype=np.bool_)
    key = sums.keys["layer"]
    assert isinstance(key, tuple)
    return np.asarray([one == layer for one in key], dtype=np.bool_)


def _nothing_to_judge(seen: Incidence, bad: Bad, window: Window) -> str | None:
    where = _paths(window)
    if not seen.paths:
        return f"No attempt of this window names its path (`{where}`): paths cannot be compared."
    if not len(bad.failures):
        return None
    if seen.components == 1:
        return "All paths hold the same components: paths cannot be compared."
    if len(bad.failures) == seen.paths:
        return f"All {count(seen.paths)} paths are bad: without a good path no component can be cleared."
    return None


def _when(
    window: Window, seen: Incidence, found: Sequence[Found], params: Params
) -> dict[int, tuple[datetime, datetime]]:
    """Times at which the blamed failed; failures on good paths are usual."""
    good = seen.failures <= float(params["threshold"]) * seen.attempts
    noise = float(seen.failures[good].sum() / max(1.0, seen.attempts[good].sum()))
    blamed = [one.component for one in found]
    return spans(window, str(params["layer"]), seen, blamed, noise)


def _suspect(seen: Incidence, bad: Bad, found: Found, when: tuple[datetime, datetime] | None) -> Suspect:
    names = names_of(seen, found)
    on = int(np.count_nonzero(seen.column == found.component))
    hit = round(float(bad.hit[found.component]) * on)
    first = (
        f"{names[0]} lies on {count(found.paths)} bad paths that no other component explains; {count(hit)} of its "
        f"{count(on)} paths are bad ({percent(hit / on)})."
    )
    more = f" The paths do not separate it from {listed(names[1:])}." if names[1:] else ""
    return Suspect(
        names[0],
        None,
        first + more,
        ambiguous_with=tuple(sorted(names[1:])),
        first_failure=when[0] if when else None,
        last_failure=when[1] if when else None,
    )


def _evidence(seen: Incidence, bad: Bad, found: Sequence[Found], params: Params) -> tuple[Evidence, ...]:
    shown: list[Evidence] = []
    threshold = float(params["threshold"])
    answer = [names_of(seen, one) for one in found]
    runners = _runners(seen, bad, found)
    if found:
        rows = [
            (*_figures(seen, bad, one.component), one.paths, int(one.failures), ", ".join(names[1:]))
            for one, names in zip(found, answer, strict=True)
        ]
        columns = (
            "component",
            "paths",
            "bad",
            "share bad",
            "bad paths explained",
            "failures",
            "ambiguous with",
        )
        shown.append(
            table("Blamed", columns, tuple(rows), "Explained: bad paths that no component above it explains.")
        )
    if runners:
        figures = tuple(_figures(seen, bad, c) for c in runners)
        note = "On bad paths, and not blamed: others explain these, or too small a share of its paths is bad."
        shown.append(
            table("Looked into and cleared", ("component", "paths", "bad", "share bad"), figures, note)
        )
    if len(bad.failures):
        shown.append(_shares_chart(seen, bad, [one.component for one in found], runners))
        shown.append(simpler_methods(seen, threshold, {name for names in answer for name in names}))
    account = (
        f"A path is bad when more than {percent(threshold) if threshold else 'none'} of its attempts failed: "
        f"{count(len(bad.failures))} of {count(seen.paths)} are. Method: {_CITED[str(params['method'])]}; each must "
        f"explain at least {params['min_paths']} bad paths. The method knows no rates and no chance and gives no "
        "probability."
    )
    shown.append(text("Method", account))
    return tuple(shown)


def _figures(seen: Incidence, bad: Bad, component: int) -> tuple[str, int, int, float]:
    on = int(np.count_nonzero(seen.column == component))
    return (
        seen.names[component],
        on,
        round(float(bad.hit[component]) * on),
        round(float(bad.hit[component]), 4),
    )


def _runners(seen: Incidence, bad: Bad, found: Sequence[Found]) -> list[int]:
    """The components on most bad paths that are not blamed."""
    hits = np.bincount(bad.column, minlength=seen.components)
    blamed = {c for one in found for c in (one.component, *one.others)}
    order = np.lexsort((seen.mark, -hits))[: _RUNNERS + len(blamed)].tolist()
    return [c for c in order if c not in blamed and hits[c] > 0][:_RUNNERS]


def _shares_chart(seen: Incidence, bad: Bad, blamed: Sequence[int], runners: Sequence[int]) -> Evidence:
    """The share of bad paths of the blamed and of the cleared."""
    values = [
        {"component": name, "share": share, "paths": on, "bad": hit, "verdict": verdict}
        for components, verdict in ((blamed[:12], "blamed"), (runners, "cleared"))
        for name, on, hit, share in (_figures(seen, bad, c) for c in components)
    ]
    spec: Json = {
        "$schema": SCHEMA,
        "width": "container",
        "height": {"step": 18},
        "data": {"values": values},
        "mark": {"type": "bar", "tooltip": {"content": "data"}},
        "encoding": {
            "y": {
                "field": "component", "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 260},
            },
            "x": {
                "field": "share", "type": "quantitative", "title": "share of its paths that are bad",
                "scale": {"domain": [0, 1]}, "axis": {"format": ".0%"},
            },
            "color": {
                "field": "verdict", "type": "nominal", "title": None, "legend": {"orient": "top"},
                "scale": {"domain": ["blamed", "cleared"], "range": ["#c0392b", "#9aa5b1"]},
            },
        },
    }  # fmt: skip
    return chart("Bad paths", spec)


Mask = NDArray[np.bool_]

NOISY = 0.05
"""Share of paths that may be bad without a blamed component."""
CLEARED = 0.5
"""Least share of the components of bad paths that have a good path, too."""
MOSTLY = 0.5
"""Share of a component's paths that is bad, from which its good paths are doubtful."""
CHANCE = 1e-3
"""Expected number of components whose bad paths meet by chance, at which a component is blamed."""


def beyond_chance(seen: Incidence, bad: Bad, found: Sequence[Found]) -> tuple[Found, ...]:
    """Those whose bad paths do not meet by chance, at the rate of bad paths that nobody in `found` explains."""
    rate = _rate(seen, bad, found)
    on, hit = _paths_of(seen, bad)
    p = at_least(hit, on, np.full(len(on), rate))
    return tuple(one for one in found if p[one.component] * seen.components <= CHANCE)


def checked(seen: Incidence, bad: Bad, found: Sequence[Found]) -> tuple[Assumption, ...]:
    """The assumptions of a window with bad paths, in a fixed order."""
    return _noise(seen, bad, found), _sampling(seen, bad), _topology(seen, bad, found)


def undecidable(found: Sequence[Found], assumptions: Sequence[Assumption]) -> str | None:
    """Reason why neither a component nor nobody can be named, or None: the details of the assumptions that do not
    hold.

    Without good paths no component is told from another. The others leave what is blamed as it is.
    """
    failed = [one for one in assumptions if not one.holds and (one.name == "sampling" or not found)]
    return " ".join(one.detail for one in failed) or None


def _unexplained(bad: Bad, found: Sequence[Found]) -> Mask:
    """Bad paths that hold none of the components in `found`; shape (bad paths,)."""
    blamed = np.zeros(bad.seen.components, dtype=bool)
    blamed[[one.component for one in found]] = True
    free: Mask = np.bincount(bad.row[blamed[bad.column]], minlength=len(bad.failures)) == 0
    return free


def _rate(seen: Incidence, bad: Bad, found: Sequence[Found]) -> float:
    """Share of bad paths among those without a component in `found`."""
    over = int(seen.containing([one.component for one in found]).sum())
    return int(_unexplained(bad, found).sum()) / max(1, seen.paths - over)


def _paths_of(seen: Incidence, bad: Bad) -> tuple[Floats, Floats]:
    """Paths and bad paths of each component."""
    on = np.bincount(seen.column, minlength=seen.components).astype(np.float64)
    return on, np.round(bad.hit * on)


def _noise(seen: Incidence, bad: Bad, found: Sequence[Found]) -> Assumption:
    left = int(_unexplained(bad, found).sum())
    holds = left < LEAST_PATHS or left <= NOISY * seen.paths
    detail = f"{left:,} of {seen.paths:,} paths are bad without a blamed component; up to {percent(NOISY)} is usual."
    return Assumption("noise", holds, detail)


def _sampling(seen: Incidence, bad: Bad) -> Assumption:
    on, hit = _paths_of(seen, bad)
    struck = hit > 0
    cleared = int(np.count_nonzero(struck & (hit < on)))
    among = int(np.count_nonzero(struck))
    detail = f"{cleared:,} of {among:,} components of bad paths are on a good path, too."
    return Assumption("sampling", cleared >= CLEARED * among, detail)


def _topology(seen: Incidence, bad: Bad, found: Sequence[Found]) -> Assumption:
    left = _unexplained(bad, found)
    on, hit = _paths_of(seen, bad)
    open_ = np.bincount(bad.column[left[bad.row]], minlength=seen.components)
    rate = np.full(len(on), max(_rate(seen, bad, found), NOISY))
    doubtful = (open_ >= LEAST_PATHS) & (hit >= MOSTLY * on) & (hit < on)
    doubtful &= at_least(open_.astype(np.float64), on, rate) * seen.components <= CHANCE
    if not doubtful.any():
        return Assumption("topology", True, "No component has mostly unexplained bad paths.")
    worst = int(np.lexsort((seen.mark, -open_ * doubtful))[0])
    clear = int(on[worst] - hit[worst])
    detail = (
        f"{seen.names[worst]} is on {int(open_[worst]):,} bad paths that no blamed component explains and on {clear:,} "
        "good ones: it fails a part of its paths, or the rows name components that they do not pass."
    )
    return Assumption("topology", False, detail)
