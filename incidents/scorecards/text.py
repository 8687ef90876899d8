"""A backtest in words, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzers.commands import span_text
from analyzers.queries import Share
from incidents.domain.oncall.spans import lead_words
from incidents.scorecards.backtest import STATUSES, Backtest

MOST_LINES = 40
_SHOWN = {"right": "right", "wrong": "WRONG", "unconfirmed": "?"}


def lines(done: Backtest) -> Iterator[str]:
    replay, found = done.replay, done.score
    params = ", ".join(f"{name}={value}" for name, value in sorted(replay.params.items()))
    total = sum(done.windows.values())
    yield f"{replay.analyzer.name} {replay.analyzer.version}  {params}".rstrip()
    yield (
        f"{total} windows of {span_text(replay.length)} every {span_text(replay.every)},"
        f" {replay.start:%Y-%m-%d %H:%M} to {replay.end:%Y-%m-%d %H:%M} UTC, {_regions(replay.regions)}:"
        f" {', '.join(f'{done.windows[name]} {name}' for name in STATUSES if done.windows[name])}"
    )
    if done.first_error is not None:
        yield f"first failure: {done.first_error}"
    yield ""
    right, wrong = found.count("right"), found.count("wrong")
    yield f"{len(found.scored):5} found        findings that would have opened an incident"
    yield f"{right:5} right        the confirmed cause of a resolved incident"
    yield f"{found.found_first:5}   found first   before any person or alert"
    yield f"{found.alone:5}   found alone   that no person or alert reported"
    yield f"{wrong:5} wrong        the incident was resolved with another cause, or none"
    yield f"{found.count('unconfirmed'):5} unconfirmed  no resolved incident says"
    yield f"{len(found.missed):5} missed       confirmed causes that it looked at and did not name"
    yield f"{found.passing:5} passing      findings too brief for an incident"
    yield ""
    yield f"precision {_share(found.precision, 'no finding was confirmed or refuted')}"
    yield f"recall    {_share(found.recall, f'{len(done.causes)} incidents were resolved in this time')}"
    if found.median_lead is not None:
        yield f"lead      median {lead_words(found.median_lead)}"
    yield from _blames(done)


def _regions(regions: Sequence[str]) -> str:
    return f"region {regions[0]}" if len(regions) == 1 else f"{len(regions)} regions"


def _share(share: Share, nothing: str) -> str:
    if share.value is None:
        return f"unknown: {nothing}"
    low, high = share.interval
    return f"{share.value:.3f} [{low:.3f}, {high:.3f}], {share.hits} of {share.trials}"


def _blames(done: Backtest) -> Iterator[str]:
    found = done.score
    rows = [
        (
            _SHOWN[one.outcome],
            f"{one.blame.start:%Y-%m-%d %H:%M} to {one.blame.end:%m-%d %H:%M}",
            one.blame.component
            + (f" or {len(one.blame.names) - 1} more" if len(one.blame.names) > 1 else ""),
            "" if one.incident is None else f"#{one.incident}",
            "" if one.lead is None else lead_words(one.lead),
        )
        for one in found.scored
    ]
    rows += [
        (
            "missed",
            f"{one.since:%Y-%m-%d %H:%M} to {one.until:%m-%d %H:%M}",
            str(one.component),
            f"#{one.incident}",
            "",
        )
        for one in found.missed
    ]
    if not rows:
        return
    yield ""
    shown = rows[:MOST_LINES]
    widths = [max(len(row[place]) for row in shown) for place in range(4)]
    for row in shown:
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)]
        yield "  ".join([*cells, row[4]]).rstrip()
    if len(rows) > MOST_LINES:
        yield f"and {len(rows) - MOST_LINES} more; --json lists them all"
