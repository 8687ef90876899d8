"""HTTP to addresses that a person configured: webhooks, chat, mail services.

Whoever may configure a webhook must not reach through it what only this machine can reach: the database, the
metadata of a cloud, a neighbour's console (OWASP: server-side request forgery). Hence public addresses only,
and what the installation allows by name of its network.

The name is resolved once, every address it has is checked, and the connection goes to an address that was
checked, so that a name cannot point elsewhere a moment later (DNS rebinding). Redirects are not followed,
proxies of the environment are not used. The deadline holds for the whole exchange, also for a receiver that
trickles.
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
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import certifi
import urllib3
from django.conf import settings
from urllib3.connection import HTTPConnection, HTTPSConnection

# Addresses
# ----------------------------------------------------------------------------------------------------------
IPAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL = 2_000
_PORTS = {"http": 80, "https": 443}
# Above 1023, but services that an HTTP request could be smuggled into (Fetch standard, "bad ports"; Redis; memcached).
_PORTS_OF_OTHERS = frozenset({2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6679, 6697, 10080, 11211})
# Globally routable by the registries, yet the machine's own: Azure's wire server.
_METADATA = frozenset({ip_address("168.63.129.16")})
# Not for the public either; older Pythons take them for global (IANA's special-purpose registries).
_SPECIAL = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"), IPv6Network("2001::/23"))
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))


class AddressRefusedError(ValueError):
    """Nothing may be sent there, now or later: the address is malformed or not allowed. Says why and what would do."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL in parts. `host` is a name or an address without brackets, `path` begins with a slash and has the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def target(url: str) -> Target:
    """The parts of a URL that a person typed; `AddressRefusedError` if it is no plain http or https address."""
    if len(url) > LONGEST_URL:
        raise AddressRefusedError(f"the URL has {len(url)} characters; at most {LONGEST_URL} are allowed")
    # urlsplit drops tabs and line ends silently; others read a backslash as a slash.
    if any(letter <= " " or letter == "\x7f" or letter == "\\" for letter in url):
        raise AddressRefusedError("the URL contains a space, a backslash or a control character")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefusedError(f"{url[:100]!r} is not a URL: {error}") from error
    if parts.scheme not in _PORTS:
        begins = f"begins with {parts.scheme!r}" if parts.scheme else "has no scheme"
        raise AddressRefusedError(f"the URL {begins}; it must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise AddressRefusedError("the URL contains credentials, which would be visible in the configuration")
    port = _PORTS[parts.scheme] if port is None else port
    if port in _PORTS_OF_OTHERS or 6665 <= port <= 6669 or (port < 1024 and port not in _PORTS.values()):
        raise AddressRefusedError(f"port {port} belongs to another protocol; use 80, 443 or one from 1024")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii():
        raise AddressRefusedError(
            "the URL has letters outside ASCII after the host; write them with % escapes"
        )
    return Target(parts.scheme, _host(parts.hostname or ""), port, path)


def check_literal(url: str, allow: Sequence[Network] = ()) -> Target:
    """Target of a URL as far as its text tells: its form, and the address where it is one. `AddressRefusedError`."""
    goal = target(url)
    try:
        address = ip_address(goal.host)
    except ValueError:
        return goal
    check(address, allow)
    return goal


def _host(host: str) -> str:
    """The name as the DNS knows it (punycode for others than ASCII)."""
    if not host:
        raise AddressRefusedError("the URL has no host")
    try:
        return host if ":" in host else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise AddressRefusedError(f"{host[:100]!r} is not a host name: {error}") from error


def check(address: IPAddress, allow: Sequence[Network] = ()) -> None:
    """`AddressRefusedError` unless the address is public, or in one of the networks that the installation allows."""
    real = _carried(address)
    if any(real in network for network in allow):
        return
    if (kind := _kind(real)) is not None:
        shown = f"{address}" if real == address else f"{address} (that is {real})"
        raise AddressRefusedError(
            f"{shown} is {kind}; DOSSIER_OUTBOUND_ALLOWED_NETWORKS lists allowed exceptions"
        )


def _carried(address: IPAddress) -> IPAddress:
    """The IPv4 address inside an IPv6 one (mapped, 6to4, Teredo, NAT64), where the packet would come out."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _NAT64) or (int(address) >> 32 == 0 and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _kind(address: IPAddress) -> str | None:
    if address in _METADATA:
        return "a cloud's metadata service"
    for name, holds in (
        ("unspecified", address.is_unspecified),
        ("loopback", address.is_loopback),
        ("link-local", address.is_link_local),
        ("multicast", address.is_multicast),
        ("reserved", address.is_reserved),
        ("private", not address.is_global or any(address in network for network in _SPECIAL)),
    ):
        if holds:
            return f"a {name} address" if name != "unspecified" else "an unspecified address"
    return None


# Outbound
# ----------------------------------------------------------------------------------------------------------
__all__ = ["AddressRefusedError", "Reply", "UnreachableError", "allowed", "post"]

TIMEOUT = 10.0
"""Seconds for name, connection, request and answer together, unless told otherwise."""
MOST_ANSWER = 2_000
"""Bytes of an answer that are kept."""

_PASSING = frozenset({408, 421, 423, 425, 429})


class UnreachableError(Exception):
    """No answer now: no name, no connection, no trust, no end in time. Another try may do better."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of the receiver. `headers` have names in lower case, `body` is the beginning of the body."""

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
    most: int = MOST_ANSWER,
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
        return _exchange(connection, goal, method, body, dict(headers or {}), end, most)
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
    most: int,
) -> Reply:
    fixed = {"Host": goal.authority, "Accept-Encoding": "identity", "Connection": "close"}
    own = {"User-Agent": "Dossier", **headers, **fixed}
    try:
        connection.request(method, goal.path, body=body, headers=own, preload_content=False)
        answer = connection.getresponse()
        if connection.fired:  # what came of the headers until then looks like all of them
            raise UnreachableError(f"{goal.authority}: no complete answer in time")
        named = {name.lower()[:100]: value[:1_000] for name, value in answer.headers.items()}
        return Reply(answer.status, named, _beginning(answer, most))
    except (ValueError, UnicodeError) as error:
        raise AddressRefusedError(f"the request cannot be written: {error}") from error
    except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
        late = connection.fired or time.monotonic() >= end
        reason = "no complete answer in time" if late else _reason(error)
        raise UnreachableError(f"{goal.authority}: {reason}") from error
    finally:
        connection.close()


def _beginning(answer: urllib3.BaseHTTPResponse, most: int) -> bytes:
    """The first bytes of the body. The status counts also where the body breaks off or trickles."""
    read = b""
    try:
        while len(read) < most and (chunk := answer.read1(most - len(read))):
            read += chunk
    except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError):
        pass
    return read[:most]


def _reason(error: BaseException) -> str:
    inner: object = error.__cause__ if isinstance(error, urllib3.exceptions.NewConnectionError) else error
    if isinstance(inner, urllib3.exceptions.ConnectTimeoutError):
        inner = inner.args[-1]  # the first is the connection, whose text is an address in memory
    text = str(inner or error)
    return text[:300] or type(error).__name__
