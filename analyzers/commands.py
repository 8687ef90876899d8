"""What the floors above may have analyzers do."""

from analyzers.runs.requests import BadRun, NotRepeatable, Wanted, request_rerun, request_run

__all__ = ["BadRun", "NotRepeatable", "Wanted", "request_rerun", "request_run"]
