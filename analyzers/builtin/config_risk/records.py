"""Changes with their outcomes, in the order in which they went out."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from analyzers.builtin.paths import texts, whole
from analyzers.contract import Paths, Sums, Window

HOUR = 3_600_000_000
"""Microseconds."""
GOOD, HARMLESS = "good", "harmless"


@dataclass(frozen=True, slots=True)
class Change:
    """A change: `at` in microseconds since 1970. `outcome` is empty while unknown, and was known at `known_at`."""

    name: str
    at: int
    kind: str
    targets: tuple[str, ...] = ()
    author: str = ""
    team: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, float] = field(default_factory=dict)
    outcome: str = ""
    known_at: int = 0

    @property
    def is_bad(self) -> bool:
        return self.outcome not in ("", GOOD)


def changes_in(window: Window) -> list[Change]:
    """The changes of a window and its history by time, with the outcomes that rows tell. The last row of a change
    counts, and its first bad outcome after it was last called harmless, else its first outcome."""
    windows = (*window.history, window)
    reported = defaultdict[str, list[tuple[int, str]]](list)
    for one in windows:
        outcomes = one.sums["outcomes"]
        known = whole(outcomes, "time").tolist()
        pairs = zip(texts(outcomes, "change"), texts(outcomes, "outcome"), known, strict=True)
        for name, outcome, when in pairs:
            reported[name].append((when, outcome))
    outcomes_by_name = {name: outcome_of(rows) for name, rows in reported.items()}
    return in_order(
        replace(one, outcome=outcomes_by_name[name][0], known_at=max(outcomes_by_name[name][1], one.at))
        if name in outcomes_by_name
        else one
        for name, one in last_rows(one.sums["changes"] for one in windows).items()
    )


def last_rows(tables: Iterable[Sums]) -> dict[str, Change]:
    """By name the last row of each change, without its outcome."""
    found: dict[str, Change] = {}
    for sums in tables:
        targets = sums.keys["targets"]
        assert isinstance(targets, Paths)
        columns = [texts(sums, name) for name in ("change", "kind", "author", "team", "settings", "measures")]
        at = whole(sums, "time").tolist()
        for row, (name, kind, author, team, settings, measures) in enumerate(zip(*columns, strict=True)):
            made = Change(
                name, at[row], kind, targets[row], author, team, json.loads(settings), json.loads(measures)
            )
            if name not in found or _later(made, found[name]):
                found[name] = made
    return found


def outcome_of(rows: Iterable[tuple[int, str]]) -> tuple[str, int]:
    """Outcome by the rows of one change (moment, outcome), and the time since which that was known. Rows are not
    empty."""
    ordered = sorted(rows)
    withdrawn = max((place for place, (_, outcome) in enumerate(ordered) if outcome == HARMLESS), default=0)
    counted = ordered[withdrawn:]
    when, outcome = next((one for one in counted if one[1] not in (GOOD, HARMLESS)), counted[0])
    return (GOOD if outcome == HARMLESS else outcome), when


def in_order(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda one: (one.at, *_content(one), one.name))


def settled(changes: Sequence[Change], now: int, horizon: int) -> list[Change]:
    """Those without an outcome for `horizon` microseconds before `now` as good since then; the others as they are."""
    return [
        replace(one, outcome=GOOD, known_at=one.at + horizon)
        if not one.outcome and one.at + horizon <= now
        else one
        for one in changes
    ]


def _later(one: Change, other: Change) -> bool:
    return (one.at, _content(one)) > (other.at, _content(other))


def _content(one: Change) -> tuple[object, ...]:
    """All but names of components: what orders changes of one moment."""
    return (
        one.kind,
        one.team,
        one.author,
        len(one.targets),
        tuple(sorted(one.settings.items())),
        tuple(sorted(one.measures.items())),
    )
