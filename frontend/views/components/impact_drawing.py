"""Drawing of a blast radius: places of its boxes and the lines between them, in four columns, in units of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from incidents.domain.components.impact_graph import Above, BlastGraph, IncidentsBelow, Trouble

WIDTHS = (185, 185, 185, 170)
"""Of what it rests on, of itself, of what fails with it, of services. A column that is empty takes no place."""
BETWEEN = 45
HEADS = ("Depends on", "This component", "Dependents", "Affected services")
BOX, GAP, TOP = 46, 10, 24
LETTERS = 24
"""Characters of a name that fit into a box."""


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    title: str
    under: str
    tone: str
    """`self`, `hurt`, `calm` or `more`."""
    full: str
    """Full title, shown on hover and where the title is cut."""

    @property
    def middle(self) -> float:
        return self.y + BOX / 2

    @property
    def text_x(self) -> float:
        return self.x + 12

    @property
    def lines(self) -> tuple[float, float]:
        """Places of the title and of the line under it."""
        return (self.y + 20, self.y + 37) if self.under else (self.middle + 5, self.middle)


@dataclass(frozen=True, slots=True)
class Drawing:
    width: float
    height: float
    boxes: tuple[Box, ...]
    links: tuple[str, ...]
    """Paths, as SVG writes them."""
    heads: tuple[tuple[float, str], ...]
    """Columns that have a box: left edge and heading."""


def drawn(graph: BlastGraph) -> Drawing:
    above = [_above(one) for one in graph.above] + _more(graph.more_above, "more")
    own = [(graph.component, words(graph.trouble), "self", graph.component)]
    beneath = [_incidents_below(one) for one in graph.beneath] + _more(graph.more_beneath, "more components")
    services = [
        (one.name, _parts(one.components), "calm", f"{one.name}: {one.because}") for one in graph.services
    ]
    services += _more(graph.more_services, "more services")
    result = (above, own, beneath, services)
    height = TOP + max(len(texts) for texts in result) * (BOX + GAP)
    columns: list[list[Box]] = []
    x = 0.0
    for texts, width in zip(result, WIDTHS, strict=True):
        columns.append(_column(x, width, texts, height))
        x += width + BETWEEN if texts else 0
    left, (component,), middle, right = columns
    # What leads to services starts where those stand that fail: they are what the services have.
    at = replace(component, x=middle[0].x, width=middle[0].width) if middle else component
    links = [_link(one, component) for one in left] + [_link(component, one) for one in middle]
    links += [_link(at, one) for one in right]
    heads = [(boxes[0].x, text) for boxes, text in zip(columns, HEADS, strict=True) if boxes]
    boxes = tuple(box for column in columns for box in column)
    return Drawing(x - BETWEEN, height, boxes, tuple(links), tuple(heads))


def words(trouble: Trouble) -> str:
    """`2 incidents, 14 alerts`; nothing where there is none."""
    entries = [(trouble.incidents, "incident"), (trouble.alerts, "alert")]
    return ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in entries if count)


Text = tuple[str, str, str, str]


def _above(one: Above) -> Text:
    hurt = words(one.trouble)
    return one.name, hurt or one.relation, "hurt" if hurt else "calm", f"{one.name}: {one.relation}"


def _incidents_below(one: IncidentsBelow) -> Text:
    hurt = words(one.trouble)
    away = "directly" if one.hops == 1 else f"{one.hops} steps away"
    named = "".join(f"; {name}: {words(trouble)}" for name, trouble in one.named if trouble)
    return (
        one.called,
        hurt or f"{one.relation}, {away}",
        "hurt" if hurt else "calm",
        f"{one.called}, {one.relation}, {away}{named}",
    )


def _parts(count: int) -> str:
    return "by what it depends on" if not count else f"{count:,} part{'' if count == 1 else 's'}"


def _more(count: int, noun: str) -> list[Text]:
    return [(f"and {count:,} {noun}", "", "more", f"{count:,} {noun}")] if count else []


def _column(x: float, width: float, texts: Sequence[Text], height: float) -> list[Box]:
    """From top to bottom, in the middle of the height."""
    y = TOP + (height - TOP - len(texts) * (BOX + GAP)) / 2
    return [
        Box(x, y + number * (BOX + GAP), width, _cut(title), _cut(under, 30), tone, full)
        for number, (title, under, tone, full) in enumerate(texts)
    ]


def _cut(text: str, most: int = LETTERS) -> str:
    """The end of a name says more than its middle."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"


def _link(start: Box, end: Box) -> str:
    x, y, to, down = start.x + start.width, start.middle, end.x, end.middle
    half = (x + to) / 2
    return f"M{x:g} {y:g}C{half:g} {y:g} {half:g} {down:g} {to:g} {down:g}"
