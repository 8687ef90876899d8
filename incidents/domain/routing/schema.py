"""Rules of routing as plain values, as the API, files and tables hold them: read, checked and written. Pure.

{"name": "storage-night", "parent": "storage", "order": 1, "pattern": "storage_cluster/*",
 "when": {"labels": ['env="prod"'], "severities": ["critical"], "hours": ["mon-fri 18:00-08:00"], "zone": "UTC"},
 "team": "storage", "service": null, "severity": "error", "policy": "storage-night",
 "grouping": {"by": ["rack"], "window_seconds": 3600}, "follow_suggestion": null}
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from incidents.domain.routing.rules import (
    DEEPEST,
    EACH_ALONE,
    MOST_RULES,
    Conditions,
    Grouping,
    Rule,
    Service,
    Team,
    hours_from,
    read_matchers,
)
from incidents.domain.suppression.rules import Matcher, each_matcher
from incidents.domain.values import (
    SEVERITIES,
    InvalidValueError,
    Severity,
    check_line,
    check_object,
    check_severity,
)

SLUG = re.compile(r"[A-Za-z0-9_-]{1,60}")
RESERVED = ("explain", "replay")
PATTERN_LIMIT = 200
MOST_LABELS = 10
SHORTEST_WINDOW, LONGEST_WINDOW = 60, 30 * 24 * 3600
"""Seconds."""
WHEN = ("labels", "service", "analyzer", "integration", "severities", "min_confidence", "hours", "zone")
FIELDS = (
    "name",
    "parent",
    "order",
    "pattern",
    "when",
    "team",
    "service",
    "severity",
    "policy",
    "grouping",
    "follow_suggestion",
)


@dataclass(frozen=True, slots=True)
class Written:
    """A rule as it stands in a list, with the name of the one above it (None: first level)."""

    rule: Rule
    parent: str | None
    order: int


def conditions_from(pattern: object, when: object) -> Conditions:
    """Raises InvalidValueError."""
    written = check_object("when", when, WHEN)
    given = {name: value for name, value in written.items() if value not in (None, "", [])}
    confidence = given.get("min_confidence")
    zone = given.get("zone", "UTC")
    if "zone" in given and "hours" not in given:
        raise InvalidValueError("when.zone", "is the time zone of `hours`; give hours, too")
    return Conditions(
        pattern=check_pattern("pattern", pattern, blank=True),
        labels=_labels(given.get("labels", [])),
        service=_text(given, "service"),
        analyzer=_text(given, "analyzer"),
        integration=_text(given, "integration"),
        severities=_severities(given.get("severities", [])),
        min_confidence=None if confidence is None else _share("when.min_confidence", confidence),
        hours=hours_from("when.hours", _list("when.hours", given["hours"]), zone)
        if "hours" in given
        else None,
    )


def when_json(conditions: Conditions) -> dict[str, Any]:
    """All but the pattern, and only what is asked."""
    hours = conditions.hours
    fields: dict[str, Any] = {
        "labels": [str(matcher) for matcher in conditions.labels],
        "service": conditions.service,
        "analyzer": conditions.analyzer,
        "integration": conditions.integration,
        "severities": list(conditions.severities),
        "min_confidence": conditions.min_confidence,
        "hours": [] if hours is None else [span.text for span in hours.spans],
        "zone": "" if hours is None else hours.zone,
    }
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def grouping_from(value: object) -> Grouping | None:
    """None where nothing is said. Raises InvalidValueError."""
    if value is None:
        return None
    given = check_object("grouping", value, ("by", "window_seconds"))
    by, window = given.get("by"), given.get("window_seconds")
    names = None if by is None else tuple(check_line("grouping.by", one) for one in _list("grouping.by", by))
    if names is not None and len(names) > MOST_LABELS:
        raise InvalidValueError("grouping.by", f"must be at most {MOST_LABELS} labels")
    if names is not None and (
        len(set(names)) != len(names) or (EACH_ALONE[0] in names and names != EACH_ALONE)
    ):
        raise InvalidValueError("grouping.by", f"must name each label once, and {EACH_ALONE[0]} alone")
    return Grouping(names, None if window is None else _window(window))


def grouping_json(grouping: Grouping | None) -> dict[str, Any] | None:
    if grouping is None:
        return None
    return {
        "by": None if grouping.by is None else list(grouping.by),
        "window_seconds": None if grouping.window is None else int(grouping.window.total_seconds()),
    }


def check_pattern(field: str, pattern: object, *, blank: bool = False) -> str:
    """A glob over `kind/name`. Raises InvalidValueError."""
    text = check_line(field, pattern, PATTERN_LIMIT, blank=blank)
    if text and "/" not in text and "*" not in text:
        raise InvalidValueError(field, "must match kind/name, for example storage_cluster/*")
    return text


def check_slug(field: str, value: object) -> str:
    text = check_line(field, value, 60)
    if not SLUG.fullmatch(text) or text.isdigit():
        raise InvalidValueError(field, "must be letters, digits, - and _, and not digits alone")
    return text


def check_name(field: str, value: object) -> str:
    """A slug that is no address of its own beside those of the rules. Raises InvalidValueError."""
    name = check_slug(field, value)
    if name in RESERVED:
        raise InvalidValueError(field, f"must not be {name}: reserved")
    return name


def all_written(
    values: Sequence[object], teams: Mapping[str, Team], services: Mapping[str, Service]
) -> list[Written]:
    """The rules of a list; those without a name get one that no other has. Raises InvalidValueError, also for what is
    no tree."""
    if len(values) > MOST_RULES:
        raise InvalidValueError("routes", f"must be at most {MOST_RULES} rules")
    taken = {one["name"] for one in values if isinstance(one, Mapping) and isinstance(one.get("name"), str)}
    found: list[Written] = []
    for place, value in enumerate(values):
        one = written_from(value, teams, services, place)
        if not (isinstance(value, Mapping) and value.get("name")):
            one = replace(one, rule=replace(one.rule, name=free_name(one.rule.name, taken)))
            taken.add(one.rule.name)
        found.append(one)
    check_tree(found)
    return found


def written_from(
    value: object, teams: Mapping[str, Team], services: Mapping[str, Service], place: int
) -> Written:
    """A rule of a list, the `place`-th. Raises InvalidValueError, its fields named as in the list."""
    try:
        return _written(value, teams, services, place)
    except InvalidValueError as error:
        raise InvalidValueError(f"routes[{place}].{error.field}", error.reason) from None


def _written(
    given: object, teams: Mapping[str, Team], services: Mapping[str, Service], place: int
) -> Written:
    # `id` stands in what the API lists, which may be sent back as it is.
    value = check_object("", given, (*FIELDS, "id"))
    pattern = "" if value.get("pattern") is None else value["pattern"]
    name = value.get("name") or suggested_name(str(pattern), str(value.get("team") or ""), place)
    severity, policy, parent = value.get("severity"), value.get("policy"), value.get("parent")
    order = value.get("order", place)
    if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= 2**31 - 1:
        raise InvalidValueError("order", "must be a whole number from 0")
    service = _one_of("service", value.get("service"), services)
    team = _one_of("team", value.get("team"), teams)
    rule = Rule(
        name=check_name("name", name),
        when=conditions_from(pattern, value.get("when") or {}),
        team=None if team is None else teams[team],
        service=service,
        severity=None if severity is None else check_severity("severity", severity),
        policy=check_slug("policy", policy) if policy else None,
        grouping=grouping_from(value.get("grouping")),
        follow_suggestion=_yes_or_no("follow_suggestion", value.get("follow_suggestion")),
    )
    return Written(rule, check_slug("parent", parent) if parent else None, order)


def _yes_or_no(field: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise InvalidValueError(field, "must be true, false or null")


def _one_of(field: str, value: object, known: Mapping[str, object]) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or value not in known:
        raise InvalidValueError(field, f"unknown {field}; use {', '.join(sorted(known)) or 'none'}"[:500])
    return value


def suggested_name(pattern: str, team: str, place: int) -> str:
    """A name for a rule that was given none, from what it matches: `storage_cluster/*` is storage_cluster."""
    words = re.sub(r"[^A-Za-z0-9_]+", "-", pattern).strip("-_") or re.sub(r"[^A-Za-z0-9_-]+", "-", team)
    name = words[:50].strip("-_") or str(place)
    return f"rule-{name}" if name.isdigit() or name in RESERVED else name


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or with a number behind it where another rule has it."""
    numbers = itertools.count(2)
    free = name
    while free in taken:
        free = f"{name[:50]}-{next(numbers)}"
    return free


def tree_from(written: Iterable[Written]) -> tuple[Rule, ...]:
    """The rules as a tree, each level by `order`, then by name. What hangs on nothing is left out."""
    beneath: dict[str | None, list[Written]] = {}
    for one in sorted(written, key=lambda one: (one.order, one.rule.name)):
        beneath.setdefault(one.parent, []).append(one)

    def level(parent: str | None) -> tuple[Rule, ...]:
        return tuple(replace(one.rule, children=level(one.rule.name)) for one in beneath.get(parent, ()))

    return level(None)


def children_of_unreadable(
    unreadable: Mapping[str, str], parents: Mapping[str, str | None]
) -> dict[str, str]:
    """The rules that cannot count, with the reason: those that cannot be read, and all that stand beneath one."""
    found = dict(unreadable)
    while further := {
        name: f"its parent `{parent}` is invalid"
        for name, parent in parents.items()
        if name not in found and parent in found
    }:
        found |= further
    return found


def replaced(written: Iterable[Written], name: str | None, by: Written | None) -> list[Written]:
    """The rules with the one called `name` (None: none of them) changed to `by`, or without it, or with `by` added.

    What is beneath a rule that gets another name stays beneath it.
    """
    others = [one for one in written if one.rule.name != name]
    if by is None:
        return others
    if name is not None:
        others = [replace(one, parent=by.rule.name) if one.parent == name else one for one in others]
    return [*others, by]


def check_tree(written: Sequence[Written]) -> None:
    """Raises InvalidValueError for a name twice, a parent that is none, a circle, and too much of it."""
    if len(written) > MOST_RULES:
        raise InvalidValueError("routes", f"must be at most {MOST_RULES} rules")
    parents: dict[str, str | None] = {}
    for one in written:
        if one.rule.name in parents:
            raise InvalidValueError("name", f"`{one.rule.name}` is the name of another rule")
        parents[one.rule.name] = one.parent
    for name, parent in parents.items():
        above = [name]
        while parent is not None:
            if parent not in parents:
                raise InvalidValueError("parent", f"no rule `{parent}`")
            if parent in above:
                raise InvalidValueError("parent", f"`{name}` would be its own ancestor")
            above.append(parent)
            parent = parents[parent]
        if len(above) > DEEPEST:
            raise InvalidValueError(
                "parent", f"must leave at most {DEEPEST} levels, `{name}` would be on level {len(above)}"
            )


def _labels(value: object) -> tuple[Matcher, ...]:
    texts = _list("when.labels", value)
    if not texts:
        return ()
    try:
        read = [one for text in texts for one in read_matchers(check_line("matchers", text, 2_000))]
        return each_matcher(read)
    except InvalidValueError as error:
        raise InvalidValueError("when.labels", error.reason) from None


def _severities(value: object) -> tuple[Severity, ...]:
    given = [check_severity("when.severities", one) for one in _list("when.severities", value)]
    return tuple(sorted(set(given), key=SEVERITIES.index))


def _list(field: str, value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidValueError(field, "must be a list")
    return value


def _text(given: Mapping[str, Any], name: str) -> str:
    return check_line(f"when.{name}", given[name]) if name in given else ""


def _share(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValueError(field, "must be a number from 0 to 1")
    if not (0 <= value <= 1) or not math.isfinite(value):
        raise InvalidValueError(field, "must be a number from 0 to 1")
    return float(value)


def _window(value: object) -> timedelta:
    span = f"{SHORTEST_WINDOW} to {LONGEST_WINDOW} seconds"
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValueError("grouping.window_seconds", f"must be a whole number: {span}")
    if not SHORTEST_WINDOW <= value <= LONGEST_WINDOW:
        raise InvalidValueError("grouping.window_seconds", f"must be {span}")
    return timedelta(seconds=value)
