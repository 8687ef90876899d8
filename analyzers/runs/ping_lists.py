"""Ping lists: whom each endpoint of a training job probes, from the newest skeleton and the registered endpoints.

Without a skeleton the basic list counts: the same rail on all other hosts. Once endpoints are registered, only these
are on the list, source and destination, and their cards probe each other beside them: only probes of both layers tell a
host from its virtual switch. A probe that an incident asks of one of the sources is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from analyzers.builtin.skeletonhunter.analyzer import ENDPOINTS
from analyzers.builtin.skeletonhunter.observed import Endpoint, registered
from analyzers.builtin.skeletonhunter.skeleton import SKELETON, natural, peers, share_of_mesh
from analyzers.contract import Input, Window
from analyzers.runs.models import ProbeRequest, Run, State
from analyzers.runs.probe_requests import requested_probes
from analyzers.runs.results import verdict
from ingest.queries import now_utc, read_window

LOOKED_AT = 12
"""Newest runs that are asked for the skeleton of a job."""
_REGISTERED = Input("registered", ENDPOINTS[:1])
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class PingList:
    """Destinations by source, and those of network cards by card (`underlay`) where the sources are endpoints. `phase`
    is `skeleton` or `basic`; `run` and the measures are those of the skeleton; `share` is that of the full mesh of the
    job's sources.
    """

    job: str
    region: str
    phase: str
    destinations: dict[str, tuple[str, ...]]
    share: float
    run: str | None
    measures: dict[str, Any]
    requested: tuple[ProbeRequest, ...] = ()
    """Probes that incidents ask of the list's sources; their destinations are on the list, too."""
    underlay: dict[str, tuple[str, ...]] = field(default_factory=dict)


def ping_list(job: str, region: str) -> PingList | None:
    """The ping list of a job, None if neither traffic nor an endpoint of it is known."""
    ends = [one for one in _registered(region) if one.job == job]
    found = _skeleton(job, region)
    if found is None:
        if not ends:
            return None
        nics = _by_host(ends)
        lists, phase, run, measures = peers(nics, None, None), "basic", None, dict[str, Any]()
    else:
        table, run, measures = found
        nics = [row[3].split(", ") for row in table]
        stated = all(row[1] is not None for row in table)
        stage, replica = ([int(row[at]) for row in table] if stated else None for at in (1, 2))
        lists, phase = peers(nics, stage, replica), "skeleton" if stated else "basic"
    cards = dict[str, tuple[str, ...]]()
    if ends:
        names = {one.nic: one.name for one in ends}
        cards = {
            source: tuple(one for one in others if one in names)
            for source, others in lists.items()
            if source in names
        }
        lists = {names[source]: tuple(names[one] for one in others) for source, others in cards.items()}
    made = PingList(job, region, phase, lists, share_of_mesh(lists), run, measures, underlay=cards)
    return _with_requested(made)


def _with_requested(found: PingList) -> PingList:
    both = dict(found.destinations), dict(found.underlay)
    requested = tuple(
        one for one in requested_probes(found.region, now_utc()) if one.src in both[0] or one.src in both[1]
    )
    for one in requested:
        lists = both[0] if one.src in both[0] else both[1]
        if one.dst not in lists[one.src]:
            lists[one.src] = (*lists[one.src], one.dst)
    return replace(found, destinations=both[0], underlay=both[1], requested=requested)


def _registered(region: str) -> list[Endpoint]:
    now = now_utc()
    window = Window(
        now, now + _MOMENT, region, "registered", read_window(_REGISTERED, region, now, now + _MOMENT)
    )
    found = {one.name: one for one in registered(window).values()}
    return sorted(found.values(), key=lambda one: natural(one.name))


def _by_host(ends: Sequence[Endpoint]) -> list[list[str]]:
    """Cards of each host at the place of their rail."""
    hosts = sorted({one.host for one in ends}, key=natural)
    rails = sorted({one.rail for one in ends})
    at = {(one.host, one.rail): one.nic for one in ends}
    return [[at.get((host, rail), "") for rail in rails] for host in hosts]


def _skeleton(job: str, region: str) -> tuple[list[list[Any]], str, dict[str, Any]] | None:
    """The table of hosts of the newest run that looked at the job's traffic, with the run and its measures."""
    runs = Run.objects.filter(analyzer="skeletonhunter", region=region, state=State.DONE, repeats=None)
    for run in runs.order_by("-window_end", "-created_at")[:LOOKED_AT]:
        body = verdict(run)
        for piece in body["evidence"] if body is not None else ():
            if piece["title"] == SKELETON + job:
                own = body is not None and body["measures"].get("job") == job
                shared = ("dp", "pp", "tp", "confidence")
                measures = (
                    {name: body["measures"][name] for name in shared} if body is not None and own else {}
                )
                return piece["rows"], str(run.pk), measures
    return None
