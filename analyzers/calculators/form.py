"""Form and answer of a calculator: inputs with units and bounds, an answer in words, figures and drawings.

Drawings are coordinates from 0 to 1, `(0, 0)` at the lower left, so that whoever shows them needs no arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Values = Mapping[str, float]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """An input: a number in `unit` from `low` to `high`. A slider runs from `least` to `most`, in equal ratios where
    it is `log`; `whole` numbers have no fraction."""

    name: str
    label: str
    unit: str
    default: float
    low: float
    high: float
    help: str
    least: float
    most: float
    log: bool = False
    whole: bool = False

    @property
    def bounds(self) -> str:
        """`a number from 0 to 100`."""
        return f"a {'whole ' if self.whole else ''}number from {self.low:,.12g} to {self.high:,.12g}"


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through `points`, where the inputs stand on it (`mark`), and the height that is needed (`limit`)."""

    title: str
    x_label: str
    points: tuple[Point, ...]
    mark: Point
    limit: float
    limit_label: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    words: str
    """Text of the drawing, for readers who do not see it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts beside each other, each with its name and how long it is; `limit` is how far they may reach."""

    title: str
    parts: tuple[tuple[str, float], ...]
    limit: float
    limit_label: str
    words: str


@dataclass(frozen=True, slots=True)
class Range:
    """An interval with its middle; `zero` is where there is no difference."""

    title: str
    low: float
    middle: float
    high: float
    zero: float
    ends: tuple[str, str]
    words: str


@dataclass(frozen=True, slots=True)
class Rows:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    here: int | None = None
    """The row that the inputs stand for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`shown` is the figure that was asked for and `verdict` what it means; `good` is None where it means neither."""

    shown: str
    verdict: str
    good: bool | None
    sentences: tuple[str, ...]
    measures: Mapping[str, float | bool | str | None] = field(default_factory=dict)
    drawings: tuple[Curve | Bar | Range, ...] = ()
    tables: tuple[Rows, ...] = ()


@dataclass(frozen=True, slots=True)
class Calculator:
    """`work` raises ValueError where the inputs, each within its bounds, make no sense together."""

    slug: str
    title: str
    question: str
    formula: str
    analyzer: str
    inputs: tuple[Figure, ...]
    work: Callable[[Values], Answer]


def read(calculator: Calculator, given: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """The inputs, defaults where nothing was given, and by name why something that was given cannot be taken."""
    values: dict[str, float] = {}
    wrong: dict[str, str] = {}
    for one in calculator.inputs:
        values[one.name] = one.default
        if (text := given.get(one.name, "").strip()) == "":
            continue
        number = _number(text)
        if number is None or not one.low <= number <= one.high or (one.whole and number != int(number)):
            wrong[one.name] = f"must be {one.bounds}"
        else:
            values[one.name] = number
    return values, wrong


def answer(calculator: Calculator, values: Values) -> Answer:
    """Raises ValueError, saying what does not fit, where the inputs make no sense together."""
    return calculator.work(values)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def place(value: float, low: float, high: float, *, log: bool = False) -> float:
    """Place of a value between two ends, from 0 to 1; outside of them at the nearer end."""
    if log:
        value, low, high = (math.log10(max(one, low)) for one in (value, low, high))
    return min(1.0, max(0.0, (value - low) / (high - low)))
