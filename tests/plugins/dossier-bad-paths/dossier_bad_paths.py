"""Names the component nearly all of whose paths fail more than usual."""

import numpy as np
from scipy.special import bdtrc, pdtrc

from analyzers import contract

PATHS = contract.Reduction(
    "paths",
    kind="path_outcome",
    group_by=("components",),
    aggregates={"attempts": contract.Sum("attempts"), "failures": contract.Sum("failures")},
)


def analyze(window: contract.Window, params: contract.Params) -> contract.Verdict:
    now, past = window.sums["paths"], [one.sums["paths"] for one in window.history if one.sums["paths"].rows]
    if len(past) < 3 or not now.rows:
        return contract.inconclusive("At least three earlier windows and one path are needed.")
    # Medians: a failure in fewer than half of the earlier windows changes nothing.
    rate = float(np.median([one.values["failures"].sum() / one.values["attempts"].sum() for one in past]))
    usual = max(0.05, float(np.median([is_bad(one, rate).mean() for one in past])))

    paths, bad = now.keys["components"], is_bad(now, rate)
    assert isinstance(paths, contract.Paths)
    names, row = paths.names, np.repeat(np.arange(len(paths)), np.diff(paths.indptr))
    count = np.bincount(paths.indices, minlength=len(names))
    failing = np.bincount(paths.indices, bad[row], minlength=len(names))
    chance = np.where(failing > 0, bdtrc(np.maximum(failing - 1, 0), count, usual), 1.0) * len(names)
    chance[failing < float(params["least_share"]) * count] = 1.0
    if chance.min() > float(params["most_chance"]):
        return contract.quiet({"least_chance": float(chance.min()), "usual": usual})

    order = np.argsort(chance, kind="stable")
    first, *others = sorted(names[j] for j in order if chance[j] <= chance.min() * 1.000001)
    summary = f"{int(failing[order[0]])} of {count[order[0]]} paths through {first} fail more than usual."
    suspect = contract.Suspect(first, None, summary, ambiguous_with=tuple(others))
    rows = tuple((names[j], int(failing[j]), int(count[j]), float(chance[j])) for j in order[:10])
    shown = contract.table("Failing paths", ("component", "failing", "paths", "chance"), rows)
    return contract.Verdict("named", (suspect,), evidence=(shown,))


def is_bad(sums: contract.Sums, rate: float) -> np.ndarray:
    """Whether each path fails more often than a failure rate explains; shape (paths,)."""
    failures, expected = sums.values["failures"], rate * sums.values["attempts"]
    return (failures > 0) & (pdtrc(np.maximum(failures - 1, 0), expected) < 0.05)


ANALYZER = contract.Analyzer(
    name="bad_paths",
    version="0.1.0",
    title="Names the component nearly all of whose paths fail more than usual",
    inputs=(contract.Input("path_outcome", (PATHS,)),),
    params=(
        contract.Param("least_share", 0.8, "least share of a component's paths that fail", low=0, high=1),
        contract.Param("most_chance", 0.001, "largest probability of naming one by chance", low=0, high=1),
    ),
    analyze=analyze,
    history=6,
)
