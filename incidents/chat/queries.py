"""Queries about chat workspaces."""

from __future__ import annotations

from incidents.chat.models import ChatWorkspace
from incidents.domain.incident.evolve import EVENT_TYPES
from ingest.queries import now_utc, read_all


def broken_workspaces() -> list[str]:
    """Workspaces that are switched on and fail, each with the reason and its cure."""
    rows = ChatWorkspace.objects.filter(active=True).exclude(error="")
    return [f"{row.name}: {row.error}" for row in rows]


def unreadable_workspaces() -> list[str]:
    """Names of workspaces that are switched on and whose secrets cannot be decrypted under the present key."""
    return [row.name for row in ChatWorkspace.objects.filter(active=True) if not row.readable]


def lag_of(workspace: ChatWorkspace) -> float:
    """Seconds since the oldest event was recorded that its messages do not have; 0 at the end of the log."""
    ahead = read_all(workspace.place, 1, EVENT_TYPES)
    return max(0.0, (now_utc() - ahead[0].recorded_at).total_seconds()) if ahead else 0.0
