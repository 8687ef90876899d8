"""What the floors above may ask of analyzers."""

from analyzers.registry import RegistryError, UnknownAnalyzer
from analyzers.registry import get as analyzer
from analyzers.registry import installed as analyzers
from analyzers.runs.coverage import Seen, seen
from analyzers.runs.models import Run, Schedule
from analyzers.runs.results import judged_over, late_rows, runs, runs_with_window_ending, verdict
from analyzers.runs.scoring import Share, median_of

__all__ = [
    "RegistryError",
    "Run",
    "Schedule",
    "Seen",
    "Share",
    "UnknownAnalyzer",
    "analyzer",
    "analyzers",
    "judged_over",
    "late_rows",
    "median_of",
    "runs",
    "runs_with_window_ending",
    "seen",
    "verdict",
]
