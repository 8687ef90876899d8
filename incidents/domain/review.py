"""Post-incident reviews: a draft of what the log knows, and the actions that people agree on. Pure.

The draft states facts (times, people called, verdicts) and leaves what people have to judge as headings with a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final

from incidents.domain.escalation.policy import spoken
from incidents.domain.incident.finding import percent
from incidents.domain.incident.state import Incident
from incidents.domain.incident.timeline import actor_name, kind_of
from incidents.domain.values import InvalidValueError, check_line, check_text, rfc3339

LONGEST: Final = 100_000
MOST_ACTIONS: Final = 100
MOST_LINES: Final = 80
"""Lines of the timeline in a draft."""
CALLS: Final = ("incident.notified", "incident.escalated", "incident.escalation_exhausted")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|])")


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the timeline; `count` events from `at` to `last_at`."""

    at: datetime
    last_at: datetime
    count: int
    type: str
    actor: str
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is to be done after an incident."""

    id: int
    text: str
    owner: str = ""
    """A user name; empty: nobody yet."""
    due: str = ""
    """A date; empty: none."""
    done_at: str = ""
    done_by: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def late(self, today: date) -> bool:
        return bool(self.due) and not self.done_at and self.due < today.isoformat()


# Draft
# ----------------------------------------------------------------------------------------------------------
def draft(it: Incident, lines: Sequence[Line], impact: Sequence[str]) -> str:
    """Markdown. Times are UTC; `impact` are sentences such as `120 hosts`."""
    parts = [
        f"# Review of incident {it.number}: {_plain(it.title)}",
        _summary(it),
        "## Impact\n\n" + (_bullets(impact) if impact else "_Who was hurt, for how long, and how badly?_"),
        "## Times\n\n" + _times(it, lines),
        "## What happened\n\n" + _happened(lines),
        "## Who was called\n\n" + _called(lines),
        "## Evidence\n\n" + _evidence(it),
        "## Cause\n\n" + _cause(it),
        "## What helped\n\n_What ended it? What would have ended it sooner?_",
        "## What did not go well\n\n_What was missing, misleading or slow: alerts, runbooks, access, hand-overs?_",
    ]
    return "\n\n".join(parts) + "\n"


def _summary(it: Incident) -> str:
    state = f"resolved {_at(it.resolved_at)}" if it.resolved_at else f"{it.state}"
    about = f" on `{it.component}`" if it.component else ""
    return f"Severity {it.severity}{about}, team {_plain(it.team)}. Opened {_at(it.opened_at)}, {state}."


def _times(it: Incident, lines: Sequence[Line]) -> str:
    paged = next((one.at for one in lines if one.type == "incident.notified"), None)
    since = it.failing_since
    rows = [
        ("failing since", since, None),
        ("opened", it.opened_at, since),
        ("first person notified", paged, it.opened_at),
        ("acknowledged", it.acknowledged_at, it.opened_at),
        ("resolved", it.resolved_at, it.opened_at),
    ]
    return "| Moment | UTC | After |\n| --- | --- | --- |\n" + "\n".join(
        f"| {name} | {_at(at)} | {_after(at, before)} |" for name, at, before in rows if at is not None
    )


def _after(at: datetime, before: datetime | None) -> str:
    return "" if before is None else spoken((at - before).total_seconds())


def _happened(lines: Sequence[Line]) -> str:
    entries = [one for one in lines if kind_of(one.type, one.actor) != "notifications"]
    left = 0
    if len(entries) > MOST_LINES:
        # What people and analyzers did explains more than the fortieth alert.
        alerts = [one for one in entries if kind_of(one.type, one.actor) == "alerts"][1:-1]
        dropped = {id(one) for one in alerts[: len(entries) - MOST_LINES]}
        shown = [one for one in entries if id(one) not in dropped][:MOST_LINES]
        left, entries = len(entries) - len(shown), shown
    rows = [f"- **{_at(one.at)}** {_sentence(one.text)}{_again(one)}" for one in entries]
    more = [f"- {left} more entries are on the timeline of the incident"] if left else []
    return "\n".join([*rows, *more])


def _again(one: Line) -> str:
    return f" ({one.count} times, until {_at(one.last_at)})" if one.count > 1 else ""


def _called(lines: Sequence[Line]) -> str:
    rows = [f"- **{_at(one.at)}** {_sentence(one.text)}" for one in lines if one.type in CALLS][:MOST_LINES]
    return "\n".join(rows) or "No one was called."


def _evidence(it: Incident) -> str:
    rows = [
        f"- **{one.analyzer}** {one.version} on `{one.component}`"
        f"{f', {percent(one.score)}' if one.score is not None else ''}: window {_at(one.window_start)} to"
        f" {_at(one.window_end)}, run {one.run}"
        for one in it.opinions.values()
        if one.component is not None
    ]
    return "\n".join(rows) or "No analyzer named a component."


def _cause(it: Incident) -> str:
    if it.confirmed_cause == "none":
        return "A false alarm: nothing was at fault."
    named = (
        f"`{it.confirmed_cause}`, confirmed by {_plain(actor_name(it.resolved_by or ''))}."
        if it.confirmed_cause
        else f"Not confirmed by a person; the repair of `{it.remediation.component}` was proved."
        if it.state == "resolved" and it.remediation and it.remediation.resolves
        else ""
    )
    return f"{named} _Why did it fail, and why was it not caught before?_".strip()


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_plain(one)}" for one in texts)


def _at(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _plain(text: str) -> str:
    """On one line, with nothing that Markdown would read as its own."""
    return _escaped(" ".join(text.split()))


def _sentence(text: str) -> str:
    """The same for a sentence of the timeline, with code between its backticks, as on the page of the incident."""
    line = " ".join(text.split())
    pieces = line.split("`")
    if len(pieces) % 2 == 0 or not all(pieces[1:-1]):
        return _escaped(line)
    return "".join(f"`{piece}`" if place % 2 else _escaped(piece) for place, piece in enumerate(pieces))


def _escaped(line: str) -> str:
    return _MARKDOWN.sub(r"\\\1", line)


# Export
# ----------------------------------------------------------------------------------------------------------
def exported(text: str, actions: Sequence[Action]) -> str:
    """The text and, below it, the actions. Markdown."""
    if not actions:
        return text
    rows = [f"| {_plain(one.text)} | {_plain(one.owner)} | {one.due} | {_done(one)} |" for one in actions]
    head = "## Actions\n\n| Action | Owner | Due | Done |\n| --- | --- | --- | --- |\n"
    return f"{text.rstrip()}\n\n{head}{chr(10).join(rows)}\n"


def _done(one: Action) -> str:
    return f"{one.done_at[:10]} {_plain(actor_name(one.done_by))}".strip() if one.done_at else "open"


# Actions
# ----------------------------------------------------------------------------------------------------------
def actions_from(stored: Iterable[Mapping[str, Any]]) -> list[Action]:
    return [Action(**one) for one in stored]


def with_action(actions: Sequence[Action], text: object, owner: object, due: object) -> list[Action]:
    """One more. Raises InvalidValueError."""
    if len(actions) >= MOST_ACTIONS:
        raise InvalidValueError("text", f"a review has at most {MOST_ACTIONS} actions")
    id_ = 1 + max((one.id for one in actions), default=0)
    new = Action(
        id_, check_line("text", text, 500), check_line("owner", owner or "", 150, blank=True), due_from(due)
    )
    return [*actions, new]


def changed(
    actions: Sequence[Action], id_: int, by: str, now: datetime, given: Mapping[str, Any]
) -> list[Action]:
    """With other `text`, `owner`, `due` or `done` of one. Raises InvalidValueError, KeyError for an unknown one."""
    if id_ not in {one.id for one in actions}:
        raise KeyError(id_)
    return [_changed(one, by, now, given) if one.id == id_ else one for one in actions]


def _changed(one: Action, by: str, now: datetime, given: Mapping[str, Any]) -> Action:
    if "text" in given:
        one = replace(one, text=check_line("text", given["text"], 500))
    if "owner" in given:
        one = replace(one, owner=check_line("owner", given["owner"] or "", 150, blank=True))
    if "due" in given:
        one = replace(one, due=due_from(given["due"]))
    if "done" in given:
        if not isinstance(given["done"], bool):
            raise InvalidValueError("done", "must be true or false")
        if given["done"] != bool(one.done_at):
            one = replace(
                one, done_at=rfc3339(now) if given["done"] else "", done_by=by if given["done"] else ""
            )
    return one


def due_from(due: object) -> str:
    """A date as stored, empty for none. Raises InvalidValueError."""
    if due in (None, ""):
        return ""
    try:
        return date.fromisoformat(check_line("due", due, 10)).isoformat()
    except ValueError as error:
        if isinstance(error, InvalidValueError):
            raise
        raise InvalidValueError("due", "must be a date such as 2026-12-24") from None


def text_from(text: object) -> str:
    return check_text("text", text, LONGEST, blank=False)
