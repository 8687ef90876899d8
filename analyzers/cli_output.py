"""A verdict as text for a terminal: what is blamed, how sure, and the short tables behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

MOST_ROWS = 10
"""Rows of an evidence table that are shown."""
MOST_NAMES = 3
_WIDEST = 44


@dataclass(frozen=True, slots=True)
class Style:
    """Escape sequences of a terminal, or nothing."""

    bold: str = ""
    faint: str = ""
    red: str = ""
    green: str = ""
    yellow: str = ""
    reset: str = ""


PLAIN = Style()
TERMINAL = Style("\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m")


def whole(verdict: Mapping[str, Any], style: Style = PLAIN) -> list[str]:
    """Everything worth reading about one verdict."""
    parameters = ", ".join(f"{name}={value}" for name, value in verdict["params"].items())
    lines = [
        f"{style.bold}{verdict['analyzer']} {verdict['version']}{style.reset}  {_window(verdict)}",
        _status(verdict, style),
    ]
    lines += ["", *_suspects(verdict["suspects"], style)] if verdict["suspects"] else []
    lines += ["", *_assumptions(verdict["assumptions"], style)] if verdict["assumptions"] else []
    for one in verdict["evidence"]:
        lines += ["", *_evidence(one, style)]
    footing = [_measures(verdict["measures"]), *([f"parameters: {parameters}"] if parameters else [])]
    return [*lines, "", *(f"{style.faint}{line}{style.reset}" for line in footing)]


def brief(verdict: Mapping[str, Any], style: Style = PLAIN) -> list[str]:
    """One line a window, and one more for every suspect; one without probability and rate has its summary there."""
    lines = [f"{_window(verdict)}  {_status(verdict, style)}"]
    for suspect in verdict["suspects"]:
        names, score, estimate = _also(suspect), suspect["score"], suspect["estimate"]
        lines.append(
            f"    {suspect['rank']}  {style.bold}{suspect['component']}{style.reset}"
            + (f"  probability {_share(score)}" if score is not None else "")
            + (f"  rate {_estimate(estimate)}" if estimate is not None else "")
            + (f"  or {names}" if names else "")
            + (f"  {suspect['summary']}" if score is None and estimate is None else "")
        )
    return lines


def _window(verdict: Mapping[str, Any]) -> str:
    start, end = (datetime.fromisoformat(verdict["window"][name]) for name in ("start", "end"))
    if start.timestamp() == end.timestamp() == 0:  # SuperBench's results have no times
        return "(rows without times)"
    day = "" if start.date() == end.date() else f"{end:%Y-%m-%d} "
    return f"{start:%Y-%m-%d %H:%M:%S} to {day}{end:%H:%M:%S} UTC"


def _status(verdict: Mapping[str, Any], style: Style) -> str:
    if verdict["status"] == "named":
        count = len(verdict["suspects"])
        suspects = "1 suspect" if count == 1 else f"{count} suspects"
        return f"{style.red}named{style.reset}: {suspects}"
    if verdict["status"] == "quiet":
        return f"{style.green}quiet{style.reset}: no component at fault"
    return f"{style.yellow}inconclusive{style.reset}: {verdict['reason']}"


def _assumptions(assumptions: Sequence[Mapping[str, Any]], style: Style) -> list[str]:
    """Those that do not hold first."""
    lines = ["assumptions"]
    for one in sorted(assumptions, key=lambda one: bool(one["holds"])):
        word = (
            f"{style.green}holds{style.reset}"
            if one["holds"]
            else f"{style.yellow}does not hold{style.reset}"
        )
        lines.append(f"  {one['name']} {word}: {one['detail']}")
    return lines


def _suspects(suspects: Sequence[Mapping[str, Any]], style: Style) -> list[str]:
    rows = [
        (
            str(one["rank"]),
            one["component"],
            _share(one["score"]),
            _estimate(one["estimate"]),
            "–" if one["p_value"] is None else f"{one['p_value']:.1e}",
            _also(one) or "–",
        )
        for one in suspects
    ]
    heads = ("#", "suspect", "probability", "failure rate (95 %)", "p", "ambiguous with")
    filled = [place for place in range(len(heads)) if any(row[place] != "–" for row in rows)]
    lines = _grid(
        [heads[place] for place in filled], [[row[place] for place in filled] for row in rows], style
    )
    return [*lines, "", *(line for one in suspects for line in _summary_lines(one))]


def _summary_lines(suspect: Mapping[str, Any]) -> list[str]:
    """The summary of a suspect, its indicator and its path."""
    indent = " " * (len(str(suspect["rank"])) + 2)
    lines = [f"{suspect['rank']}. {suspect['summary']}"]
    lines += [f"{indent}indicator: {suspect['indicator']}"] if suspect.get("indicator") else []
    return lines + ([f"{indent}path: {' > '.join(suspect['path'])}"] if suspect.get("path") else [])


def _also(suspect: Mapping[str, Any]) -> str:
    names = suspect["ambiguous_with"]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def _estimate(estimate: Mapping[str, float] | None) -> str:
    if estimate is None:
        return "–"
    return " ".join(
        (
            f"{_percent(estimate['failure_rate'])} %",
            f"({_percent(estimate['low'])} to {_percent(estimate['high'])})",
        )
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g}"


def _evidence(one: Mapping[str, Any], style: Style) -> list[str]:
    title = f"{style.bold}{one['title']}{style.reset}"
    if one["kind"] == "chart":
        return [f"{title} {style.faint}(a chart: --json has it){style.reset}", *_note(one)]
    if one["kind"] == "text":
        return [title, *_note(one)]
    rows = [[_cell(value) for value in row] for row in one["rows"][:MOST_ROWS]]
    left = len(one["rows"]) - MOST_ROWS
    more = [f"{style.faint}and {left} more rows (--json has them){style.reset}"] if left > 0 else []
    return [title, *_grid(one["columns"], rows, style), *more, *_note(one)]


def _note(one: Mapping[str, Any]) -> list[str]:
    return [one["text"]] if one["text"] else []


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.9g}" if 0.999 < value < 1 else f"{value:.4g}"  # an availability is no 1
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return str(value)


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> list[str]:
    """Aligned columns; those that hold only numbers are set to the right."""
    cut = [[_cut(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cut, strict=True)]
    columns = zip(*cut, strict=True) if cut else ([] for _ in heads)
    numeric = [_are_numbers(list(column)) for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip()

    return [f"{style.faint}{line(heads)}{style.reset}", *(line(row) for row in cut)]


def _cut(cell: str) -> str:
    one_line = " ".join(cell.split())
    return one_line if len(one_line) <= _WIDEST else one_line[: _WIDEST - 1] + "…"


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether a column holds numbers, and nothing else but dashes where there is none."""
    filled = [cell for cell in cells if cell != "–"]
    return bool(filled) and all(re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell) for cell in filled)


def _measures(measures: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in measures.items() if isinstance(value, int | float | str | bool)}
    return "  ".join(f"{name} {_cell(value)}" for name, value in plain.items())
