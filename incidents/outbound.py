"""HTTP to addresses that people typed: webhooks, chat, whatever a person may configure.

The name is resolved once, every address it has is checked (`incidents.domain.addresses`), and the connection goes to
an address that was checked, so that a name cannot point elsewhere a moment later (DNS rebinding). Redirects are not
followed, proxies of the environment are not asked. The deadline holds for all of it, also for a receiver that trickles.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address

import certifi
import urllib3
from django.conf import settings
from urllib3.connection import HTTPConnection, HTTPSConnection

from incidents.domain.addresses import AddressRefusedError, IPAddress, Network, Target, check, target

__all__ = ["AddressRefusedError", "Reply", "UnreachableError", "allowed", "post"]

TIMEOUT = 10.0
"""Seconds for name, connection, request and answer together, unless told otherwise."""
KEPT = 2_000
"""Bytes of an answer that are kept."""

_PASSING = frozenset({408, 421, 423, 425, 429})


class UnreachableError(Exception):
    """No answer now: no name, no connection, no trust, no end in time. Another try may do better."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the receiver answered. `headers` have names in lower case, `body` is the beginning of the body."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace").replace("\x00", "�")

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300

    @property
    def passing(self) -> bool:
        """Whether the same request may be taken later (RFC 9110: 408, 429, 5xx and their kin)."""
        return self.status >= 500 or self.status in _PASSING


Resolve = Callable[[str, int], Sequence[str]]


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    timeout: float = TIMEOUT,
    kept: int = KEPT,
    method: str = "POST",
    resolve: Resolve | None = None,
) -> Reply:
    """One request. `AddressRefusedError`: never try again as it is; `UnreachableError`: try later; any status is a
    `Reply`."""
    end = time.monotonic() + timeout
    goal, addresses = allowed(url, end - time.monotonic(), resolve=resolve)
    problem: UnreachableError | None = None
    for tried, address in enumerate(addresses):
        left = end - time.monotonic()
        share = left / (len(addresses) - tried)  # a dead first address leaves time for the second
        connection = _connection(goal, address, max(share, 0.001))
        try:
            connection.connect_until(end)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            connection.close()
            problem = UnreachableError(f"no connection to {goal.authority} at {address}: {_reason(error)}")
            continue
        return _exchange(connection, goal, method, body, dict(headers or {}), end, kept)
    raise problem or UnreachableError(f"{goal.host} has no address")


def allowed(
    url: str, timeout: float = TIMEOUT, *, resolve: Resolve | None = None
) -> tuple[Target, tuple[IPAddress, ...]]:
    """The URL in parts and the addresses to reach it at, all checked; `AddressRefusedError`, or `UnreachableError`
    without an answer.

    One address that is not allowed refuses them all: which one a connection takes would be chance.
    """
    goal = target(url)
    found = tuple(dict.fromkeys((resolve or _within(timeout))(goal.host, goal.port)))
    if not found:
        raise UnreachableError(f"{goal.host} has no address")
    addresses = tuple(ip_address(each) for each in found)
    networks: Sequence[Network] = settings.OUTBOUND_ALLOWED_NETWORKS
    for address in addresses:
        try:
            check(address, networks)
        except AddressRefusedError as refusal:
            raise AddressRefusedError(f"{goal.host}: {refusal}") from None
    return goal, addresses


def _within(timeout: float) -> Resolve:
    """The system's resolver has no deadline; a thread that is left behind gives it one."""

    def resolve(host: str, port: int) -> Sequence[str]:
        answer: list[Sequence[str] | OSError | UnicodeError] = []

        def ask() -> None:
            try:
                rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                answer.append([str(row[4][0]) for row in rows])
            except (OSError, UnicodeError) as error:
                answer.append(error)

        thread = threading.Thread(target=ask, name=f"resolve {host[:40]}", daemon=True)
        thread.start()
        thread.join(timeout)
        if not answer:
            raise UnreachableError(f"no answer within {timeout:.0f} s about the name {host}")
        found = answer[0]
        if isinstance(found, UnicodeError):
            raise AddressRefusedError(f"{host[:100]!r} is not a host name") from found
        if isinstance(found, OSError):
            raise UnreachableError(
                f"the name {host} could not be resolved: {found.strerror or found}"
            ) from found
        return found

    return resolve


class _Cut:
    """Ends a connection at a moment, whatever its reader waits for: a timeout per read never ends a trickle."""

    watched: socket.socket | None = None
    timer: threading.Timer | None = None
    fired = False

    def connect_until(self, end: float) -> None:
        self.timer = threading.Timer(max(end - time.monotonic(), 0.0), self._fire)
        self.timer.daemon = True
        self.timer.start()
        self.connect()  # type: ignore[attr-defined]
        if self.sock is not None:  # type: ignore[attr-defined]
            self.sock.settimeout(max(end - time.monotonic(), 0.001))  # type: ignore[attr-defined]

    def _watch(self, made: socket.socket) -> socket.socket:
        # A second handle on the same connection: the first one goes into the TLS socket.
        self.watched = made.dup()
        return made

    def _fire(self) -> None:
        self.fired = True
        if (watched := self.watched) is not None:
            try:
                watched.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # closed already

    def over(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.watched is not None:
            self.watched.close()


class _Plain(_Cut, HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return self._watch(super()._new_conn())

    def close(self) -> None:
        self.over()
        super().close()


class _Encrypted(_Cut, HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return self._watch(super()._new_conn())

    def close(self) -> None:
        self.over()
        super().close()


@lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    """The machine's authorities (a company's own among them, `SSL_CERT_FILE` too) and the public ones."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _connection(goal: Target, address: IPAddress, timeout: float) -> _Plain | _Encrypted:
    if goal.scheme == "http":
        return _Plain(str(address), goal.port, timeout=timeout)
    # The certificate has to name the host of the URL; the connection goes to the address.
    return _Encrypted(
        str(address),
        goal.port,
        timeout=timeout,
        ssl_context=_trust(),
        server_hostname=goal.host,
        assert_hostname=goal.host,
    )


def _exchange(
    connection: _Plain | _Encrypted,
    goal: Target,
    method: str,
    body: bytes,
    headers: dict[str, str],
    end: float,
    kept: int,
) -> Reply:
    fixed = {"Host": goal.authority, "Accept-Encoding": "identity", "Connection": "close"}
    own = {"User-Agent": "Dossier", **headers, **fixed}
    try:
        connection.request(method, goal.path, body=body, headers=own, preload_content=False)
        answer = connection.getresponse()
        if connection.fired:  # what came of the headers until then looks like all of them
            raise UnreachableError(f"{goal.authority}: no complete answer in time")
        named = {name.lower()[:100]: value[:1_000] for name, value in answer.headers.items()}
        return Reply(answer.status, named, _beginning(answer, kept))
    except (ValueError, UnicodeError) as error:
        raise AddressRefusedError(f"the request cannot be written: {error}") from error
    except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
        late = connection.fired or time.monotonic() >= end
        reason = "no complete answer in time" if late else _reason(error)
        raise UnreachableError(f"{goal.authority}: {reason}") from error
    finally:
        connection.close()


def _beginning(answer: urllib3.BaseHTTPResponse, kept: int) -> bytes:
    """The first bytes of the body. The status counts also where the body breaks off or trickles."""
    read = b""
    try:
        while len(read) < kept and (chunk := answer.read1(kept - len(read))):
            read += chunk
    except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError):
        pass
    return read[:kept]


def _reason(error: BaseException) -> str:
    inner = error.__cause__ if isinstance(error, urllib3.exceptions.NewConnectionError) else error
    text = str(inner or error)
    return text[:300] or type(error).__name__
