"""An incident as words that can be compared with those of others: title, component, labels and cause. Pure.

Numbers in names say which one, not what: `tor/dc1-t12` is told as itself, as what it is without its numbers, and as its
kind, so that its own past weighs most and that of its kind still counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from incidents.domain.values import is_class

MOST_LABELS: Final = 60
LONGEST: Final = 2_000
"""Characters of a title that are read."""
_WORD: Final = re.compile(r"[^\W_]+")
_DIGITS: Final = re.compile(r"[0-9]+")
_GRAM: Final = 4
"""Characters of the pieces of words that are compared too: "storage" and "storages" share most of theirs."""


@dataclass(frozen=True, slots=True)
class Described:
    """`cause` is the confirmed one of a past incident, what is blamed of an open one; None where nothing is."""

    title: str
    component: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    cause: str | None = None


def words(incident: Described) -> list[str]:
    """Words of the incident, each with its field. The order is that of the incident; words may come twice."""
    title = _WORD.findall(incident.title[:LONGEST].lower())
    found = [f"word:{_DIGITS.sub('0', one)}" for one in title]
    found += [f"piece:{piece}" for one in title for piece in _pieces(one)]
    if incident.component is not None:
        found += _named("component", incident.component)
    if incident.cause is not None and "/" in incident.cause:
        found += _named("cause", incident.cause)
    elif incident.cause is not None and is_class(incident.cause):
        found.append(f"cause:{incident.cause}")
    for name, value in sorted(incident.labels.items())[:MOST_LABELS]:
        found.append(f"label:{name}={value[:200].lower()}")
    return found


def _named(what: str, name: str) -> list[str]:
    """A component by its name, by its name without numbers, by its kind."""
    name = name[:LONGEST].lower()
    return [f"{what}:{name}", f"{what}~{_DIGITS.sub('0', name)}", f"{what}^{name.partition('/')[0]}"]


def _pieces(word: str) -> list[str]:
    plain = _DIGITS.sub("", word)
    return [plain[at : at + _GRAM] for at in range(len(plain) - _GRAM + 1)] if len(plain) > _GRAM else []
