"""Incidents of nodes and of training jobs, by the kinds of their components: which can be handed to a cluster, and for
which options to mitigate are compared. Pure."""

from __future__ import annotations

from typing import Final

from incidents.domain.incident.state import Incident

NODE_KINDS: Final = ("node", "host")
"""The kinds of components that are nodes."""
PART_KINDS: Final = frozenset(
    {
        "gpu",
        "slot",
        "nic",
        "rnic",
        "hca",
        "dpu",
        "nvme",
        "disk",
        "dimm",
        "cpu",
        "nvlink",
        "pcie",
        "psu",
        "fan",
    }
)
"""Those of parts of a node."""
PROCESS_KINDS: Final = frozenset({"rank", "rank_tx", "rank_rx", "channel", "worker"})
"""Those of processes of a training job."""
TRAINING: Final = frozenset({"c4d", "perftracker", "skeletonhunter", "straggler"})
"""Analyzers of training jobs."""


def is_part(component: str) -> bool:
    """Whether a component is a part of a node."""
    return _kind(component) in PART_KINDS


def is_of_a_node(component: str | None) -> bool:
    """Whether a component can be handed to a cluster: a node, or a part of one."""
    return component is not None and (_kind(component) in NODE_KINDS or is_part(component))


def blamed_nodes(incident: Incident) -> list[str]:
    """The components that the incident blames and that can be handed to a cluster, the leading one first."""
    named = [incident.component, *incident.ambiguous_with, *sorted(incident.cause)]
    return [name for name in dict.fromkeys(named) if name is not None and is_of_a_node(name)]


def can_be_mitigated(incident: Incident) -> bool:
    """Whether the incident is about a node, a part of one or a process of a job, or an analyzer of training jobs blames
    its component."""
    if incident.component is None or incident.merged_into is not None:
        return False
    blames = any(name in TRAINING and one.stance == "blames" for name, one in incident.opinions.items())
    return blames or is_of_a_node(incident.component) or _kind(incident.component) in PROCESS_KINDS


def _kind(component: str) -> str:
    return component.partition("/")[0]
