"""What the floors above may ask of analyzers."""

from analyzers.registry import RegistryError, UnknownAnalyzer
from analyzers.registry import get as analyzer
from analyzers.registry import installed as analyzers
from analyzers.runs.models import Run, Schedule
from analyzers.runs.results import late_rows, runs, runs_with_window_ending, verdict

__all__ = [
    "RegistryError",
    "Run",
    "Schedule",
    "UnknownAnalyzer",
    "analyzer",
    "analyzers",
    "late_rows",
    "runs",
    "runs_with_window_ending",
    "verdict",
]
