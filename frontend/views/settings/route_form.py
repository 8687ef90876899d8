"""The form of a rule: what is typed, as the API takes it, and a rule as the form shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict

from frontend.time_input import parse_span
from incidents.domain.routing.rules import EACH_ALONE
from incidents.domain.routing.schema import grouping_from
from incidents.teams.models import Route

TEXTS = ("name", "parent", "pattern", "team", "service", "severity", "policy")
GROUPS = ("", "rule", "labels", "all", "alone")
"""As the rule above has it; what one alert rule fires on; by labels; all in one incident; each alone."""

_FOLLOWS = {None: "", True: "yes", False: "no"}


def typed_from(row: Route) -> dict[str, Any]:
    """Form values of a rule."""
    when: Mapping[str, Any] = row.when
    return {
        "name": row.name,
        "parent": "" if row.parent is None else row.parent.name,
        "pattern": row.pattern,
        "team": "" if row.team is None else row.team.slug,
        "service": "" if row.service is None else row.service.slug,
        "severity": row.severity or "",
        "policy": row.policy or "",
        "labels": "\n".join(when.get("labels", [])),
        "when_service": when.get("service", ""),
        "analyzer": when.get("analyzer", ""),
        "integration": when.get("integration", ""),
        "severities": when.get("severities", []),
        "min_confidence": _percent(when.get("min_confidence")),
        "hours": "\n".join(when.get("hours", [])),
        "zone": when.get("zone", ""),
        "follow_suggestion": _FOLLOWS[row.follow_suggestion],
        **_grouping_typed(row),
    }


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.6g}"


def _grouping_typed(row: Route) -> dict[str, str]:
    grouping = grouping_from(row.grouping)
    if grouping is None:
        return {"group": "", "by": "", "window": ""}
    window = "" if grouping.window is None else f"{int(grouping.window.total_seconds() // 60)} min"
    seconds = 0 if grouping.window is None else int(grouping.window.total_seconds() % 60)
    by = grouping.by
    kind = "rule" if by is None else "all" if by == () else "alone" if by == EACH_ALONE else "labels"
    return {
        "group": kind,
        "by": ", ".join(by or ()) if kind == "labels" else "",
        "window": f"{window} {seconds} s" if seconds else window,
    }


def typed_in(post: QueryDict) -> dict[str, Any]:
    """Typed text, to be shown again."""
    typed: dict[str, Any] = {name: str(value) for name, value in post.items()}
    return {**typed, "severities": post.getlist("severities")}


def body_of(typed: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Body for the API, and errors by field that it could not even be sent."""
    errors: dict[str, str] = {}
    body: dict[str, Any] = {name: typed.get(name, "").strip() or None for name in TEXTS}
    body["pattern"] = body["pattern"] or ""
    if body["name"] is None:
        del body["name"]
    body["when"] = {
        "labels": _lines(typed.get("labels", "")),
        "service": typed.get("when_service", "").strip(),
        "analyzer": typed.get("analyzer", "").strip(),
        "integration": typed.get("integration", "").strip(),
        "severities": typed.get("severities", []),
        "min_confidence": _share(typed.get("min_confidence", "").strip(), errors),
        "hours": (hours := _lines(typed.get("hours", ""))),
        "zone": typed.get("zone", "").strip() if hours else "",
    }
    body["grouping"] = _grouping(typed, errors)
    body["follow_suggestion"] = _follows(typed.get("follow_suggestion", ""), errors)
    return body, errors


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _share(text: str, errors: dict[str, str]) -> float | None:
    if not text:
        return None
    try:
        return float(text.rstrip("% ")) / 100
    except ValueError:
        errors["when"] = "the confidence must be a percentage, such as 90"
        return None


def _follows(text: str, errors: dict[str, str]) -> bool | None:
    for value, word in _FOLLOWS.items():
        if text == word:
            return value
    errors["follow_suggestion"] = "choose a value for auto-assign"
    return None


def _grouping(typed: Mapping[str, Any], errors: dict[str, str]) -> dict[str, Any] | None:
    kind, window = typed.get("group", ""), None
    if kind not in GROUPS:
        errors["grouping"] = "choose how alerts are grouped"
    if kind == "" or "grouping" in errors:
        return None
    if text := typed.get("window", "").strip():
        try:
            window = int(parse_span(text).total_seconds())
        except ValueError as error:
            errors["grouping"] = f"the time {error}"
    labels = [name.strip() for name in typed.get("by", "").split(",") if name.strip()]
    if kind == "labels" and not labels:
        errors["grouping"] = "enter the labels to group by"
    by = {"labels": labels, "all": [], "alone": list(EACH_ALONE)}.get(kind)
    return {"by": by, "window_seconds": window}
