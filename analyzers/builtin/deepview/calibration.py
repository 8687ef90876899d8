"""The score: how often a component with that much evidence really was at fault, in simulations.

`SCORES` is the one place where the calibration lives. It was made by `python -m tests.benchmarks.accuracy
--calibrate --trials 3000` on tuning seeds (below `FIRST_REPORTING_SEED` of the simulator): windows of preset
M, half of them healthy, the others faint, gray or several faults at once, with independent and with clumped
backgrounds, the bar lowered by 3 nats so that doubtful components are seen too. Each pair is the middle of a
step of evidence over the threshold at margin 0, in nats, and the share of suspects in that step that were
truly at fault (made monotone); between the pairs the log-odds are interpolated. Like every such figure it
holds for a world with as many faults as the simulated one: half of all windows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from analyzers.builtin.stats.scores import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.3),
    (-1.5, 0.484),
    (-0.5, 0.691),
    (0.75, 0.952),
    (2.25, 0.952),
    (4.5, 0.988),
    (9.0, 0.994),
    (18.5, 0.997),
    (25.0, 0.999),
)


ATTEMPTS: tuple[tuple[float, float], ...] = (
    (-2.5, 0.3),
    (0.0, 0.6),
    (1.5, 0.75),
    (4.5, 0.9),
    (9.0, 0.95),
    (18.0, 0.97),
    (37.0, 0.98),
    (75.0, 0.99),
)
"""The same where nothing says on which hosts units or attempts failed: what fails together counts as often as it fails,
and evidence is worth less. From regions whose rates are uneven over components, paths and time
(`tests.benchmarks.deepview_regions`)."""

CAPS: Mapping[str, float] = MappingProxyType(
    {"history": 0.97, "sampling": 0.85, "noise": 0.85, "topology": 0.85}
)
"""The most that is stated where an assumption does not hold."""

FOLLOWING = 0.5
"""The most that is stated of a suspect that does not lead where topology or noise is not as assumed: it may be what the
leading one leaves unexplained."""


def probability(
    surplus: float, unmet: Collection[str] = (), *, leading: bool = True, hosts: bool = True
) -> float:
    """The probability that a suspect is at fault, given its evidence above the threshold and the assumptions that do
    not hold; `hosts` says whether hosts were told.

    The figure is for the whole entry, the suspect or one of those that the data cannot tell apart from it:
    nothing in the data says which of them it is.
    """
    most = min((CAPS[name] for name in unmet), default=1.0)
    if not leading and not {"topology", "noise"}.isdisjoint(unmet):
        most = min(most, FOLLOWING)
    return min(probability_at(SCORES if hosts else ATTEMPTS, surplus), most)
