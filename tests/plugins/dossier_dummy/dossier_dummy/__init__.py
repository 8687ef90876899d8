"""Names the component that fails the largest share of its attempts, if it stands out: a third-party analyzer."""

import numpy as np

from analyzers.contract import (
    Analyzer,
    Input,
    Param,
    Params,
    Paths,
    Reduction,
    Sum,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
    table,
)

OUTCOMES = Reduction(
    "outcomes",
    kind="path_outcome",
    group_by=("components",),
    aggregates={"attempts": Sum("attempts"), "failures": Sum("failures")},
)


def analyze(window: Window, params: Params) -> Verdict:
    sums = window.sums["outcomes"]
    paths = sums.keys["components"]
    assert isinstance(paths, Paths)
    row = np.repeat(np.arange(len(paths)), np.diff(paths.indptr))
    tried = np.bincount(paths.indices, sums.values["attempts"][row], minlength=len(paths.names))
    failed = np.bincount(paths.indices, sums.values["failures"][row], minlength=len(paths.names))
    if not tried.sum():
        return inconclusive("Nothing was tried.")
    share = failed / np.maximum(tried, 1)
    worst = int(np.argmax(share))
    if share[worst] < max(float(params["least"]), 2 * float(np.median(share))):
        return quiet({"worst_share": float(share[worst])})
    name = paths.names[worst]
    rows = tuple(
        (paths.names[j], int(failed[j]), float(share[j])) for j in np.argsort(-share, kind="stable")[:5]
    )
    summary = f"{name} fails {share[worst]:.1%} of its attempts, more than any other component."
    evidence = (table("Shares of failed attempts", ("component", "failed", "share"), rows),)
    return Verdict("named", (Suspect(name, None, summary),), evidence=evidence)


ANALYZER = Analyzer(
    name="worst_share",
    version="0.1.0",
    title="Names the component that fails the largest share of its attempts",
    inputs=(Input("path_outcome", (OUTCOMES,)),),
    params=(Param("least", 0.05, "least share worth naming", low=0, high=1),),
    analyze=analyze,
)
