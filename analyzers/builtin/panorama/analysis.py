"""Panorama (Huang et al., OSDI 2018): what processes see of each other, and gray failures in between."""

from __future__ import annotations

from analyzers.builtin.panorama import published_verdict, weighted_verdict
from analyzers.builtin.panorama.findings import find
from analyzers.builtin.panorama.observed import Observed, observe
from analyzers.contract import Params, Verdict, Window, inconclusive


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window)
    measures = measures_of(seen)
    if not seen.cells:
        return inconclusive("There are no observations in this window.", measures)
    if params["method"] == "paper":
        return published_verdict.verdict_of(window, seen, params, measures)
    return weighted_verdict.verdict_of(window, find(seen, window.history, params), measures)


def measures_of(seen: Observed) -> dict[str, int]:
    return {
        "observers": len(set(seen.observer.tolist())),
        "subjects": len(set(seen.subject.tolist())),
        "contexts": len(seen.contexts),
        "cells": seen.cells,
        "observations": int(seen.healthy.sum() + seen.unhealthy.sum() + seen.pending.sum()),
        "unhealthy": int(seen.unhealthy.sum()),
    }
