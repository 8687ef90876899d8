"""Text for a terminal: tables that fit it, readable times, no control characters from outside."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

MOST_ROWS = 12
"""Rows of an evidence table that are shown, unless all are wanted."""
LEAST_LAST = 24
"""Characters that the last column of a table has at least, before other columns are left out."""
MOST_LINES = 10
"""Entries of a timeline that are shown, unless all are wanted."""
MOST_ALERTS = 5


@dataclass(frozen=True, slots=True)
class Screen:
    """The time, the width in characters (None without a limit: a pipe), and whether there are escape sequences."""

    now: datetime
    width: int | None = None
    colour: bool = False

    def strong(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def faint(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.colour else text

    def wrapped(self, text: str, indent: str = "") -> list[str]:
        """The text in lines that fit, each of its own lines apart."""
        if self.width is None:
            return [indent + line for line in text.splitlines()]
        room = max(self.width - len(indent), 20)
        return [
            indent + part
            for line in text.splitlines()
            for part in (textwrap.wrap(line, room, break_on_hyphens=False) or [""])
        ]


def clean(value: object, *, lines: bool = False) -> str:
    """A text of the server without what moves a cursor or changes a title; `lines` keeps line breaks."""
    text = "–" if value is None or value == "" else str(value)
    final = "\n" if lines else ""
    return "".join(
        one if one in final or unicodedata.category(one)[0] != "C" else " "
        for one in text.replace("\r\n", "\n")
    )


def ago(text: str | None, now: datetime) -> str:
    """Age of an RFC 3339 time, in one unit."""
    if text is None:
        return "–"
    seconds = (now - datetime.fromisoformat(text)).total_seconds()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= length:
            return f"{int(seconds / length)} {unit}"
    return f"{int(seconds)} s"


def moment(text: str | None) -> str:
    """An RFC 3339 time to the second, in UTC."""
    return "–" if text is None else f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(window: Mapping[str, str] | None) -> str:
    """A window of telemetry: start and end, the day once."""
    if not window:
        return "–"
    start, end = (datetime.fromisoformat(window[name]).astimezone(UTC) for name in ("start", "end"))
    day = "" if start.date() == end.date() else f"{end:%Y-%m-%d} "
    return f"{start:%Y-%m-%d %H:%M:%S} to {day}{end:%H:%M:%S} UTC"


def share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def table(
    heads: Sequence[str], rows: Sequence[Sequence[object]], screen: Screen, optional: Sequence[str] = ()
) -> list[str]:
    """Columns side by side. Where they do not fit, the `optional` ones go in their order; the last is cut."""
    names = list(heads)
    cells = [[clean(cell) for cell in row] for row in rows]
    for name in optional:
        if screen.width is None or screen.width - sum(_widths(names, cells)[:-1]) >= LEAST_LAST:
            break
        place = names.index(name)
        names.pop(place)
        for row in cells:
            row.pop(place)
    widths = _widths(names, cells)
    lines = [
        "".join(cell.ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)) + row[-1]
        for row in (names, *cells)
    ]
    head, *body = [cut(line, screen.width) for line in lines]
    return [screen.faint(head), *body]


def _widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) + 2 for column in zip(names, *rows, strict=True)]


def cut(line: str, width: int | None) -> str:
    line = line.rstrip()
    return line if width is None or len(line) <= width else line[: width - 1] + "…"


def incident_table(incidents: Sequence[Mapping[str, Any]], screen: Screen) -> list[str]:
    """A line for each incident: number, severity, state of the work and of the failure, team, owner, age, title."""
    rows = [
        (
            f"#{one['number']}",
            one["severity"],
            one["state"],
            one["failure"]["state"].replace("_", " "),
            one["team"],
            one["owner"],
            ago(one["opened_at"], screen.now),
            one["title"],
        )
        for one in incidents
    ]
    heads = ("#", "SEVERITY", "STATE", "FAILURE", "TEAM", "OWNER", "AGE", "TITLE")
    return table(heads, rows, screen, optional=("OWNER", "TEAM", "AGE", "FAILURE"))


def incident_lines(one: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """Lines about an incident: title, confidence, owner."""
    failure, sure = one["failure"], one["confidence"]
    yield screen.strong(cut(f"#{one['number']} {clean(one['title'])}", screen.width))
    since = f", since {moment(failure['since'])}" if failure["since"] else ""
    yield f"{one['severity']}, {one['state']}; failure: {failure['state'].replace('_', ' ')}{since}"
    yield ""
    if one["verdict"]:
        yield from screen.wrapped(f"verdict    {clean(one['verdict'])}")
    if sure is not None:
        yield f"confidence {share(sure)}"
    also = f" or {', '.join(one['ambiguous_with'])}" if one["ambiguous_with"] else ""
    yield from screen.wrapped(f"component  {clean(one['component'])}{clean(also) if also else ''}")
    yield f"team       {clean(one['team'])}, owner {clean(one['owner'])}"
    yield f"opened     {moment(one['opened_at'])} ({ago(one['opened_at'], screen.now)} ago)"
    for name in ("acknowledged", "resolved"):
        if one[f"{name}_at"]:
            yield f"{name:<11}{moment(one[f'{name}_at'])} by {clean(one[f'{name}_by'])}".replace(
                "acknowledged", "acked      "
            )
    if one["state"] == "snoozed":
        yield f"snoozed    until {moment(one['snoozed_until']) if one['snoozed_until'] else 'it changes'}"
    if one["confirmed_cause"]:
        yield f"cause      {clean(one['confirmed_cause'])}"
    yield f"page       {one['url']}"
    yield f"position   {one['position']}"
    if one["description"]:
        yield ""
        yield from screen.wrapped(clean(one["description"], lines=True))


def opinion_lines(opinions: Sequence[Mapping[str, Any]], screen: Screen) -> Iterator[str]:
    """The word of each analyzer."""
    if not opinions:
        return
    yield ""
    rows = [
        (
            f"{one['analyzer']} {one['version']}",
            one["stance"].replace("_", " "),
            share(one["score"]),
            span(one["window"]),
            one["component"],
        )
        for one in opinions
    ]
    heads = ("ANALYZER", "SAYS", "SCORE", "WINDOW", "COMPONENT")
    yield from table(heads, rows, screen, optional=("WINDOW",))


def alert_lines(alerts: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """The first alerts of an incident."""
    if not alerts["results"]:
        return
    yield ""
    rows = [
        (one["status"], one["severity"], ago(one["last_seen"], screen.now), one["component"], one["title"])
        for one in alerts["results"][:MOST_ALERTS]
    ]
    heads = ("ALERT", "SEVERITY", "SEEN", "COMPONENT", "TITLE")
    yield from table(heads, rows, screen, optional=("SEEN", "COMPONENT"))
    if (more := alerts["count"] - len(rows)) > 0:
        yield screen.faint(f"… {more} more alerts")


def evidence_lines(
    pieces: Sequence[Mapping[str, Any]], screen: Screen, *, everything: bool = False
) -> Iterator[str]:
    """Evidence under its origin: analyzer, version, window, run and event. Of each analyzer the latest run, unless all
    are wanted."""
    events = [list(of_event) for _, of_event in groupby(pieces, key=lambda one: one["id"])]
    latest = {of_event[0]["analyzer"]: of_event for of_event in events}
    shown = [
        one for one in events if everything or not one[0]["analyzer"] or latest[one[0]["analyzer"]] is one
    ]
    if len(events) > len(shown):
        yield ""
        yield screen.faint(f"… evidence of {len(events) - len(shown)} earlier runs (--all)")
    for of_event in shown:
        yield ""
        yield from screen.wrapped(f"evidence   {origin(of_event[0])}")
        for one in of_event:
            yield from piece_lines(one, screen, everything=everything)


def origin(piece: Mapping[str, Any]) -> str:
    """Origin of a piece of evidence, so that it can be checked."""
    if not piece["run"]:
        return f"attached by {clean(piece['actor'])}, {moment(piece['at'])}, event {piece['id']}"
    analyzer = f"{piece['analyzer']} {piece['analyzer_version']}"
    return f"{analyzer}, {span(piece['window'])}, run {piece['run']}, event {piece['id']}"


def piece_lines(one: Mapping[str, Any], screen: Screen, *, everything: bool = False) -> Iterator[str]:
    """A table, a text, or the note that a chart is on the page."""
    title = cut(clean(one["title"]), screen.width)
    if one["kind"] == "chart":
        yield screen.faint(f"{title}: a chart, see the page")
        return
    yield ""
    yield screen.strong(title)
    if one["kind"] == "table" and one["rows"]:
        shown = one["rows"] if everything else one["rows"][:MOST_ROWS]
        yield from table(one["columns"], [[number(cell) for cell in row] for row in shown], screen)
        if len(one["rows"]) > len(shown):
            yield screen.faint(f"… {len(one['rows']) - len(shown)} more rows (--all)")
    if one.get("text"):
        yield from screen.wrapped(clean(one["text"], lines=True))


def number(cell: object) -> object:
    return f"{cell:.4g}" if isinstance(cell, float) else cell


def timeline_lines(
    entries: Sequence[Mapping[str, Any]], screen: Screen, *, everything: bool
) -> Iterator[str]:
    """The latest entries of a timeline, oldest first."""
    shown = entries if everything else entries[-MOST_LINES:]
    yield ""
    if len(entries) > len(shown):
        yield screen.faint(f"… {len(entries) - len(shown)} earlier entries (--all)")
    for one in shown:
        yield cut(f"{moment(one['at'])}  {clean(one['text'])}", screen.width)


def verdict_lines(run: Mapping[str, Any], screen: Screen, *, everything: bool = False) -> Iterator[str]:
    """The verdict of a run: suspects, then the evidence, then the run to cite."""
    verdict = run["verdict"]
    yield screen.strong(f"{run['analyzer']} {run['version']}") + f"  {span(run['window'])}"
    reason = f": {clean(verdict['reason'])}" if verdict["reason"] else ""
    yield f"{verdict['status']}{reason}"
    if verdict["suspects"]:
        yield ""
        rows = [
            (
                one["rank"],
                one["component"],
                share(one["score"]),
                ", ".join(one["ambiguous_with"]),
                one["summary"],
            )
            for one in verdict["suspects"]
        ]
        heads = ("#", "SUSPECT", "SCORE", "OR", "SUMMARY")
        yield from table(heads, rows, screen, optional=("OR",))
    for one in verdict["evidence"]:
        yield from piece_lines(one, screen, everything=everything)
    yield ""
    yield screen.faint(f"run {run['id']}, log position {run['input_position']}")


def until(duration: timedelta, now: datetime) -> str:
    """The RFC 3339 time at the end of a duration from now."""
    return (now + duration).astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
