"""Errors of the client: a line for a person, and the exit code for a script."""

from __future__ import annotations

from typing import Any

FAILED = 1
"""The server failed, answered something unexpected, or a run failed."""
USAGE = 2
"""Wrong arguments, or a value that the server rejects."""
UNREACHABLE = 3
"""No answer from the server."""
DENIED = 4
"""No key, the key is refused, or it lacks a scope."""
NOT_FOUND = 5
"""No such incident, run, schedule or silence."""
CONFLICT = 6
"""The command does not fit the state of the incident."""

BY_STATUS = {400: USAGE, 401: DENIED, 403: DENIED, 404: NOT_FOUND, 409: CONFLICT, 412: CONFLICT}


class ClientError(Exception):
    """A command that failed, with its reason. `code` is the exit code of the process."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


class RunNotFinishedError(ClientError):
    """A run that takes longer than the wait for it; it goes on. `run` is its last state."""

    def __init__(self, run: Any, patience: float) -> None:
        super().__init__(
            f"run {run['id']} is still {run['state']} after {patience:.0f} s and continues; look again later"
        )
        self.run = run
