"""Drawings in SVG: places from 0 to 1 as coordinates. Text keeps its size, because places are percentages."""

from __future__ import annotations

from collections.abc import Iterable

from django import template

from analyzers.queries import Bar, Curve, Range

register = template.Library()
_TEMPLATES = {Curve: "curve", Bar: "bar", Range: "range"}


@register.filter
def drawn_as(drawing: Curve | Bar | Range) -> str:
    """The template that draws it."""
    return f"frontend/drawings/{_TEMPLATES[type(drawing)]}.html"


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
