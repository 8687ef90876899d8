"""Queries of the layers above about analyzers."""

from analyzers.calculators import CALCULATORS, Bar, Calculator, Curve, Range
from analyzers.calculators import answer as what_if_answer
from analyzers.calculators import read as what_if_inputs
from analyzers.contract import Sums
from analyzers.registry import RegistryError, UnknownAnalyzerError
from analyzers.registry import get as analyzer
from analyzers.registry import installed as analyzers
from analyzers.registry import problems as analyzer_problems
from analyzers.runner import AnalysisError
from analyzers.runs.evidence_export import EvidenceExportError, evidence_file, evidence_key
from analyzers.runs.evidence_file import Subject as EvidenceSubject
from analyzers.runs.models import Run, Schedule
from analyzers.runs.node_forecasts import NodeAtRisk, NodeForecast, forecast_of, node_forecast
from analyzers.runs.replay import (
    NothingToReplayError,
    Replay,
    Replayed,
    judge_span,
    regions_of_analyzer,
    replay,
    replay_windows,
)
from analyzers.runs.results import (
    Outcomes,
    is_installed,
    is_repeatable,
    judged_over,
    judged_until,
    late_rows,
    newest_run,
    outcomes,
    runs,
    runs_with_window_ending,
    verdict,
)
from analyzers.runs.scheduler import (
    Wait,
    faulty_analyzers,
    kinds_of,
    kinds_read,
    schedule_waits,
    telemetry_behind,
    telemetry_span,
)
from analyzers.runs.scoring import Cause, Judged, Named, Rule, Score, Share, score
from analyzers.runs.windows import WindowSums, seen, stored_sums, sums_as_rows

__all__ = [
    "CALCULATORS",
    "AnalysisError",
    "Bar",
    "Calculator",
    "Cause",
    "Curve",
    "EvidenceExportError",
    "EvidenceSubject",
    "Judged",
    "Named",
    "NodeAtRisk",
    "NodeForecast",
    "NothingToReplayError",
    "Outcomes",
    "Range",
    "RegistryError",
    "Replay",
    "Replayed",
    "Rule",
    "Run",
    "Schedule",
    "Score",
    "Share",
    "Sums",
    "UnknownAnalyzerError",
    "Wait",
    "WindowSums",
    "analyzer",
    "analyzer_problems",
    "analyzers",
    "evidence_file",
    "evidence_key",
    "faulty_analyzers",
    "forecast_of",
    "is_installed",
    "is_repeatable",
    "judge_span",
    "judged_over",
    "judged_until",
    "kinds_of",
    "kinds_read",
    "late_rows",
    "newest_run",
    "node_forecast",
    "outcomes",
    "regions_of_analyzer",
    "replay",
    "replay_windows",
    "runs",
    "runs_with_window_ending",
    "schedule_waits",
    "score",
    "seen",
    "stored_sums",
    "sums_as_rows",
    "telemetry_behind",
    "telemetry_span",
    "verdict",
    "what_if_answer",
    "what_if_inputs",
]
