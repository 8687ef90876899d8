"""What else an incident could be about, beside what its verdict names: nearest to the verdict first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.evidence import Cleared
from incidents.queries import Incident


@dataclass(frozen=True, slots=True)
class Alternative:
    """A component, how it stands (`not told apart`, `blamed instead`, `also blamed`, `cleared`), and what says so.

    `number` is its own incident, if it has one.
    """

    component: str
    standing: str
    score: float | None
    why: str
    number: int | None = None


def alternatives(
    state: Incident, suspects: Iterable[Mapping[str, Any]], looked_into: Sequence[Cleared]
) -> list[Alternative]:
    """Each component once, at the place that is nearest to blame."""
    found: dict[str, Alternative] = {}
    for name in state.ambiguous_with:
        found.setdefault(name, Alternative(name, "indistinguishable", None, "the data supports both equally"))
    for one in state.opinions.values():
        if one.says == "blames_other" and one.component is not None:
            says = f"{one.analyzer} suspects it instead"
            found.setdefault(one.component, Alternative(one.component, "suspected instead", one.score, says))
    for suspect in suspects:
        name = suspect["component"]
        if not suspect["own"]:
            also = Alternative(
                name, "also suspected", suspect["score"], "separate failure", suspect["number"]
            )
            found.setdefault(name, also)
    for clear in looked_into:
        found.setdefault(clear.component, Alternative(clear.component, "cleared", None, _cleared(clear)))
    found.pop(state.component or "", None)
    return list(found.values())


def _cleared(one: Cleared) -> str:
    return one.why or ", ".join(f"{name} {_figure(value)}" for name, value in one.figures)


def _figure(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
