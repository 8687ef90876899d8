"""The HTTP API of a Dossier: requests with a key, and errors in one line."""

from __future__ import annotations

import http.client
import io
import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from . import __version__
from .errors import BY_STATUS, DENIED, FAILED, UNREACHABLE, ClientError
from .settings import Account

PATIENCE = 30.0
"""Seconds without a byte after which a request fails."""
STREAM_PATIENCE = 45.0
"""Seconds without a byte after which a stream of live updates is taken for dead; its heartbeat is 15."""
PAGE = 200
"""Most incidents of one answer."""

Query = Iterable[tuple[str, str]]


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would carry the key to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Server:
    """A Dossier and a key for it."""

    def __init__(self, account: Account) -> None:
        self.url, self._key = account.url, account.key
        self._opener = urllib.request.build_opener(NoRedirect)

    def get(self, path: str, query: Query = ()) -> Any:
        """The JSON at a path below /api/v1/. Raises ClientError."""
        given = urlencode(list(query))
        return self._json(self._request("GET", f"{path}?{given}" if given else path))

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer to a command. Raises ClientError."""
        return self._json(self._request("POST", path, body or {}))

    def delete(self, path: str) -> Any:
        """The answer to a removal. Raises ClientError."""
        return self._json(self._request("DELETE", path))

    def incident(self, reference: str, rest: str = "", query: Query = ()) -> Any:
        """An incident by number or id, or what belongs to it (`events`, `evidence`, `alerts`)."""
        return self.get(incident_path(reference, rest), query)

    def incidents(self, query: Query, most: int) -> tuple[list[Any], bool]:
        """The first `most` incidents that fit, over pages, and whether there are more."""
        wanted: list[tuple[str, str]] = [*query, ("limit", str(min(most, PAGE)))]
        found: list[Any] = []
        while True:
            page = self.get("incidents", wanted)
            found += page["results"]
            if page["next"] is None or len(found) >= most:
                return found[:most], page["next"] is not None or len(found) > most
            # Of the address only the query: behind a proxy its host may be another.
            wanted = parse_qsl(urlsplit(page["next"]).query)

    def live(self, after: str) -> Iterator[tuple[str, str, Any]]:
        """Live updates from log position `after` ("": from now): event, position, data. The first one is `open`, when
        the stream is. Ends when the stream does.

        Raises ClientError.
        """
        place = self.get("live")
        query = urlencode({"token": place["token"], "after": after})
        request = urllib.request.Request(f"{place['url']}?{query}", headers=_headers("text/event-stream"))
        with closing(self._open(request, STREAM_PATIENCE)) as stream:
            yield "open", after, {}
            try:
                yield from messages(line.decode(errors="replace").rstrip("\r\n") for line in stream)
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise ClientError(f"live updates ended: {_reason(error)}", UNREACHABLE) from None

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> io.BufferedIOBase:
        headers = {**_headers("application/json"), "Authorization": f"Bearer {self._key}"}
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        address = f"{self.url}/api/v1/{path}"
        return self._open(urllib.request.Request(address, data, headers, method=method), PATIENCE)

    def _open(self, request: urllib.request.Request, patience: float) -> io.BufferedIOBase:
        try:
            answer: io.BufferedIOBase = self._opener.open(request, timeout=patience)
        except urllib.error.HTTPError as error:
            with error:
                raise self.refusal(error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            place = urlsplit(request.full_url)
            reached = f"{place.scheme}://{place.netloc}"
            raise ClientError(f"cannot reach {reached}: {_reason(error)}", UNREACHABLE) from None
        return answer

    def _json(self, answer: io.BufferedIOBase) -> Any:
        with closing(answer):
            try:
                return json.loads(answer.read() or b"null")
            except ValueError:
                raise ClientError(
                    f"{self.url} did not answer with JSON; check that it is the address of a Dossier"
                ) from None
            except (OSError, http.client.HTTPException) as error:
                raise ClientError(f"{self.url} broke off: {_reason(error)}", UNREACHABLE) from None

    def refusal(self, error: urllib.error.HTTPError) -> ClientError:
        """The error for an answer that is not 2xx."""
        code = BY_STATUS.get(error.code, FAILED)
        if 300 <= error.code < 400:
            target = urlsplit(error.headers.get("Location", ""))
            return ClientError(f"{self.url} redirects to {target.scheme}://{target.netloc}; log in there")
        text = problem_text(_body(error))
        if not text:
            doubt = "" if error.code >= 500 else "; check that it is the address of a Dossier"
            return ClientError(f"{self.url} answers {error.code} {error.reason}{doubt}")
        if error.code == 401:
            return ClientError(f"the key is refused: {text} Run: dossier login {self.url}", DENIED)
        return ClientError(text, code)


def incident_path(reference: str, rest: str = "") -> str:
    """The path of an incident below /api/v1/; `#12` is 12."""
    path = f"incidents/{quote(reference.removeprefix('#'), safe='')}"
    return f"{path}/{rest}" if rest else path


def messages(lines: Iterable[str]) -> Iterator[tuple[str, str, Any]]:
    """Server-sent events of a stream's lines: event, id, and its data as JSON. Comments are passed over."""
    event, id, data = "", "", ""
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                event = value
            case "id":
                id = value
            case "data":
                data += value
        if not line and event:
            yield event, id, json.loads(data or "{}")
            event, data = "", ""


def problem_text(body: bytes) -> str:
    """An RFC 9457 problem in one line: the reasons of its fields, else its detail. Empty where it is none."""
    try:
        found = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(found, dict):
        return ""
    if errors := found.get("errors"):
        return "; ".join(_field_errors(errors)) if isinstance(errors, dict) else str(errors)
    return str(found.get("detail") or found.get("title") or "")


def _field_errors(errors: Mapping[str, Any]) -> Iterator[str]:
    for name, reasons in errors.items():
        texts = reasons if isinstance(reasons, list) else [reasons]
        yield f"{name}: {', '.join(map(str, texts))}"


def _headers(accept: str) -> dict[str, str]:
    return {"Accept": accept, "User-Agent": f"dossier-client/{__version__}"}


def _body(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(100_000)
    except (OSError, http.client.HTTPException):
        return b""


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason) or type(error).__name__
