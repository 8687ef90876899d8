"""What the floors above may have analyzers do."""

from analyzers.params import BadParam, check_params, describe, parse_params
from analyzers.runs.backfill import PastRun, record_past_run
from analyzers.runs.management.line_command import Failed, LineCommand, Refused
from analyzers.runs.requests import BadRun, NotRepeatable, Wanted, request_rerun, request_run
from analyzers.runs.timing import parse_span, span_text

__all__ = [
    "BadParam",
    "BadRun",
    "Failed",
    "LineCommand",
    "NotRepeatable",
    "PastRun",
    "Refused",
    "Wanted",
    "check_params",
    "describe",
    "parse_params",
    "parse_span",
    "record_past_run",
    "request_rerun",
    "request_run",
    "span_text",
]
