"""A reduction read against the kinds: which field belongs to which, and what has to be grouped. Pure.

Both readers work in two steps. They first group by everything that the sums depend on (keys, slice, component
set, values to be told apart); that is the `Partials`, with one row per unit and path at most, whatever the
number of rows of telemetry. Then `sums.finish` takes witnesses out of the sets, groups again and counts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ingest.telemetry.kinds import KINDS, Field, Kind
from ingest.telemetry.windows.reductions import CountDistinct, CountWitnesses, Reduction, Sum

NUMERIC = ("count", "amount")
NAMED = ("name", "component", "text", "choice", "id", "labels", "measures")
NUMBERED = ("time", "count", "amount", "flag")


@dataclass(frozen=True, slots=True)
class Plan:
    """`owners` says for every field used whether it is of the rows (`row`) or of the joined state
    (`state`)."""

    reduction: Reduction
    kind: Kind
    state: Kind | None
    owners: dict[str, str]
    named: tuple[str, ...]
    numbered: tuple[str, ...]
    set_field: str | None
    distinct: tuple[str, ...]
    flags: tuple[str, ...]
    sums: tuple[str, ...]

    def field(self, name: str) -> Field:
        owner = self.kind if self.owners[name] == "row" else self.state
        assert owner is not None
        return owner.field(name)


def plan(reduction: Reduction) -> Plan:
    """Raises ValueError for a reduction that does not fit its kinds."""
    kind = _kind(reduction, reduction.kind)
    state = _joined(reduction, kind)
    if not kind.is_event and reduction.slice is not None:
        raise ValueError(
            f"reduction {reduction.name}: only what happens at one time has slices, not {kind.name}"
        )
    if (reduction.or_within or reduction.changes) and not kind.is_state:
        raise ValueError(
            f"reduction {reduction.name}: only a state comes into force, which {kind.name} is not"
        )
    if reduction.or_within and reduction.changes:
        raise ValueError(f"reduction {reduction.name}: it is either of states or of their changes")
    owners: dict[str, str] = {}

    def find(name: str, *types: str) -> str:
        for owner, one in (("row", kind), ("state", state)):
            if one is not None and one.has(name):
                if types and one.field(name).type not in types:
                    break
                owners[name] = owner
                return name
        raise ValueError(_no_field(reduction, [kind] if state is None else [kind, state], name, types))

    for name in reduction.group_by:
        find(name, *NAMED, *NUMBERED, "components")
    _check_each(reduction, kind)
    asked = reduction.aggregates.values()
    distinct = [
        find(one.field, *NAMED, *NUMBERED, "components") for one in asked if isinstance(one, CountDistinct)
    ]
    sums = [find(one.field, *NUMERIC) for one in asked if isinstance(one, Sum)]
    flags = [
        find(one.where, *NUMERIC)
        for one in asked
        if isinstance(one, CountDistinct | CountWitnesses) and one.where is not None
    ]
    if reduction.where is not None:
        find(reduction.where, *NUMERIC)
    _check_only(reduction, kind)
    set_field = _set_field(reduction, kind, state)
    if set_field is not None:
        find(set_field)
    chosen = Plan(reduction, kind, state, owners, (), (), None, (), (), ())
    others = [name for name in reduction.group_by if name != set_field]
    named = tuple(name for name in others if chosen.field(name).type in NAMED)
    numbered = tuple(name for name in others if name not in named)
    return Plan(
        reduction, kind, state, owners, named, numbered, set_field,
        tuple(dict.fromkeys(distinct)), tuple(dict.fromkeys(flags)), tuple(dict.fromkeys(sums)),
    )  # fmt: skip


def _kind(reduction: Reduction, name: str) -> Kind:
    if name not in KINDS:
        raise ValueError(
            f"reduction {reduction.name}: there is no telemetry kind {name}{_meant(name, KINDS)}"
        )
    return KINDS[name]


def _no_field(reduction: Reduction, kinds: Sequence[Kind], name: str, types: Collection[str]) -> str:
    """The sentence for a field that does not exist, or cannot be used so, with those that can."""
    fields = [field for kind in kinds for field in kind.fields if not types or field.type in types]
    names = [field.name for field in fields]
    wanted = f" of type {' or '.join(types)}" if types and len(types) <= len(NUMERIC) else ""
    where = " and ".join(kind.name for kind in kinds)
    found = next((kind.field(name).type for kind in kinds if kind.has(name)), None)
    if found is not None:
        return (
            f"reduction {reduction.name}: field {name} of {where} has the type {found}, which cannot be used there;"
            f" possible fields: {', '.join(names) or 'none'}"
        )
    return (
        f"reduction {reduction.name}: {where} has no field {name}{wanted}{_meant(name, names)};"
        f" there are {', '.join(names) or 'none'}"
    )


def _meant(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _joined(reduction: Reduction, kind: Kind) -> Kind | None:
    if reduction.as_of is None:
        return None
    state = _kind(reduction, reduction.as_of.kind)
    if (
        not state.is_state
        or state.key != reduction.as_of.key
        or not kind.has(reduction.as_of.key)
        or kind.is_state
    ):
        raise ValueError(f"reduction {reduction.name}: {kind.name} cannot be joined to {state.name}")
    return state


def _check_only(reduction: Reduction, kind: Kind) -> None:
    if reduction.only is None:
        return
    name, values = reduction.only
    if not kind.has(name) or kind.field(name).type != "choice":
        raise ValueError(f"reduction {reduction.name}: {kind.name} has no choice {name}")
    if not values or set(values) - set(kind.field(name).choices):
        raise ValueError(
            f"reduction {reduction.name}: {name} is {kind.field(name).either}, not {', '.join(values)}"
        )


def _check_each(reduction: Reduction, kind: Kind) -> None:
    if (each := reduction.each) is None:
        return
    if not kind.has(each.field) or kind.field(each.field).type != "numbers":
        raise ValueError(f"reduction {reduction.name}: {kind.name} has no list of numbers {each.field}")
    if reduction.as_of is not None:
        raise ValueError(f"reduction {reduction.name}: lists are not taken apart in a join")
    if list(each.edges) != sorted(set(each.edges)) or not all(map(math.isfinite, each.edges)):
        raise ValueError(f"reduction {reduction.name}: the edges do not ascend, or are not finite")
    if each.key in reduction.group_by:
        raise ValueError(f"reduction {reduction.name}: {each.key} is the key of each number")


def _set_field(reduction: Reduction, kind: Kind, state: Kind | None) -> str | None:
    """The component set that is grouped by, else the one that witnesses are counted in."""
    sets = [f.name for one in (kind, state) if one is not None for f in one.fields if f.type == "components"]
    grouped = [name for name in reduction.group_by if name in sets]
    if len(grouped) > 1:
        raise ValueError(f"reduction {reduction.name}: only one component set can be grouped by")
    if grouped:
        return grouped[0]
    if any(isinstance(one, CountWitnesses) for one in reduction.aggregates.values()):
        if not sets:
            raise ValueError(f"reduction {reduction.name}: there are no components to count witnesses in")
        return sets[0]
    return None
