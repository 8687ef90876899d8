"""How much the log records of a service speak for a fault: new ones, more bad ones, missing ones.

*New*: templates that no window of the history holds. The most frequent of them says how many requests they belong to
(a trace of a stack is many records of one request); that number, of the service's spans, is weighed like outcomes never
seen (`normal.novelty`).

*More*: bad ones that the history knows. Their number is negative binomial around the history's rate a span; under a
fault the rate is 2 to 1,000 times as high.

*Missing*: records that usually come together ("received", "completed"; invariants of logs, Lou et al., USENIX ATC
2010).
A record is expected as often as those that its number followed in the history, and a record that followed none is never
missing: what is asked for changes. The upper quartile of what they promise counts, because an early return silences
many at once. Under a fault any share of them is missing.

A bad or new record that names another service tells of that one, and does not accuse its writer.

Each is one place a service, however many templates show it: they are one event. No place says more than the history's
own surprises allow (`normal.most_said`): every window of the history is weighed by the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from analyzers.builtin.trace_blame.logs import Logs
from analyzers.builtin.trace_blame.normal import novelty, strongest_evidence
from analyzers.builtin.trace_blame.spans import Flags, Floats, Ints, Spans

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
    """What the records of a service show: one of `KINDS`, the template that shows it most, how many were expected and
    how many came, and the nats for a fault.
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
    """What the judged window shows, of each kind at most one; nothing where the history is too short to say."""
    if table.past.sum() < FEWEST or table.spans_now == 0 or table.now.sum() == 0:
        return []
    own, bad = ~logs.other[table.templates], logs.bad[table.templates]
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
    """How many records of each template the others promise, and the variance of the logarithm of that."""
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
