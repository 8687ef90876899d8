"""Evidence of a verdict: the blamed, callers' view against probes', failures over time, complaints by observer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.panorama.analyzer import SLICE
from analyzers.builtin.panorama.episodes import Episode, component_of, explains
from analyzers.builtin.panorama.findings import Found
from analyzers.builtin.panorama.likelihood import OBSERVER, PLACE
from analyzers.builtin.panorama.observed import Observed
from analyzers.builtin.text import NATS, count, hundredths, moment, so_many
from analyzers.builtin.vega import SCHEMA, colour, time_axis
from analyzers.contract import Evidence, Window, chart, table, text
from ingest.log.types import rfc3339

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Json = dict[str, Any]

_ROWS = 30
_SERIES = 4
_POINTS = 120
_GRID = 40
_BAD_VIEW = 0.05
"""Share of negative observations from which a view counts as unhealthy in the table of quadrants."""

LEAST_SCALE = 0.1
"""The share of failed observations that is drawn in the strongest colour if none is larger."""

_NATURES = {"gray": "gray failure", "failing": "failing", "observer": "unreliable observer"}


def pieces(window: Window, found: Found) -> tuple[Evidence, ...]:
    out = [_blamed(window, found)] if found.findings else []
    out.append(_quadrants(found))
    if found.passing or found.alarms:
        out.append(_cleared(window, found))
    if found.findings:
        out += [_over_time(window, found), _grid(found)]
    return (*out, text("Method", _account(found)))


def _clock(window: Window, seen: Observed, step: int) -> str:
    return moment(window.start + step * seen.fold * SLICE)


def _blamed(window: Window, found: Found) -> Evidence:
    seen, rows = found.seen, []
    for one in found.findings:
        contexts = ", ".join(seen.contexts[context] for context in one.contexts)
        where = "all that callers use" if one.everywhere else contexts
        rows.append(
            (
                seen.components[one.component],
                _NATURES[one.nature],
                where if one.nature != "observer" else "",
                f"{one.witnesses} of {one.others}",
                one.main.failed,
                one.main.total,
                hundredths(one.main.failed / max(1, one.main.total)),
                _clock(window, seen, one.first),
                "still" if one.ongoing else _clock(window, seen, one.last + 1),
                round(one.surplus, 1),
                ", ".join(sorted(seen.components[other] for other in one.rivals)),
            )
        )
    columns = (
        "component", "what", "contexts", "witnesses", "failed", "observations", "failed (%)", "since", "until",
        "evidence (nats)", "ambiguous with",
    )  # fmt: skip
    note = (
        "Witnesses are observers that complain about a subject, or subjects that an observer complains about. "
        f"Evidence is what is above the bar. {NATS} Observations of unreliable observers are left out."
    )
    return table("Blamed", columns, tuple(rows), note)


def _believed(found: Found) -> Bools:
    """Cells whose observer is not blamed as unreliable."""
    blamed = [one.component for one in found.findings if one.nature == "observer"]
    return np.asarray(~np.isin(found.seen.observer, blamed))


def _shares(found: Found, cells: Bools) -> tuple[Ints, Ints]:
    """Failed and all observations of each subject over the given cells and the last look-back."""
    seen, at = found.seen, found.seen.steps - 1
    size = len(seen.components)
    failed = np.bincount(seen.subject[cells], found.counted.failed[cells, at], minlength=size)
    total = np.bincount(seen.subject[cells], found.counted.total[cells, at], minlength=size)
    return failed.astype(np.int64), total.astype(np.int64)


def _quadrants(found: Found) -> Evidence:
    """Each subject as callers and as probes see it at the end: differential observability."""
    seen, believed = found.seen, _believed(found)
    used, used_of = _shares(found, believed & ~found.probe)
    probed, probed_of = _shares(found, believed & found.probe)
    named = {one.component: one for one in found.findings if one.nature != "observer"}
    rows = []
    for subject in np.unique(seen.subject).tolist():
        views = [
            None if not all_of else bad / all_of
            for bad, all_of in ((used[subject], used_of[subject]), (probed[subject], probed_of[subject]))
        ]
        sick = [view is not None and view >= _BAD_VIEW for view in views]
        rows.append((seen.components[subject], *map(_shown, views), _quadrant(views, sick), subject in named))
    rows.sort(key=lambda row: (not row[4], -(row[1] or 0), -(row[2] or 0), row[0]))
    shown = [row[:4] for row in rows[: max(_ROWS, len(named))]]
    hidden = len(rows) - len(shown)
    note = (
        "Shares of negative observations in the last seconds, without unreliable observers; 5 % is unhealthy."
    )
    note += f" Not listed: {so_many(hidden, 'subject')} with fewer." if hidden else ""
    columns = ("subject", "callers: failed (%)", "probes: failed (%)", "callers against probes")
    return table("Callers' view against probes'", columns, tuple(shown), note)


def _shown(share: float | None) -> float | None:
    return None if share is None else hundredths(share)


def _quadrant(views: list[float | None], sick: list[bool]) -> str:
    if views[0] is None and views[1] is None:
        return "not seen"
    if views[1] is None:
        return "callers unhealthy, not probed" if sick[0] else "healthy, not probed"
    if sick[0]:
        return "both unhealthy: detected" if sick[1] else "callers unhealthy, probes healthy: gray"
    return "only probes unhealthy: over-alarm" if sick[1] else "both healthy"


def _cleared(window: Window, found: Found) -> Evidence:
    alarms = [(one, "only probes fail; its callers are well") for one in found.alarms]
    short = "too short, or too few witnesses"
    passing = [
        (one, _restart(found, one) or short)
        for one in sorted(found.passing, key=lambda one: (-one.surplus, one.first))
    ]
    rows = tuple(
        (
            *_observers(found, one),
            one.failed,
            one.total,
            _clock(window, found.seen, one.first),
            "still" if one.ongoing else _clock(window, found.seen, one.last + 1),
            round(one.surplus, 1),
            why,
        )
        for one, why in [*alarms, *passing][:_ROWS]
    )
    columns = (
        "component", "context", "failed", "observations", "since", "until", "evidence (nats)", "why it is cleared",
    )  # fmt: skip
    return table("Looked into and cleared", columns, rows, NATS)


def _restart(found: Found, one: Episode) -> str:
    stop = found.restarts.get(component_of(found.seen, one))
    if stop is None or one.sort == OBSERVER or not explains(found.seen, stop, one):
        return ""
    seconds = found.seen.fold * SLICE.total_seconds()
    back = "still gone" if stop.still else "there again"
    return f"gone altogether for {stop.steps * seconds:g} s, {back}: as in a restart"


def _observers(found: Found, one: Episode) -> tuple[str, str]:
    seen = found.seen
    if one.sort == PLACE:
        subject, context = int(seen.place_subject[one.subject]), int(seen.place_context[one.subject])
        return seen.components[subject], seen.contexts[context]
    return seen.components[one.subject], "as an observer" if one.sort == OBSERVER else "all that callers use"


def _over_time(window: Window, found: Found) -> Evidence:
    """Share of failed observations of the blamed, callers and probes apart, in equal parts of the window."""
    seen = found.seen
    fold = -(-seen.steps // _POINTS)
    values: list[Json] = []
    names = []
    for one in found.findings[:_SERIES]:
        name = seen.components[one.component]
        if one.nature == "observer":
            views = {f"{name} as an observer": seen.observer == one.component}
        else:
            about = (seen.subject == one.component) & _believed(found)
            views = {f"{name}: callers": about & ~found.probe, f"{name}: probes": about & found.probe}
        for label, cells in views.items():
            points = _points(window, found, cells, fold, label)
            values += points
            names += [label] if points else []
    spec = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 160,
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after", "tooltip": {"content": "data"}},
        "encoding": {
            "x": time_axis("time", "%H:%M:%S"),
            "y": {
                "field": "share",
                "type": "quantitative",
                "title": "share of observations that failed",
                "axis": {"format": "%"},
                "scale": {"domainMin": 0},
            },
            "color": colour("view", names),
        },
    }
    return chart("Observations of blamed components over time", spec)


def _points(window: Window, found: Found, cells: Any, fold: int, label: str) -> list[Json]:
    seen = found.seen
    bad = (seen.unhealthy + np.diff(found.counted.hung, axis=1, prepend=0).clip(0))[cells].sum(axis=0)
    total = bad + seen.healthy[cells].sum(axis=0)
    out = []
    for first in range(0, seen.steps, fold):
        inside = slice(first, first + fold)
        if total[inside].sum():
            share = round(float(bad[inside].sum() / total[inside].sum()), 4)
            at = window.start + first * seen.fold * SLICE
            out.append({"time": rfc3339(at), "view": label, "share": share})
    return out


def _grid(found: Found) -> Evidence:
    """Observers against subjects at the step at which the leading finding has most evidence."""
    seen, at = found.seen, found.findings[0].main.best
    failed, total = found.counted.failed[:, at], found.counted.total[:, at]
    rows, columns = _most(seen, seen.observer, failed), _most(seen, seen.subject, failed)
    inside = np.isin(seen.observer, rows) & np.isin(seen.subject, columns)
    pairs, pair = np.unique(
        seen.observer[inside] * len(seen.components) + seen.subject[inside], return_inverse=True
    )
    bad, all_of = np.bincount(pair, failed[inside]), np.bincount(pair, total[inside])
    values: list[Json] = [
        {
            "observer": seen.components[code // len(seen.components)],
            "subject": seen.components[code % len(seen.components)],
            "failed": int(bad[i]),
            "observations": int(all_of[i]),
            "share": round(float(bad[i] / all_of[i]), 4),
        }
        for i, code in enumerate(pairs.tolist())
        if all_of[i]
    ]
    x = {"field": "subject", "type": "nominal", "title": "subject", "axis": {"labelAngle": -40}}
    spec = {
        "$schema": SCHEMA,
        "width": {"step": 18},
        "height": {"step": 14},
        "data": {"values": values},
        "mark": {"type": "rect", "tooltip": {"content": "data"}},
        "encoding": {
            "x": x,
            "y": {"field": "observer", "type": "nominal", "title": "observer"},
            "color": {
                "field": "share",
                "type": "quantitative",
                "title": "share failed",
                # Not up to 100 %: a few failed calls in a hundred are what there is to see.
                "scale": {
                    "domain": [0, max(LEAST_SCALE, max((one["share"] for one in values), default=0.0))]
                },
                "legend": {"format": "%"},
            },
        },
        "config": {"view": {"stroke": None}},
    }
    note = "A column of colour is a subject that fails; a row of colour is an observer that complains about everyone."
    return chart("Complaints by observer and subject", spec, note)


def _most(seen: Observed, owner: Ints, failed: Ints) -> list[int]:
    """The owners with most failures, at most so many as are drawn."""
    weight = np.bincount(owner, failed, minlength=len(seen.components))
    order = sorted(np.unique(owner).tolist(), key=lambda one: (-weight[one], seen.components[one]))
    return order[:_GRID]


def _account(found: Found) -> str:
    seen, rules = found.seen, found.rules
    seconds = seen.fold * SLICE.total_seconds()
    probes = ", ".join(sorted(rules.probes & set(seen.contexts))) or "none seen"
    return (
        f"{count(seen.cells)} pairs of observer and subject in a context, in steps of {seconds:g} s; each step is "
        f"judged on the {rules.look_back * seconds:g} s up to it. A pair sees failures because its observer is "
        "unreliable, or because its subject fails, there or everywhere; the most probable set of culprits is "
        "named if it lasts for "
        f"{rules.patience * seconds:g} s and goes on, or lasted {rules.least * seconds:g} s. A process that is gone "
        f"altogether (no good answer in any context, no report of its own) is given the {rules.restart * seconds:g} s "
        "of a restart, once. What is pending for more "
        f"than {rules.limit * seconds:g} s counts as failed. Probe contexts: {probes}. After Panorama (Huang et al., "
        "OSDI 2018) and differential observability (Huang et al., HotOS 2017)."
    )
