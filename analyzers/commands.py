"""Commands of the layers above on analyzers."""

from analyzers.contract import InvalidParameterError, check_params, describe
from analyzers.runs.execution import PastRun, record_past_run
from analyzers.runs.management.line_command import (
    CommandFailedError,
    CommandInputError,
    LineCommand,
    parse_params,
)
from analyzers.runs.probe_requests import request_probe, withdraw_probes
from analyzers.runs.requests import (
    InvalidRunError,
    RunNotRepeatableError,
    RunRequest,
    request_rerun,
    request_run,
)
from analyzers.runs.timing import parse_span, span_text

__all__ = [
    "CommandFailedError",
    "CommandInputError",
    "InvalidParameterError",
    "InvalidRunError",
    "LineCommand",
    "PastRun",
    "RunNotRepeatableError",
    "RunRequest",
    "check_params",
    "describe",
    "parse_params",
    "parse_span",
    "record_past_run",
    "request_probe",
    "request_rerun",
    "request_run",
    "span_text",
    "withdraw_probes",
]
