"""Validation of network changes by relations between the paths before and after: Rela (Xu et al., SIGCOMM 2024).

A specification says which paths of which traffic a change moves; all other traffic stays the same. `check` compares two
snapshots of forwarding with it and answers holds or violated, with a witness path for each rule that is broken.

A change is judged, not a window of telemetry: a path is no sum of rows and a broken rule no component at fault, so
this is no analyzer. The automata of path sets come from `interegular`; one walk over their product with both snapshots
finds the shortest path of every combination of memberships, which is what rules speak of.
"""

from analyzers.rela.snapshots import InvalidSnapshotError, Snapshot, read_snapshot
from analyzers.rela.specification import InvalidSpecificationError
from analyzers.rela.validation import ValidationError, check

__all__ = [
    "InvalidSnapshotError",
    "InvalidSpecificationError",
    "Snapshot",
    "ValidationError",
    "check",
    "read_snapshot",
]
