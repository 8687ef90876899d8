"""The teams and routes that a new installation starts with; people edit them from there."""

from __future__ import annotations

from typing import Final

TEAMS: Final = (
    ("network", "Network", "Switches, links and everything between the racks"),
    ("storage", "Storage", "Storage clusters and disks"),
    ("compute", "Compute", "Compute clusters, hosts and virtual machines"),
    ("services", "Services", "Services and their instances"),
    ("on-call", "On-call", "Incidents without a matching rule"),
)
DEFAULT_TEAM: Final = "on-call"
ROUTES: Final = (
    ("tor/*", "network"),
    ("t2/*", "network"),
    ("t3/*", "network"),
    ("link/*", "network"),
    ("network/*", "network"),
    ("switch/*", "network"),
    ("storage_cluster/*", "storage"),
    ("disk/*", "storage"),
    ("compute_cluster/*", "compute"),
    ("host/*", "compute"),
    ("vm/*", "compute"),
    ("node/*", "compute"),
    ("service/*", "services"),
    ("instance/*", "services"),
    ("process/*", "services"),
    ("gpu/*", "compute"),
    ("nic/*", "compute"),
    ("rank/*", "compute"),
    ("worker/*", "compute"),
)
