"""Spans of time and cells of reports, as text."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import template

from incidents.domain.oncall.spans import lead_words, span_words
from incidents.domain.remediation.mitigation import NAMES

register = template.Library()


@register.filter
def span(seconds: float | None) -> str:
    return "–" if seconds is None else span_words(seconds)


register.filter("lead_words", lead_words)


@register.filter
def whole_percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}".replace("%", " %")


@register.filter
def local(moment: str | None, zone: str) -> str:
    """`4 May 2026 03:15 CEST`, in the report's time zone."""
    if not moment:
        return "–"
    return f"{datetime.fromisoformat(moment).astimezone(ZoneInfo(zone)):%-d %b %Y %H:%M %Z}"


@register.filter
def cell(value: Any) -> str:
    if value is None or value == "":
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@register.filter
def option(name: str) -> str:
    """Mitigation option of an incident, in words."""
    return NAMES[name]  # type: ignore[index]


@register.filter
def scope(report: Any) -> str:
    """`all regions, all teams`, `region east`, `team storage`."""
    region, team = report["scope"]["region"], report["scope"]["team"]
    if region or team:
        return ", ".join(part for part in (region and f"region {region}", team and f"team {team}") if part)
    return "all regions and teams"
