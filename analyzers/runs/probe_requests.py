"""Probes that incidents ask agents for, on the ping lists until they are answered or over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from analyzers.runs.models import ProbeRequest


def request_probe(
    incident: int,
    question: str,
    region: str,
    path: tuple[str, str, Sequence[str]],
    packets: int,
    until: datetime,
    now: datetime,
) -> None:
    """Puts a probe on the ping lists of a region: `path` is source, destination and hops. A second request of the same
    question moves its end."""
    ProbeRequest.objects.filter(until__lte=now).delete()
    src, dst, hops = path
    values = {
        "region": region,
        "src": src,
        "dst": dst,
        "hops": list(hops),
        "packets": packets,
        "until": until,
    }
    ProbeRequest.objects.update_or_create(incident=incident, question=question, defaults=values)


def withdraw_probes(incident: int, question: str | None = None) -> None:
    """Takes one question of an incident, or all, from the ping lists."""
    found = ProbeRequest.objects.filter(incident=incident)
    (found if question is None else found.filter(question=question)).delete()


def requested_probes(region: str, now: datetime) -> list[ProbeRequest]:
    """Probes for the agents of a region, by source and destination."""
    found = ProbeRequest.objects.filter(region=region, until__gt=now)
    return list(found.order_by("src", "dst", "incident", "question"))
