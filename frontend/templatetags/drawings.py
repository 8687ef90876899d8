"""Drawings in SVG: places from 0 to 1 as coordinates. Text keeps its size, because places are percentages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django import template

from analyzers.queries import Bar, Curve, Range
from frontend.templatetags.dossier import duration

register = template.Library()
_TEMPLATES = {Curve: "curve", Bar: "bar", Range: "range"}


@register.filter
def drawn_as(drawing: Curve | Bar | Range) -> str:
    """The template that draws it."""
    return f"frontend/analysis/drawings/{_TEMPLATES[type(drawing)]}.html"


@register.filter
def across(place: float) -> str:
    """`25%` of 0.25, from the left."""
    return f"{100 * place:.2f}%"


@register.filter
def up(place: float) -> str:
    """`75%` of 0.25: SVG counts from the top."""
    return f"{100 * (1 - place):.2f}%"


@register.filter
def polyline(points: Iterable[tuple[float, float]]) -> str:
    """Points of a line in a box of 100 by 100."""
    return " ".join(f"{100 * x:.2f},{100 * (1 - y):.2f}" for x, y in points)


@register.filter
def anchor(place: float) -> str:
    """On which side of its place a text stands, so that it stays inside."""
    return "start" if place < 0.12 else "end" if place > 0.88 else "middle"


@register.filter
def laid_out(parts: Iterable[tuple[str, float]]) -> list[tuple[str, float, float]]:
    """The parts of a bar, each with where it begins and how long it is."""
    found, at = [], 0.0
    for name, share in parts:
        found.append((name, at, share))
        at += share
    return found


@register.filter
def beside(first: float, second: float) -> float:
    """From the first place to the second."""
    return second - first


@register.filter
def unlocalized(number: float) -> str:
    """A number for a script."""
    return repr(float(number))


@register.filter
def plain_words(name: str) -> str:
    """`Found first` of `found_first`."""
    return name.removesuffix("_seconds").replace("_", " ").capitalize()


@register.filter
def signed(number: float) -> str:
    return f"+{number:,}" if number > 0 else f"\N{MINUS SIGN}{abs(number):,}"


@register.filter
def points(share: float) -> str:
    """A difference of two shares in points of a hundred."""
    return "–" if not share else f"{signed(round(100 * share, 1))} points"


@register.filter
def seconds_words(seconds: float | None) -> str:
    """`12 min`, and with its sign `−3 min`."""
    if seconds is None:
        return "–"
    length = duration(timedelta(seconds=abs(seconds)))
    return f"\N{MINUS SIGN}{length}" if seconds < 0 else length


@register.filter
def slice_sorted(names: Iterable[str]) -> list[str]:
    """At most five of the names, in order."""
    return sorted(names)[:5]
