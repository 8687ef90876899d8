"""The log records of a window and of its history, counted by service, instance and template.

Templates of the door are masked by rule, so that words that vary (names of people, of cities) still make templates of
their own. Here such words are merged: where `VARIANTS` or more templates of a service are alike but for one word, that
word varies. All windows are merged together, so the order in which records arrived means nothing. (Drain; He et al.,
ICWS 2017, merges by likeness to what came before.)
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from analyzers.builtin.trace_blame.places import QUARTERS, grouped
from analyzers.builtin.trace_blame.spans import Flags, Floats, Ints, Spans
from analyzers.contract import Sums, Window

ANY = "<*>"
VARIANTS = 5
"""Templates alike but for one word, from which on that word varies."""

_BAD = re.compile(
    r"error|exception|fail|fatal|panic|traceback|refused|timed? ?out|unavailable|abort|denied", re.IGNORECASE
)
_NAME = re.compile(r"[\w.-]+")
_BAD_SEVERITIES = ("error", "fatal")
"""Warnings are no sign of a fault: clients that come and go make many at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Logs:
    """One row a service, instance (-1 where only the service is named), template, era and quarter of the judged window.

    `count` has shape (rows,). `texts` are the templates, a service's own each; `of` is the service of each, `bad` marks
    those that tell of something bad, `other` those that name another service, all of shape (templates,). `eras` are the
    windows that hold records, the judged one among them if it does. `strange` counts records of nobody who has spans.
    """

    era: Ints
    quarter: Ints
    service: Ints
    instance: Ints
    template: Ints
    count: Floats
    texts: tuple[str, ...]
    of: Ints
    bad: Flags
    other: Flags
    eras: tuple[int, ...]
    strange: int


def logs_of(window: Window, spans: Spans, reduction: str = "logs") -> Logs | None:
    """The records of a window that was read with them; None for one that was read without."""
    if reduction not in window.sums:
        return None
    sums = [one.sums[reduction] for one in (*window.history, window)]
    era = np.repeat(np.arange(len(sums)), [one.rows for one in sums])
    service, instance = _writers(_texts(sums, "component"), spans)
    count = np.concatenate([np.asarray(one.values["count"], dtype=np.float64) for one in sums])
    time = np.concatenate([np.asarray(one.keys["time"], dtype=np.int64) for one in sums])
    known = np.flatnonzero(service >= 0)
    template, texts, of, bad = _templates(
        service[known], [_texts(sums, name) for name in ("template", "severity")], known
    )
    quarter = np.where(era == len(sums) - 1, _quarter(time, spans), 0)
    cell, heads = grouped(*(column[known] for column in (era, quarter, service, instance + 1)), template)
    rows = known[heads]
    return Logs(
        era=era[rows],
        quarter=quarter[rows],
        service=service[rows],
        instance=instance[rows],
        template=template[heads],
        count=np.bincount(cell, count[known], minlength=len(heads)).astype(np.float64),
        texts=texts,
        of=of,
        bad=bad,
        other=_naming_others(texts, of, spans.services),
        eras=tuple(np.unique(era[known]).tolist()),
        strange=int(count[service < 0].sum()),
    )


def _texts(sums: Sequence[Sums], name: str) -> list[str]:
    return [text for one in sums for text in cast(Sequence[str], one.keys[name])]


def _writers(components: Sequence[str], spans: Spans) -> tuple[Ints, Ints]:
    """The service and the instance of each record, by the names that spans have; -1 for what spans do not know."""
    owner = np.full(len(spans.instances), -1, dtype=np.int64)
    owner[spans.instance] = spans.service
    instances = {name: number for number, name in enumerate(spans.instances)}
    services = {name: number for number, name in enumerate(spans.services)}
    found: dict[str, tuple[int, int]] = {}
    for one in set(components):
        kind, _, name = one.partition("/")
        instance = instances.get(name, -1) if kind != "service" else -1
        found[one] = (int(owner[instance]), instance) if instance >= 0 else (services.get(name, -1), -1)
    pairs = np.array([found[one] for one in components], dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _quarter(time: Ints, spans: Spans) -> Ints:
    """The quarter of the judged window's own time, as spans have it."""
    now = spans.era == spans.eras - 1
    if not now.any():
        return np.zeros(len(time), dtype=np.int64)
    first = int(spans.start[now].min())
    length = max(1, int(spans.start[now].max()) - first + 1)
    return np.clip((time - first) * QUARTERS // length, 0, QUARTERS - 1)


def _templates(
    service: Ints, columns: Sequence[Sequence[str]], rows: Ints
) -> tuple[Ints, tuple[str, ...], Ints, Flags]:
    """The template of each row, and by template its text, its service, and whether it tells of something bad."""
    texts, severities = columns
    by_service: dict[int, set[str]] = defaultdict(set)
    for owner, row in zip(service.tolist(), rows.tolist(), strict=True):
        by_service[owner].add(texts[row])
    merged = {owner: merged_texts(found) for owner, found in by_service.items()}
    keys = [
        (owner, text := merged[owner][texts[row]], _is_bad(severities[row], text))
        for owner, row in zip(service.tolist(), rows.tolist(), strict=True)
    ]
    names = sorted(set(keys))
    number = {key: place for place, key in enumerate(names)}
    return (
        np.array([number[key] for key in keys], dtype=np.int64),
        tuple(text for _, text, _ in names),
        np.array([owner for owner, _, _ in names], dtype=np.int64),
        np.array([bad for _, _, bad in names], dtype=np.bool_),
    )


def _is_bad(severity: str, text: str) -> bool:
    return severity in _BAD_SEVERITIES or (severity == "unspecified" and _BAD.search(text) is not None)


def _naming_others(texts: Sequence[str], of: Ints, services: Sequence[str]) -> Flags:
    """Whether a template holds the name of a service, as a word, that is not its writer's."""
    names = {name.lower(): number for number, name in enumerate(services)}
    words = [{word.strip(".") for word in _NAME.findall(text.lower())} for text in texts]
    found = [
        any(names.get(word, owner) != owner for word in each)
        for each, owner in zip(words, of.tolist(), strict=True)
    ]
    return np.array(found, dtype=np.bool_)


def merged_texts(texts: Iterable[str]) -> dict[str, str]:
    """For each text itself, with `<*>` for words in which it differs from `VARIANTS` - 1 or more others that are alike
    otherwise.
    """
    found = {text: tuple(text.split(" ")) for text in sorted(set(texts))}
    longest = max(map(len, found.values()), default=0)
    for place in range(longest):
        alike: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for words in found.values():
            if place < len(words):
                alike[(*words[:place], ANY, *words[place + 1 :])].add(words[place])
        vary = {pattern for pattern, words in alike.items() if len(words) >= VARIANTS}
        if vary:
            for text, words in found.items():
                pattern = (*words[:place], ANY, *words[place + 1 :])
                found[text] = pattern if place < len(words) and pattern in vary else words
    return {text: " ".join(words) for text, words in found.items()}
