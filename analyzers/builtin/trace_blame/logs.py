"""The log records of a window and of its history, counted by service, instance and template.

Templates of ingest are masked by rule, so that words that vary (names of people, of cities) still make templates of
their own. Here such words are merged: where `VARIANTS` or more templates of a service are alike but for one word,
that word varies. All windows are merged together, so the order in which records arrived means nothing. (Drain; He et
al., ICWS 2017, merges by likeness to what came before.)

Three signs in the log records of a service speak for a fault: new ones, more bad ones, missing ones.

*New*: templates that no window of the history holds. The most frequent of them says how many requests they belong to
(a trace of a stack is many records of one request); that number, of the service's spans, is weighed like outcomes
never seen (`normal.novelty`).

*More*: bad ones that the history knows. Their number is negative binomial around the history's rate a span; under a
fault the rate is 2 to 1,000 times as high.

*Missing*: records that usually come together ("received", "completed"; invariants of logs, Lou et al., USENIX ATC
2010). A record is expected as often as those that its number followed in the history, and a record that followed none
is never missing: what is asked for changes. The upper quartile of what they promise counts, because an early return
silences many at once. Under a fault any share of them is missing.

A bad or new record that names another service tells of that one, and does not accuse its writer.

Each is one place a service, however many templates show it: they are one event. No place says more than the history's
own surprises allow (`normal.most_said`): every window of the history is weighed by the others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.special import logsumexp

from analyzers.builtin.trace_blame.normal import novelty, strongest_evidence
from analyzers.builtin.trace_blame.places import QUARTERS, grouped, quarter_of
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
    those that tell of something bad, `about` is another service that each names, else -1, all of shape (templates,).
    `eras` are the windows that hold records, the judged one among them if it does. `strange` counts records of nobody
    who has spans.
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
    about: Ints
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
        about=_named_others(texts, of, spans.services),
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


def _named_others(texts: Sequence[str], of: Ints, services: Sequence[str]) -> Ints:
    """By template, a service other than its writer whose name it holds as a word; -1 where there is none."""
    names = {name.lower(): number for number, name in enumerate(services)}
    words = [{word.strip(".") for word in _NAME.findall(text.lower())} for text in texts]
    found = [
        max((names[word] for word in each if word in names and names[word] != owner), default=-1)
        for each, owner in zip(words, of.tolist(), strict=True)
    ]
    return np.array(found, dtype=np.int64)


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


FEWEST = 20.0
"""Records of the history below which a template promises nothing."""

LEAST_EXPECTED = 5.0
"""Records below which nothing is missing."""

BURSTS = 0.7
"""Standard deviation, in logarithms, of the rate of a bad record a span from window to window: they come in bursts."""

TOGETHER, FARTHEST = 0.1, 0.85
"""Two records come together if the logarithm of their ratio stays that close to its median in that share of windows."""

EQUAL = 0.02
"""The same for few windows: how equal their numbers must be. Numbers may be equal by chance, so they say little."""

FEWEST_NAMED = 2
"""New records that name another service from which on they tell of it."""

SEVERAL = 3
"""Windows of the history from which on they say how numbers vary."""

COMPARED = 5000.0
"""Services and windows in which half a surprise is believed before any is counted."""

SURPRISING = 2.0
"""Nats from which on a window of the history counts as a surprise."""

MOST_PLAIN = 3.0
"""Most that new records say that tell of nothing bad, in nats: a new version writes such ones. The same for missing
records after few windows."""

MOST_BURST = 5.0
"""Most that more records of a known bad kind say by themselves, in nats: programs write such records in bursts for
reasons that no request feels, and a few windows of history seldom hold one. Other signs have to join.
"""

SURPRISE_TRUST = 10.0

MORE = np.geomspace(2.0, 1000.0, 12)
FEWER = np.linspace(0.0, 0.9, 10)

KINDS = ("records never seen", "more bad records", "missing records")


@dataclass(frozen=True, slots=True)
class Sign:
    """Sign in the records of a service: one of `KINDS`, the template that shows it most, the expected and the actual
    number, and the nats for a fault.
    """

    kind: str
    text: str
    before: int
    expected: float
    count: float
    support: float


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Records of one service by template and window: `past` has shape (templates, windows), `now` (templates,);
    `spans` and `spans_now` are the spans of the service in the same windows.
    """

    templates: Ints
    past: Floats
    now: Floats
    spans: Floats
    spans_now: float


def exposure(spans: Spans, quarter: Ints, since: int) -> tuple[Floats, Floats]:
    """Spans by service and era, and by instance and era; those of the judged window from quarter `since` on."""
    counted = (spans.era < spans.eras - 1) | (quarter >= since)

    def by(owner: Ints, owners: int) -> Floats:
        key = owner[counted] * spans.eras + spans.era[counted]
        return np.bincount(key, minlength=owners * spans.eras).reshape(owners, spans.eras).astype(np.float64)

    return by(spans.service, len(spans.services)), by(spans.instance, len(spans.instances))


def table_of(logs: Logs, rows: Ints, of_spans: Floats, last: int) -> Table:
    """The table of the chosen rows, all of one service; `of_spans` are its spans by era, `last` the judged era."""
    eras = [era for era in logs.eras if era < last and of_spans[era] > 0]
    templates, place = np.unique(logs.template[rows], return_inverse=True)
    counts = np.zeros((len(templates), last + 1))
    np.add.at(counts, (place, logs.era[rows]), logs.count[rows])
    return Table(templates, counts[:, eras], counts[:, last], of_spans[eras], float(of_spans[last]))


def signs(logs: Logs, table: Table, most: float) -> list[Sign]:
    """Signs in the judged window, of each kind at most one; nothing where the history is too short to say."""
    if table.past.sum() < FEWEST or table.spans_now == 0 or table.now.sum() == 0:
        return []
    own, bad = logs.about[table.templates] < 0, logs.bad[table.templates]
    found = [
        _new(logs, table, bad, own, most),
        _more(logs, table, bad & own, most),
        _missing(logs, table, bad, most),
    ]
    return [one for one in found if one is not None]


def _sign(logs: Logs, table: Table, kind: int, row: int, expected: float, support: float) -> Sign:
    text = logs.texts[int(table.templates[row])]
    before, count = int(table.past[row].sum()), float(table.now[row])
    return Sign(KINDS[kind], text, before, expected, count, support)


def _new(logs: Logs, table: Table, bad: Flags, own: Flags, most: float) -> Sign | None:
    unseen = table.past.sum(axis=1) == 0
    alone = (table.past > 0).sum(axis=1) == 1
    past = float(table.spans.sum())
    usually = (
        np.where(alone[:, None], table.past, 0.0).max(axis=0, initial=0.0).sum()
        if table.past.shape[1] > 1
        else 0.5
    )
    surprise = (usually + 0.5) / (past + SURPRISE_TRUST)
    best: Sign | None = None
    for chosen, limit in ((unseen & bad & own, most), (unseen & ~bad & own, min(most, MOST_PLAIN))):
        if not chosen.any():
            continue
        row = int(np.flatnonzero(chosen)[np.argmax(table.now[chosen])])
        hit = min(float(table.now[row]), table.spans_now)
        weight = novelty(*(np.array([one]) for one in (hit, table.spans_now, past, surprise)))
        support = float(min(weight[0], limit, hit))
        if best is None or support > best.support:
            best = _sign(logs, table, 0, row, 0.0, support)
    return best


def _more(logs: Logs, table: Table, bad: Flags, most: float) -> Sign | None:
    known = np.flatnonzero(bad & (table.past.sum(axis=1) > 0))
    if not len(known):
        return None
    rate = (table.past[known].sum(axis=1) + 0.5) / table.spans.sum()
    expected = rate * table.spans_now
    wide = BURSTS**2 + 1.0 / (table.past[known].sum(axis=1) + 0.5) + _overdispersion(table, known)
    support = _weighed(table.now[known], expected, wide, MORE)
    support = np.where(table.now[known] > expected, support, np.minimum(support, 0.0))
    row = int(np.argmax(support))
    limit = min(most, MOST_BURST, float(table.now[known][row]))
    return _sign(logs, table, 1, int(known[row]), float(expected[row]), float(min(support[row], limit)))


def _overdispersion(table: Table, rows: Ints) -> Floats:
    """Variance between windows of the logarithm of rates, as far as they exceed the noise of counts."""
    if table.past.shape[1] < SEVERAL:
        return np.zeros(len(rows))
    expected = table.past[rows].sum(axis=1, keepdims=True) * table.spans / table.spans.sum()
    apart = (table.past[rows] - expected) ** 2 - expected
    return np.asarray(np.maximum(0.0, np.median(apart / np.maximum(expected, 1.0) ** 2, axis=1)))


def _missing(logs: Logs, table: Table, bad: Flags, most: float) -> Sign | None:
    usual = np.flatnonzero(~bad & (table.past.sum(axis=1) >= FEWEST))
    if not len(usual):
        return None
    expected, wide = _promised(table, usual)
    enough = expected >= LEAST_EXPECTED
    if not enough.any():
        return None
    support = np.where(enough, _weighed(table.now[usual], expected, wide, FEWER), 0.0)
    support = np.where(table.now[usual] < expected, support, np.minimum(support, 0.0))
    row = int(np.argmax(support))
    limit = most if table.past.shape[1] >= SEVERAL else min(most, MOST_PLAIN)
    return _sign(logs, table, 2, int(usual[row]), float(expected[row]), float(min(support[row], limit)))


def _promised(table: Table, rows: Ints) -> tuple[Floats, Floats]:
    """Number of records of each template that the others promise, and the variance of the logarithm of that."""
    past, now = np.vstack([table.past[rows], table.spans]), np.append(table.now[rows], table.spans_now)
    count = len(rows)
    ratio = np.log((past[:count, None, :] + 0.5) / (past[None, :, :] + 0.5))
    middle = np.median(ratio, axis=2)
    if past.shape[1] >= SEVERAL:
        apart = np.quantile(np.abs(ratio - middle[:, :, None]), FARTHEST, axis=2)
    else:
        apart = np.where(np.abs(middle) <= EQUAL, EQUAL, np.inf)
    together = apart <= TOGETHER
    together[np.arange(count), np.arange(count)] = False
    some = together.any(axis=1)
    promised = np.where(together, np.exp(middle) * now[None, :], np.nan)
    promised[~some] = 0.0
    expected = np.nanquantile(promised, 0.75, axis=1)
    spread = np.where(together, np.maximum(apart, TOGETHER), np.inf).min(axis=1)
    spread[~some] = 1.0
    total = past[:count].sum(axis=1)
    return expected, spread**2 + 1.0 / total + 1.0 / np.maximum(expected, 1.0)


def _weighed(count: Floats, expected: Floats, wide: Floats, factors: Floats) -> Floats:
    """Negative binomial with any of the factors against the same with none; `wide` is the variance of the logarithm of
    the mean."""
    shape, mean = 1.0 / wide, np.maximum(expected, 1e-9)

    def log_likelihood(mean: Floats) -> Floats:
        """Without the terms that do not depend on the mean."""
        return np.asarray(count * np.log(mean) - (count + shape) * np.log(shape + mean))

    under = log_likelihood(np.maximum(np.multiply.outer(factors, mean), 1e-3))
    return np.asarray(logsumexp(under, axis=0) - np.log(len(factors)) - log_likelihood(mean))


def learnt_most(logs: Logs, tables: list[Table]) -> float:
    """The most that one place may say, by how often windows of the history surprise the others."""
    surprises = compared = 0
    for table in tables:
        windows = table.past.shape[1]
        if windows < SEVERAL:
            continue
        for era in range(windows):
            others = np.arange(windows) != era
            one = Table(
                table.templates,
                table.past[:, others],
                table.past[:, era],
                table.spans[others],
                float(table.spans[era]),
            )
            found = signs(logs, one, np.inf)
            compared += 1
            surprises += any(sign.support > SURPRISING for sign in found)
    return strongest_evidence(surprises, compared, COMPARED)


Signs = dict[int, list[Sign]]
"""Signs by number of a service, or of an instance."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The records of a window and its history beside its spans. `most` is the most nats that one place may say;
    `rows` the rows of `logs` by service.
    """

    logs: Logs
    spans: Spans
    quarter: Ints
    most: float
    rows: dict[int, Ints]


def records_of(window: Window, spans: Spans) -> Records | None:
    """None where there are no records of the judged window, or none of any window before it."""
    logs = logs_of(window, spans)
    if logs is None or len(logs.eras) < 2 or logs.eras[-1] != spans.eras - 1:
        return None
    quarter, last = quarter_of(spans), spans.eras - 1
    order = np.argsort(logs.service, kind="stable")
    services, begin = np.unique(logs.service[order], return_index=True)
    rows = dict(zip(services.tolist(), np.split(order, begin[1:]), strict=True))
    by_service, _ = exposure(spans, quarter, 0)
    tables = [table_of(logs, found, by_service[service], last) for service, found in rows.items()]
    return Records(logs, spans, quarter, learnt_most(logs, tables), rows)


def reach_of(spans: Spans) -> Flags:
    """Services that call others, directly or not, of shape (services, services); none itself."""
    count = len(spans.services)
    reach = np.zeros((count, count), dtype=np.bool_)
    child = np.flatnonzero(spans.parent >= 0)
    reach[spans.service[spans.parent[child]], spans.service[child]] = True
    np.fill_diagonal(reach, False)
    for _ in range(max(1, count.bit_length())):
        reach |= (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    np.fill_diagonal(reach, False)
    return reach


def signs_of_services(records: Records, since: int) -> Signs:
    """By service, from quarter `since` of the judged window on."""
    by_service, _ = exposure(records.spans, records.quarter, since)
    return {
        service: _signs(records, _recent(records, rows, since), by_service[service])
        for service, rows in records.rows.items()
    }


def signs_of_instances(records: Records, since: int, of: Iterable[int]) -> Signs:
    """By instance, each from its own records and spans."""
    logs = records.logs
    _, by_instance = exposure(records.spans, records.quarter, since)
    found = {}
    for instance in of:
        rows = _recent(records, np.flatnonzero(logs.instance == instance), since)
        found[instance] = _signs(records, rows, by_instance[instance])
    return found


def signs_of_others(records: Records, since: int, service: int, instance: int) -> list[Sign]:
    """From the records and spans of the service's other instances."""
    by_service, by_instance = exposure(records.spans, records.quarter, since)
    rows = records.rows.get(service, np.zeros(0, dtype=np.int64))
    rows = _recent(records, rows[records.logs.instance[rows] != instance], since)
    return _signs(records, rows, by_service[service] - by_instance[instance])


def newly_named(records: Records, since: int, service: int) -> frozenset[int]:
    """Other services that records of the service name which no window of the history holds."""
    logs, last = records.logs, records.spans.eras - 1
    rows = records.rows.get(service, np.zeros(0, dtype=np.int64))
    rows = _recent(records, rows[logs.about[logs.template[rows]] >= 0], since)
    before = np.unique(logs.template[rows[logs.era[rows] < last]])
    now = rows[(logs.era[rows] == last) & ~np.isin(logs.template[rows], before)]
    counts = np.bincount(logs.about[logs.template[now]], logs.count[now])
    return frozenset(np.flatnonzero(counts >= FEWEST_NAMED).tolist())


def _recent(records: Records, rows: Ints, since: int) -> Ints:
    logs, last = records.logs, records.spans.eras - 1
    return rows[(logs.era[rows] < last) | (logs.quarter[rows] >= since)]


def _signs(records: Records, rows: Ints, of_spans: np.ndarray) -> list[Sign]:
    if not len(rows):
        return []
    table = table_of(records.logs, rows, of_spans, records.spans.eras - 1)
    return signs(records.logs, table, records.most)
