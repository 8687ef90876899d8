"""Filters and orders of incident lists: data, read as SQL and as a predicate on a folded state.

The live list is filtered by Postgres, the list of a past moment in memory; a test holds both equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Literal, cast
from uuid import UUID

from django.db.models import Q

from incidents.domain.search import matches_glob
from incidents.domain.values import SEVERITIES, STATES, InvalidValueError, check_text, parse_rfc3339

Operator = Literal[
    "in",
    "contains",
    "min",
    "max",
    "above",
    "below",
    "after",
    "before",
    "search",
    "glob",
    "label",
    "filled",
    "grouped",
]
Reader = Callable[[str, str], Any]


_SEARCHED = ("title", "component", "verdict")
_LOOKUPS = {
    "contains": "icontains",
    "min": "gte",
    "max": "lte",
    "after": "gt",
    "before": "lt",
    "above": "gt",
    "below": "lt",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """`value` is a tuple for `in` (None in it: where the field is not set) and `glob` (patterns), a name and a value or
    None for `label`, True for `filled`, the name of a group or None for `grouped`, else a single value. `negated` lets
    through what it would hold back.
    """

    field: str
    operator: Operator
    value: Any
    negated: bool = False

    def q(self) -> Q:
        return ~self._q() if self.negated else self._q()

    def _q(self) -> Q:
        if self.operator == "in":
            named = Q(**{f"{self.field}__in": [v for v in self.value if v is not None]})
            return named | Q(**{f"{self.field}__isnull": True}) if None in self.value else named
        if self.operator == "search":
            return (
                Q(title__icontains=self.value)
                | Q(component__icontains=self.value)
                | Q(verdict__icontains=self.value)
            )
        if self.operator == "glob":
            globs = [_glob_q(self.field, pattern) for pattern in self.value]
            return reduce(or_, globs)
        if self.operator == "label":
            name, value = self.value
            return Q(labels__has_key=name) if value is None else Q(labels__contains={name: value})
        if self.operator == "filled":
            return ~Q(**{self.field: []})
        if self.operator == "grouped":
            return grouped_q(self.field, self.value)
        return Q(**{f"{self.field}__{_LOOKUPS[self.operator]}": self.value})

    def matches(self, item: Mapping[str, Any]) -> bool:
        return self._matches(item) != self.negated

    def _matches(self, item: Mapping[str, Any]) -> bool:
        if self.operator == "label":
            name, value = self.value
            return name in item["labels"] and value in (None, item["labels"][name])
        if self.operator == "filled":
            return bool(item[self.field])
        if self.operator == "grouped":
            return bool(group_of(self.field, item) == self.value)
        if self.operator == "search":
            return any(_contains(item[name], self.value) for name in _SEARCHED)
        found = item[self.field]
        if self.operator == "in":
            return found in self.value
        if self.operator == "glob":
            return any(_globbed(pattern, found) for pattern in self.value)
        return found is not None and _COMPARE[self.operator](found, self.value)


def _glob_q(field: str, pattern: str | None) -> Q:
    if pattern is None:
        return Q(**{f"{field}__isnull": True})
    if "*" not in pattern:
        return Q(**{f"{field}__istartswith": pattern})
    return Q(**{f"{field}__iregex": "^" + ".*".join(re.escape(piece) for piece in pattern.split("*")) + "$"})


def _contains(found: str | None, part: str) -> bool:
    return found is not None and part.lower() in found.lower()


def _globbed(pattern: str | None, found: str | None) -> bool:
    if pattern is None or found is None:
        return pattern is found
    return matches_glob(pattern, found)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "contains": _contains,
    "min": lambda found, value: found >= value,
    "max": lambda found, value: found <= value,
    "after": lambda found, value: found > value,
    "before": lambda found, value: found < value,
    "above": lambda found, value: found > value,
    "below": lambda found, value: found < value,
}


def _text(name: str, text: str) -> str:
    return check_text(name, text, 1000)


def _optional(name: str, text: str) -> str | None:
    return _text(name, text) or None


def _one_of(choices: Sequence[str]) -> Reader:
    def read(name: str, text: str) -> str:
        if text not in choices:
            raise InvalidValueError(name, f"must be one of {', '.join(choices)}")
        return text

    return read


def _integer(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise InvalidValueError(name, "must be a whole number")
    return int(text)


def _optional_integer(name: str, text: str) -> int | None:
    return _integer(name, text) if text else None


def _share(name: str, text: str) -> float:
    if not re.fullmatch(r"[0-9]{0,3}\.?[0-9]{1,15}", text):
        raise InvalidValueError(name, "must be a number such as 0.9")
    return float(text)


def _seconds(name: str, text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", text):
        raise InvalidValueError(name, "must be a number of seconds")
    return float(text)


def _uuid(name: str, text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise InvalidValueError(name, "must be a UUID") from None


def _time(name: str, text: str) -> datetime:
    try:
        return parse_rfc3339(text.replace(" ", "+"))  # an offset's plus that was not percent-encoded
    except (ValueError, OverflowError):
        raise InvalidValueError(
            name, "must be an RFC 3339 time with an offset, such as 2026-11-21T10:00:00Z"
        ) from None


def _position(name: str, text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{36}", text):
        raise InvalidValueError(name, "must be a log position, as found in `position`")
    return text


def _number_of_url(name: str, text: str) -> int:
    return _integer(name, text.rstrip("/").rpartition("/")[2])


PARAMETERS: dict[str, tuple[str, Operator, Reader, str]] = {
    "id": ("id", "in", _uuid, "id of the incident"),
    "number": ("number", "in", _integer, "number of the incident"),
    "url": ("number", "in", _number_of_url, "address of the incident in the console"),
    "q": ("title", "search", _text, "text that title, component or verdict contains, in any case"),
    "title": ("title", "contains", _text, "text that the title contains, in any case"),
    "verdict": ("verdict", "contains", _text, "text that the verdict contains, in any case"),
    "state": ("state", "in", _one_of(STATES), f"one of {', '.join(STATES)}"),
    "severity": ("severity", "in", _one_of(SEVERITIES), f"one of {', '.join(SEVERITIES)}"),
    "component": ("component", "in", _optional, "component, exactly; empty: none named"),
    "team": ("team", "in", _text, "slug of the team"),
    "service": ("service", "in", _optional, "slug of the service; empty: none"),
    "policy": ("policy", "in", _optional, "slug of the escalation policy; empty: none"),
    "owner": ("owner", "in", _optional, "login of the owner; empty: unassigned"),
    "dedup_key": ("dedup_key", "in", _text, "dedup key, exactly"),
    "confirmed_cause": ("confirmed_cause", "in", _optional, "confirmed cause, exactly; empty: none yet"),
    "confidence_min": ("confidence", "min", _share, "least confidence, 0 to 1"),
    "confidence_max": ("confidence", "max", _share, "greatest confidence, 0 to 1"),
    "alerts_min": ("alerts", "min", _integer, "least number of alerts"),
    "alerts_max": ("alerts", "max", _integer, "greatest number of alerts"),
    "hops_min": ("hops", "min", _integer, "least number of hand-overs"),
    "hops_max": ("hops", "max", _integer, "greatest number of hand-overs"),
    "rejections_min": ("rejections", "min", _integer, "least number of rejected hand-overs"),
    "rejections_max": ("rejections", "max", _integer, "greatest number of rejected hand-overs"),
    "handed_from": (
        "handed_from",
        "in",
        _optional,
        "team whose hand-over waits to be accepted; empty: none waits",
    ),
    "seconds_to_team_min": ("seconds_to_team", "min", _seconds, "least time to the team that resolved it"),
    "seconds_to_team_max": ("seconds_to_team", "max", _seconds, "longest time to the team that resolved it"),
    "opened_after": ("opened_at", "after", _time, "opened later than"),
    "opened_before": ("opened_at", "before", _time, "opened earlier than"),
    "acknowledged_after": ("acknowledged_at", "after", _time, "acknowledged later than"),
    "acknowledged_before": ("acknowledged_at", "before", _time, "acknowledged earlier than"),
    "resolved_after": ("resolved_at", "after", _time, "resolved later than"),
    "resolved_before": ("resolved_at", "before", _time, "resolved earlier than"),
    "snoozed_until_after": ("snoozed_until", "after", _time, "snoozed until later than"),
    "snoozed_until_before": ("snoozed_until", "before", _time, "snoozed until earlier than"),
    "merged_into": (
        "merged_number",
        "in",
        _optional_integer,
        "number of the incident that it was merged into; empty: not merged",
    ),
    "position_after": ("position", "after", _position, "changed after this log position"),
}
"""Query parameter: field, operator, how its text is read, what it means. `in` parameters may be repeated."""


def parse_filters(given: Mapping[str, Sequence[str]]) -> list[Filter]:
    """Filters from query parameters. Raises InvalidValueError for an unknown parameter or a value that is none."""
    filters = []
    for name, texts in given.items():
        if name not in PARAMETERS:
            raise InvalidValueError(name[:100], "is not a filter of incidents")
        field, operator, read, _ = PARAMETERS[name]
        values = tuple(read(name, text) for text in texts)
        if operator == "in":
            filters.append(Filter(field, operator, values))
        else:
            filters += [Filter(field, operator, value) for value in values]
    return filters


# Groups of a list
# ----------------------------------------------------------------------------------------------------------
GROUPINGS = ("team", "component", "cause")
"""Groupings of a list. Its cause is the confirmed one, else the component that analyzers name, else what its alerts
are called, else its title."""
_ALERT = "alertname"


def grouped_sql(grouping: str) -> str:
    """The expression over a row of `incident` that `grouped_q` and `group_of` agree with."""
    if grouping != "cause":
        return grouping
    return f"COALESCE(confirmed_cause, CASE WHEN analyzer IS NOT NULL THEN component END, labels->>'{_ALERT}', title)"


def grouped_q(grouping: str, value: str | None) -> Q:
    if grouping != "cause":
        return Q(**{f"{grouping}__isnull": True}) if value is None else Q(**{grouping: value})
    unnamed = Q(confirmed_cause__isnull=True) & (Q(analyzer__isnull=True) | Q(component__isnull=True))
    return (
        Q(confirmed_cause=value)
        | Q(confirmed_cause__isnull=True, analyzer__isnull=False, component=value)
        | (unnamed & Q(**{f"labels__{_ALERT}": value}))
        | (unnamed & ~Q(labels__has_key=_ALERT) & Q(title=value))
    )


def group_of(grouping: str, item: Mapping[str, Any]) -> str | None:
    if grouping != "cause":
        return cast("str | None", item[grouping])
    named = item["confirmed_cause"] or (item["component"] if item["analyzer"] is not None else None)
    return cast("str | None", named or item["labels"].get(_ALERT) or item["title"])


ORDERS: dict[str, tuple[tuple[str, bool], ...]] = {
    "newest": (("number", True),),
    "oldest": (("number", False),),
    "severity": (("severity_rank", False), ("quiet", False), ("number", True)),
    "updated": (("position", True),),
    "hops": (("hops", True), ("number", True)),
}
"""Order: its columns, and whether each descends. The last is unique, so that a page has an edge."""
