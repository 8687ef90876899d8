"""A sender as any monitoring system's would be: it posts batches until each is acknowledged."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 4.0  # seconds between attempts
TIMEOUT = 60.0
LATER = frozenset({408, 425, 429, 500, 502, 503, 504})


class RequestRejectedError(RuntimeError):
    """The server said that the request itself is wrong; sending it again would not help."""


class SenderStoppedError(Exception):
    """The sender was told to stop while it waited."""


class Sender:
    """Talks to the API of the Dossier at `address` with an integration key."""

    def __init__(self, address: str, key: str, stop: threading.Event) -> None:
        self.address, self.key, self.stop = address, key, stop

    def post_rows(self, kind: str, rows: list[dict[str, Any]], idempotency_key: str) -> str:
        """Send rows until the endpoint has committed them; returns the receipt.

        Each attempt carries the same Idempotency-Key: an answer that was lost with a killed server doubles
        nothing.
        """
        body = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": idempotency_key}
        return str(self._ask(f"/api/v1/telemetry/{kind}", body, headers)["receipt"])

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send one JSON object. An answer that is lost repeats the request."""
        return self._ask(path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def get(self, path: str) -> Any:
        return self._ask(path, None, {})

    def _ask(self, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
        pause = FIRST_PAUSE
        while not self.stop.is_set():
            request = urllib.request.Request(self.address + path, body, headers)
            request.add_header("Authorization", f"Bearer {self.key}")
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                if error.code not in LATER:
                    raise RequestRejectedError(
                        f"{path} answered {error.code}: {error.read(2000).decode()}"
                    ) from error
            except (OSError, HTTPException):
                pass  # nobody there, or gone in the middle of the answer
            self.stop.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        raise SenderStoppedError
