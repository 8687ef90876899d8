"""SkeletonHunter on one window: its phases, the assumptions behind them, and the verdict.

- `sampling`: probes of a pair are frequent enough to be judged by their times.
- `noise`: what passes no blamed component is answered in time. Congestion everywhere is not.
- `history`: there is a history to compare round-trip times with; losses need none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from analyzers.builtin.skeletonhunter import evidence
from analyzers.builtin.skeletonhunter.detect import LOOK_BACK, NEIGHBOURS, Anomalies, detect
from analyzers.builtin.skeletonhunter.localise import Located, Named, localise
from analyzers.builtin.skeletonhunter.observed import P50, Observed, observe
from analyzers.builtin.skeletonhunter.skeleton import Skeleton, infer, jobs
from analyzers.builtin.skeletonhunter.verdict import suspect
from analyzers.builtin.text import count, percent, so_many
from analyzers.contract import Assumption, Evidence, Params, Suspect, Verdict, Window, inconclusive, quiet

MOST_SUSPECTS = 50
LATE = 0.15
"""Share of late answers on paths without a blamed component up to which a network is not congested everywhere."""
UNEXPLAINED, CHANCE = 3, 0.02
"""Anomalous pairs that nobody explains, from which silence would be wrong: a number, and a share of all pairs, as some
pairs of many are late in two slices by chance."""


def analyze(window: Window, params: Params) -> Verdict:
    phase = str(params["phase"])
    skeletons = _skeletons(window, params) if phase in ("skeleton", "all") and _has(window, "traffic") else []
    if phase != "skeleton" and _has(window, "losses"):
        verdict = _network(window, params, phase)
    elif not skeletons:
        return inconclusive(
            "no probes in this window" if phase != "skeleton" else "no traffic of network cards"
        )
    elif any(one.stage is not None for one in skeletons):
        verdict = quiet()
    else:
        verdict = inconclusive(f"no skeleton of {skeletons[0].series.job}: {skeletons[0].reason}")
    measures = {**verdict.measures, **evidence.degrees(skeletons)}
    return replace(verdict, measures=measures, evidence=(*verdict.evidence, *evidence.skeletons(skeletons)))


def _has(window: Window, table: str) -> bool:
    return table in window.sums and window.sums[table].rows > 0


def _skeletons(window: Window, params: Params) -> list[Skeleton]:
    """The skeleton of each job, the one with most cards first."""
    found = [infer(one, params) for one in jobs(window)]
    return sorted(found, key=lambda one: (-one.series.tx.shape[0] * one.series.tx.shape[1], one.series.job))


def _network(window: Window, params: Params, phase: str) -> Verdict:
    seen = observe(window)
    if window.input == "all" and not seen.endpoints:
        return inconclusive("no endpoint registered: send rows of `endpoint`, or ask for the input `probe`")
    found = detect(seen, params)
    figures = _measures(seen, found)
    if phase == "detect":
        return _detected(window, seen, found, figures, params)
    located = localise(window, seen, found, params)
    located = replace(located, named=tuple(_believed(located)))
    assumptions = (_history(seen), _sampling(seen, params), _noise(located))
    margin = float(params["margin"])
    shown = evidence.pieces(window, seen, found, located, margin)
    suspects = [suspect(window, one, margin) for one in located.named]
    if suspects:
        ranked = tuple(sorted(suspects, key=_rank))[:MOST_SUSPECTS]
        return Verdict("named", ranked, None, figures, shown, assumptions)
    doubt = _doubt(seen, located)
    if doubt:
        return Verdict("inconclusive", (), doubt, figures, shown, assumptions)
    return quiet(figures, shown, assumptions)


def _rank(one: Suspect) -> tuple[float, float]:
    return -(one.score or 0.0), 1.0 if one.p_value is None else one.p_value


def _believed(located: Located) -> list[Named]:
    """Suspects by latency count only if most of the rest of the network is in time."""
    votes = located.votes.get("latency")
    congested = votes is not None and votes.rest > LATE
    return [one for one in located.named if not (congested and one.indicator == "latency")]


def _detected(
    window: Window, seen: Observed, found: Anomalies, figures: dict[str, Any], params: Params
) -> Verdict:
    """The anomalous pairs alone: nobody is named."""
    lossy = (seen.lost * seen.judged)[:, seen.now].any(axis=1)
    pairs = np.flatnonzero(found.pairs | lossy)
    if not len(pairs):
        return quiet(figures)
    shown: tuple[Evidence, ...] = evidence.pieces(
        window, seen, found, Located((), {}, tuple(pairs.tolist())), float(params["margin"])
    )
    reason = f"{so_many(len(pairs), 'pair')} of endpoints anomalous; localisation is another phase"
    return Verdict("inconclusive", (), reason, figures, shown)


def _measures(seen: Observed, found: Anomalies) -> dict[str, Any]:
    now = seen.now
    median = seen.features[:, now, P50]
    median = median[np.isfinite(median)]
    sent = int((seen.sent * seen.judged)[:, now].sum())
    return {
        "endpoints": len({end for pair in seen.pairs for end in pair[:2]}),
        "pairs": len(seen.pairs),
        "unregistered_pairs": seen.unregistered,
        "probes": sent,
        "lost": int((seen.lost * seen.judged)[:, now].sum()),
        "p50_us": round(float(np.exp(np.median(median))), 2) if len(median) else None,
        "late_pairs": int(found.pairs.sum()),
    }


def _history(seen: Observed) -> Assumption:
    ready = int(np.count_nonzero(seen.answers[:, : seen.first].sum(axis=0)))
    note = f"{so_many(ready, 'slice')} of 30 s before the window; {NEIGHBOURS + 1} to {LOOK_BACK} are compared with."
    return Assumption("history", ready > NEIGHBOURS, note)


def _sampling(seen: Observed, params: Params) -> Assumption:
    """Whether the answers of most pairs and slices are enough; a slice in which all is lost has no say."""
    least = int(params["min_answers"])
    probed = seen.sent[:, seen.now] > 0
    tried = seen.sent[:, seen.now] >= max(least, 1)
    share = float(tried.sum()) / max(int(probed.sum()), 1)
    note = f"{percent(share)} of the slices of a pair have {least} probes or more."
    return Assumption("sampling", share >= 0.5, note)


def _noise(located: Located) -> Assumption:
    votes = located.votes.get("latency")
    if votes is None:
        return Assumption("noise", True, "No pair is answered later than usual.")
    late = percent(votes.rest)
    note = f"{late} of the answers on paths without a suspect are late; up to {percent(LATE)} is usual."
    return Assumption("noise", votes.rest <= LATE, note)


def _doubt(seen: Observed, located: Located) -> str | None:
    """Reason why "all is well" cannot be said although nobody is named."""
    sent, lost = ((one * seen.judged)[:, seen.now].sum() for one in (seen.sent, seen.lost))
    if not sent:
        return f"no pair of registered endpoints in this window; {so_many(seen.unregistered, 'pair')} not registered"
    if lost >= 0.5 * sent:
        return f"{percent(float(lost / sent))} of {count(int(sent))} probes lost and no component explains it"
    votes = located.votes.get("latency")
    if votes is not None and votes.rest > LATE:
        return (
            f"{percent(votes.rest)} of the answers are late on paths without a suspect: congestion everywhere, or a "
            "cause that all paths share"
        )
    if len(located.unexplained) >= max(UNEXPLAINED, CHANCE * len(seen.pairs)):
        return f"{so_many(len(located.unexplained), 'pair')} of endpoints late and no component explains it"
    return None
