"""Which addresses on the network Dossier may send to, when a person typed them.

Whoever may configure a webhook must not reach through it what only this machine can reach: the database, the metadata
of a cloud, a neighbour's console (OWASP: server-side request forgery). Hence public addresses only, and what the
installation allows by name of its network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

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
        """What the Host header says."""
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
        raise AddressRefusedError(
            f"the URL begins with {parts.scheme or 'no scheme'!r}; it must begin with http:// or https://"
        )
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
    """What can be said of a URL without asking for its name: its form, and the address where it is one.
    `AddressRefusedError`."""
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
