"""A sender as any monitoring system's would be: it posts batches until each is acknowledged."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from http.cookiejar import CookieJar
from typing import Any

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 4.0  # seconds between attempts
TIMEOUT = 60.0
LATER = frozenset({408, 425, 429, 500, 502, 503, 504})


class RequestRejectedError(RuntimeError):
    """The server said that the request itself is wrong; sending it again would not help."""


class SenderStoppedError(Exception):
    """The sender was stopped while it waited."""


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

    def post(self, path: str, body: Any) -> Any:
        """Send JSON. An answer that is lost repeats the request."""
        return self._ask(path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def put(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._ask(path, json.dumps(body).encode(), {"Content-Type": "application/json"}, "PUT")

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._ask(path, json.dumps(body).encode(), {"Content-Type": "application/json"}, "PATCH")

    def get(self, path: str) -> Any:
        return self._ask(path, None, {})

    def _ask(self, path: str, body: bytes | None, headers: dict[str, str], method: str | None = None) -> Any:
        pause = FIRST_PAUSE
        while not self.stop.is_set():
            request = urllib.request.Request(self.address + path, body, headers, method=method)
            try:
                with self._open(request) as response:
                    answer = response.read()
                    return json.loads(answer) if answer else None
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

    def _open(self, request: urllib.request.Request) -> Any:
        request.add_header("Authorization", f"Bearer {self.key}")
        return urllib.request.urlopen(request, timeout=TIMEOUT)


class PersonSender(Sender):
    """A person at the API: signs in as a browser does, so that what they do has their name."""

    def __init__(self, address: str, name: str, password: str, stop: threading.Event) -> None:
        super().__init__(address, "", stop)
        self.name, self.password = name, password
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def _open(self, request: urllib.request.Request) -> Any:
        if not self._cookie("sessionid"):
            self._sign_in()
        request.add_header("X-CSRFToken", self._cookie("csrftoken"))
        return self.opener.open(request, timeout=TIMEOUT)

    def _sign_in(self) -> None:
        page = f"{self.address}/accounts/login/"
        self.opener.open(page, timeout=TIMEOUT).close()
        form = {
            "login": self.name,
            "password": self.password,
            "csrfmiddlewaretoken": self._cookie("csrftoken"),
        }
        self.opener.open(page, urllib.parse.urlencode(form).encode(), timeout=TIMEOUT).close()
        if not self._cookie("sessionid"):
            raise RequestRejectedError(f"{self.name} could not sign in at {page}")

    def _cookie(self, name: str) -> str:
        return next((one.value or "" for one in self.cookies if one.name == name), "")
