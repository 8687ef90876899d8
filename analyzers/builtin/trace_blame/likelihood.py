"""Claims of services, or of single instances, on the places that changed.

Every place that changed could have been changed by one or two services. A faulty service changes its places in
groups: its own times, the ways of calls that it answers (`in`), the ways of calls that it makes (`out`), what its
spans do (`new`, `mix`), its log records (`log`) and those of the services that call it, directly or not (`told`: a
caller logs what the called did to it, which proves nothing without something at the called itself). Within a group
each place is changed with a probability that nobody knows; it is averaged over `SHARES`. So a service gains by every
change that it explains and loses by every place of a changed group that stayed as it was: of the two ends of a slow
call the one is blamed whose other calls are slow, too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from analyzers.builtin.trace_blame.load import loads
from analyzers.builtin.trace_blame.logs import (
    Records,
    Signs,
    reach_of,
    records_of,
    signs_of_instances,
    signs_of_others,
    signs_of_services,
)
from analyzers.builtin.trace_blame.missing_spans import Silence, silence_of, unanswered_calls
from analyzers.builtin.trace_blame.normal import (
    Change,
    Habits,
    Normal,
    Odd,
    changes,
    common_shift,
    habits,
    normal_times,
    oddities,
)
from analyzers.builtin.trace_blame.places import Shapes, Times, jitter_us, own_times, shapes, ways
from analyzers.builtin.trace_blame.spans import (
    Flags,
    Floats,
    Ints,
    Spans,
    Timing,
    clock_step,
    spans_of,
    timing_of,
)
from analyzers.contract import Window

SHARES = (0.1, 0.5, 0.9)
"""Probabilities that a fault changes a place of a group it touches, all alike."""

MOST_SUPPORT = 12.0
"""Most that one place can say, in nats: no model of a tail is to be believed further."""

GROUPS = ("own", "in", "out", "new", "mix", "log", "reported")

_OWN = ("own", "in", "out", "new", "mix", "log")
"""Groups of which one must speak for a service before its callers' logs do, which say at most twice
as much."""

MODES = (
    ("own",),
    ("in",),
    ("out",),
    ("in", "out"),
    ("own", "in"),
    ("own", "out"),
    ("own", "in", "out"),
    ("new",),
    ("mix",),
    ("new", "mix"),
    ("own", "in", "out", "new", "mix"),
)
LOG_MODES = (
    ("log",),
    ("own", "log"),
    ("in", "log"),
    ("new", "log"),
    ("in", "new", "log"),
    ("mix", "log"),
    ("log", "reported"),
    ("in", "reported"),
    ("new", "reported"),
    ("mix", "reported"),
    ("in", "log", "reported"),
    ("new", "log", "reported"),
    ("own", "in", "out", "reported"),
    GROUPS,
)
"""Groups that a fault touches together, all alike; those with logs only where there are any."""


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """Rows: service `service` could have changed a place of group `group` whose log Bayes factor is
    `support`.
    """

    service: Ints
    group: Ints
    support: Floats

    def without(self, service: int) -> Claims:
        others = self.service != service
        return Claims(self.service[others], self.group[others], self.support[others])


def scores(claims: Claims, services: int) -> Floats:
    """By service the log Bayes factor of "it is faulty" against "nothing is"."""
    key = claims.service * len(GROUPS) + claims.group
    size = services * len(GROUPS)
    support = np.minimum(claims.support, MOST_SUPPORT)
    by_share = np.zeros((len(SHARES), size))
    for row, share in enumerate(SHARES):
        each = np.logaddexp(np.log(share) + support, np.log1p(-share))
        by_share[row] = np.bincount(key, each, minlength=size)
    touched = (logsumexp(by_share, axis=0) - np.log(len(SHARES))).reshape(services, len(GROUPS))
    own, reported = [GROUPS.index(group) for group in _OWN], GROUPS.index("reported")
    touched[:, reported] = np.minimum(touched[:, reported], 2 * np.maximum(0.0, touched[:, own].max(axis=1)))
    logged = bool((claims.group >= GROUPS.index("log")).any())
    chosen = (*MODES, *LOG_MODES) if logged else MODES
    modes = [touched[:, [GROUPS.index(group) for group in mode]].sum(axis=1) for mode in chosen]
    return np.asarray(logsumexp(np.array(modes), axis=0) - np.log(len(chosen)))


OWN, IN, OUT, NEW, MIX, LOG, REPORTED = range(len(GROUPS))


@dataclass(frozen=True, slots=True, eq=False)
class ObservedWindow:
    """A window with its history, cut into places, and what is normal at each. `reach[a, b]` is whether service a calls
    b, directly or not.
    """

    spans: Spans
    timing: Timing
    own: Times
    way: Times
    call: Times
    shapes: Shapes
    silence: Silence
    own_normal: Normal
    way_normal: Normal
    call_normal: Normal
    habits: Habits
    resolution_us: float
    logs: Records | None
    reach: Flags


def see(window: Window, resolution_us: float, known: ObservedWindow | None = None) -> ObservedWindow:
    spans = spans_of(window)
    timing = timing_of(spans)
    jitter = known.resolution_us if known else jitter_us(spans, timing)
    resolution_us = max(resolution_us, float(clock_step(spans)), jitter)
    silence = silence_of(spans, timing, resolution_us)
    own = own_times(spans, timing, silence.unanswered, resolution_us)
    way = ways(spans, timing, resolution_us)
    call = unanswered_calls(spans, silence, resolution_us)
    done = shapes(spans, timing, silence.served)
    eras, load = spans.eras, loads(spans)
    return ObservedWindow(
        spans,
        timing,
        own,
        way,
        call,
        done,
        silence,
        normal_times(own, eras, load, _own_known(known, spans) if known else None),
        normal_times(way, eras, load, _way_known(known, spans, way) if known else None, by_place=True),
        normal_times(call, eras),
        habits(done, eras),
        resolution_us,
        records_of(window, spans),
        reach_of(spans),
    )


def _own_known(known: ObservedWindow, spans: Spans) -> Normal:
    """Normal own times, for the services as `spans` numbers them."""
    place = {name: i for i, name in enumerate(known.spans.services)}
    return _renumbered(known.own_normal, [place.get(name, -1) for name in spans.services])


def _way_known(known: ObservedWindow, spans: Spans, way: Times) -> Normal:
    """Normal ways, for the places of `way`."""
    place = {name: i for i, name in enumerate(_way_names(known.spans, known.way))}
    return _renumbered(known.way_normal, [place.get(name, -1) for name in _way_names(spans, way)])


def _way_names(spans: Spans, way: Times) -> list[tuple[str, tuple[str, str]]]:
    return [
        (spans.services[client], spans.operations[operation])
        for client, operation in zip(way.client.tolist(), way.operation.tolist(), strict=True)
    ]


def _renumbered(known: Normal, numbers: list[int]) -> Normal:
    """`numbers` are those that `known` has, -1 for what it does not have: any use is as likely there."""
    if known.used is None:
        return known
    used = np.hstack([known.used, np.zeros((len(known.used), 1))])
    return replace(known, used=used[:, numbers])


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """Changes in the judged window from quarter `since` on, by place; and the common shifts of all own times and all
    ways.
    """

    since: int
    own_common: float
    way_common: float
    own: Change
    way: Change
    call: Change
    odd: Odd
    logs: Signs


def _now(seen: ObservedWindow, table: Times | Shapes, since: int) -> Flags:
    return np.asarray((table.era == seen.spans.eras - 1) & (table.quarter >= since))


def weigh(seen: ObservedWindow, since: int) -> Weighed:
    own_rows = np.flatnonzero(_now(seen, seen.own, since))
    way_rows = np.flatnonzero(_now(seen, seen.way, since))
    own_common = common_shift(seen.own, seen.own_normal, own_rows)
    way_common = common_shift(seen.way, seen.way_normal, way_rows)
    own, _ = changes(seen.own, seen.own_normal, own_rows, own_common)
    way, _ = changes(seen.way, seen.way_normal, way_rows, way_common)
    odd, _ = oddities(seen.shapes, seen.habits, np.flatnonzero(_now(seen, seen.shapes, since)))
    call_rows = np.flatnonzero(_now(seen, seen.call, since))
    call, _ = changes(seen.call, seen.call_normal, call_rows, max(own_common, way_common))
    logs = signs_of_services(seen.logs, since) if seen.logs else {}
    return Weighed(since, own_common, way_common, own, way, call, odd, logs)


def at_instance(seen: ObservedWindow, weighed: Weighed, instance: int) -> Weighed:
    """The same places, as the instance alone changed them; calls that callers alone tell of are nobody's."""
    since = weighed.since
    own_rows = _now(seen, seen.own, since) & (seen.own.server_instance == instance)
    way_rows = _now(seen, seen.way, since)
    way_rows &= (seen.way.client_instance == instance) | (seen.way.server_instance == instance)
    odd_rows = _now(seen, seen.shapes, since) & (seen.shapes.instance == instance)
    own, _ = changes(seen.own, seen.own_normal, np.flatnonzero(own_rows), weighed.own_common)
    way, _ = changes(seen.way, seen.way_normal, np.flatnonzero(way_rows), weighed.way_common)
    odd, _ = oddities(seen.shapes, seen.habits, np.flatnonzero(odd_rows))
    logs = signs_of_instances(seen.logs, since, [instance]) if seen.logs else {}
    service = int(seen.spans.service[seen.spans.instance == instance][0])
    return replace(weighed, own=own, way=way, odd=odd, logs={service: logs.get(instance, [])})


def claims_of_services(seen: ObservedWindow, weighed: Weighed, without: Collection[int] = ()) -> Claims:
    """Everything each service could explain; places that `without` could explain are left out. A service that calls one
    of `without`, directly or not, does otherwise because of it.
    """
    gone = np.zeros(len(seen.spans.services), dtype=np.bool_)
    gone[list(without)] = True
    own, way, odd = weighed.own, weighed.way, weighed.odd
    own_at = seen.own.server[own.place]
    client, server = seen.way.client[way.place], seen.way.server[way.place]
    asker, requested = seen.shapes.client[odd.place], seen.shapes.server[odd.place]
    caller, callee = seen.call.client[weighed.call.place], seen.call.server[weighed.call.place]
    present = ~gone[caller] & ~gone[callee]
    free = ~gone[own_at] & ~_retrying(seen, weighed, gone)[own_at]
    own_support = np.where(_waiting(seen, odd)[own_at], np.minimum(own.support, 0.0), own.support)
    clear, alone = ~gone[client] & ~gone[server], ~gone[asker] & ~gone[requested]
    # Only by failing does the called change what its caller does: a call that is not made is the caller's doing.
    between = (asker != requested) & (2 * odd.failed >= odd.unseen)
    alone &= ~_excused(seen, gone)[asker]
    plain = alone & ~seen.shapes.asks[odd.place]
    explained = _explained(seen, weighed)
    new = np.where(explained, np.minimum(odd.new, 0.0), odd.new)
    mix = np.where(explained, np.minimum(odd.mix, 0.0), odd.mix)
    rows = [
        _claims(own_at[free], OWN, own_support[free]),
        _claims(server[clear], IN, way.support[clear]),
        _claims(client[clear], OUT, way.support[clear]),
        _claims(callee[present], IN, weighed.call.support[present]),
        _claims(caller[present], OUT, weighed.call.support[present]),
        _claims(asker[alone & ~between], NEW, new[alone & ~between]),
        _claims(asker[alone & between], OUT, odd.new[alone & between]),
        _claims(requested[alone & between], IN, odd.new[alone & between]),
        _claims(asker[plain], MIX, mix[plain]),
        *_changed_mix_claims(seen, asker[plain], np.where(odd.erring, 0.0, mix)[plain], gone),
        *_logged(seen, weighed.logs, gone),
        *_new_error_claims(seen, asker[alone & ~between], odd.new[alone & ~between]),
    ]
    return _joined(rows)


def _excused(seen: ObservedWindow, gone: Flags) -> Flags:
    """By service, whether it is one of `gone` or calls one, directly or not: then it ends and logs otherwise because
    of that, with all its instances.
    """
    return np.asarray(gone | seen.reach[:, gone].any(axis=1))


FAILING = 2.0
"""Nats from which on a called service fails more than usual."""


def _explained(seen: ObservedWindow, weighed: Weighed) -> Flags:
    """Places of services that end otherwise, without errors of their own, and call a service, directly or not, that
    fails more than usual: it need not say so in all of its spans, and they end as they do because of it.
    """
    odd, place = weighed.odd, seen.shapes
    client = place.client[odd.place]
    alone = client == place.server[odd.place]
    worse = np.zeros(len(seen.spans.services), dtype=np.bool_)
    new = (2 * odd.failed >= odd.unseen) & (odd.new >= FAILING)
    more: Flags = np.asarray(new | (odd.erring & (odd.mix >= FAILING)))
    worse[client[alone & more]] = True
    below: Flags = np.asarray(seen.reach[:, worse].any(axis=1))
    return np.asarray(~more & below[client])


def _waiting(seen: ObservedWindow, odd: Odd) -> Flags:
    """By service, whether it calls, directly or not, one whose own spans end otherwise than before: then it takes
    longer itself, since it may wait before it tries again, and that says nothing of it.
    """
    client = seen.shapes.client[odd.place]
    speaking = (client == seen.shapes.server[odd.place]) & (np.maximum(odd.new, odd.mix) >= FAILING)
    changed = np.zeros(len(seen.spans.services), dtype=np.bool_)
    changed[client[speaking]] = True
    return np.asarray(seen.reach[:, changed].any(axis=1))


def _retrying(seen: ObservedWindow, weighed: Weighed, gone: Flags) -> Flags:
    """By service, whether it calls, directly or not, one of `gone` that does or logs what it did not before: then it
    takes longer itself, since it waits before it tries again.
    """
    odd, done = weighed.odd, seen.shapes
    failing = np.zeros(len(gone), dtype=np.bool_)
    speaking = np.maximum(odd.new, odd.mix) > 0
    failing[done.client[odd.place[speaking]]] = True
    failing[done.server[odd.place[speaking]]] = True
    failing[[service for service, signs in weighed.logs.items() if any(one.support > 0 for one in signs)]] = (
        True
    )
    return np.asarray(seen.reach[:, failing & gone].any(axis=1))


def _changed_mix_claims(seen: ObservedWindow, service: Ints, mix: Floats, gone: Flags) -> list[Claims]:
    """Another mix of what a service does may come from whoever calls it: it is their claim, too, and one change, in
    however many of its operations it shows.
    """
    now = seen.way.place[seen.way.era == seen.spans.eras - 1]
    pairs = np.unique(seen.way.client[now] * len(gone) + seen.way.server[now])
    found = []
    for client, server in zip((pairs // len(gone)).tolist(), (pairs % len(gone)).tolist(), strict=True):
        mine = (service == server) & (mix > 0)
        if client != server and not gone[client] and mine.any():
            found.append(_claims(np.array([client]), MIX, mix[mine].max(keepdims=True)))
    return found


def _logged(seen: ObservedWindow, logs: Signs, gone: Flags) -> list[Claims]:
    """Signs in logs are their writer's, and for what speaks for a fault those whom it calls, directly or not, have a
    claim, too. What one of `gone` explains is left out.
    """
    found: list[Claims] = []
    excused = _excused(seen, gone)
    for service, signs in logs.items():
        if not signs or excused[service]:
            continue
        support = np.array([sign.support for sign in signs])
        found.append(_claims(np.full(len(signs), service), LOG, support))
        called, speaking = np.flatnonzero(seen.reach[service]), support[support > 0]
        found.append(_claims(np.repeat(called, len(speaking)), REPORTED, np.tile(speaking, len(called))))
    return found


def _new_error_claims(seen: ObservedWindow, service: Ints, new: Floats) -> list[Claims]:
    """Claims of the services that a service with new outcomes calls: it may end otherwise because one of them
    failed, whether or not its own spans say so.
    """
    return [
        _claims(called, REPORTED, np.full(len(called), new[row]))
        for row in np.flatnonzero(new > 0).tolist()
        if len(called := np.flatnonzero(seen.reach[service[row]]))
    ]


def claims_of_instances(
    seen: ObservedWindow, weighed: Weighed, of: Ints, without: Collection[int] = ()
) -> Claims:
    """The same for every instance in `of`, from its own spans and records alone; here `service` numbers instances."""
    gone = np.zeros(len(seen.spans.services), dtype=np.bool_)
    gone[list(without)] = True
    requested = np.zeros(len(seen.spans.instances), dtype=np.bool_)
    requested[of] = True
    since = weighed.since
    rows = []
    for table, normal, common, group, side in (
        (seen.own, seen.own_normal, weighed.own_common, OWN, seen.own.server_instance),
        (seen.way, seen.way_normal, weighed.way_common, IN, seen.way.server_instance),
        (seen.way, seen.way_normal, weighed.way_common, OUT, seen.way.client_instance),
    ):
        clear = ~(gone[table.client] | gone[table.server])[table.place]
        if group == OWN:
            clear &= ~_retrying(seen, weighed, gone)[table.server][table.place]
        at = np.flatnonzero(_now(seen, table, since) & requested[side] & clear)
        change, cell = changes(table, normal, at, common, side)
        support = change.support
        if group == OWN:
            waits = _waiting(seen, weighed.odd)[table.server[change.place]]
            support = np.where(waits, np.minimum(support, 0.0), support)
        rows.append(_claims(side[cell], group, support))
    done, excused = seen.shapes, _excused(seen, gone)
    alone = ((done.client == done.server) & ~excused[done.client])[done.place]
    at = np.flatnonzero(_now(seen, done, since) & requested[done.instance] & alone)
    odd, cell = oddities(done, seen.habits, at, by_instance=True)
    explained = np.isin(odd.place, weighed.odd.place[_explained(seen, weighed)])
    rows.append(_claims(done.instance[cell], NEW, np.where(explained, np.minimum(odd.new, 0.0), odd.new)))
    if seen.logs:
        writers = of[~excused[_service_of_instances(seen)[of]]]
        for instance, signs in signs_of_instances(seen.logs, since, writers.tolist()).items():
            support = np.array([sign.support for sign in signs])
            rows.append(_claims(np.full(len(signs), instance), LOG, support))
    return _joined(rows)


def claims_of_others(
    seen: ObservedWindow, weighed: Weighed, service: int, instance: int, without: Collection[int] = ()
) -> Claims:
    """Claims that the service's other instances could explain, from all that did not touch the instance."""
    gone = np.zeros(len(seen.spans.services), dtype=np.bool_)
    gone[list(without)] = True
    own, way, done, since = seen.own, seen.way, seen.shapes, weighed.since
    rows = []
    at = _now(seen, own, since) & (own.server[own.place] == service) & (own.server_instance != instance)
    change, _ = changes(own, seen.own_normal, np.flatnonzero(at), weighed.own_common)
    rows.append(_claims(np.full(len(change.place), service), OWN, change.support))
    apart = (way.server_instance != instance) & (way.client_instance != instance)
    apart &= ~(gone[way.client] | gone[way.server])[way.place]
    for group, side in ((IN, way.server), (OUT, way.client)):
        at = _now(seen, way, since) & (side[way.place] == service) & apart
        change, _ = changes(way, seen.way_normal, np.flatnonzero(at), weighed.way_common)
        rows.append(_claims(np.full(len(change.place), service), group, change.support))
    if _excused(seen, gone)[service]:
        return _joined(rows)
    at = _now(seen, done, since) & (done.client[done.place] == service) & (done.instance != instance)
    odd, _ = oddities(done, seen.habits, np.flatnonzero(at))
    rows.append(_claims(np.full(len(odd.place), service), NEW, odd.new))
    if seen.logs:
        signs = signs_of_others(seen.logs, since, service, instance)
        rows.append(_claims(np.full(len(signs), service), LOG, np.array([one.support for one in signs])))
    return _joined(rows)


def _service_of_instances(seen: ObservedWindow) -> Ints:
    service = np.zeros(len(seen.spans.instances), dtype=np.int64)
    service[seen.spans.instance] = seen.spans.service
    return service


def _claims(subject: Ints, group: int, support: Floats) -> Claims:
    return Claims(subject.astype(np.int64), np.full(len(subject), group), support)


def _joined(rows: list[Claims]) -> Claims:
    return Claims(
        np.concatenate([one.service for one in rows]),
        np.concatenate([one.group for one in rows]),
        np.concatenate([one.support for one in rows]),
    )
