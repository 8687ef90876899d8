"""Typed readers of environment variables.

Each reader declares its variable (a test compares the settings page with the declarations), returns the default if
the variable is unset, and raises `InvalidSettingError` with variable, value and the expected form if it is invalid.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import psycopg2.extensions

T = TypeVar("T")

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

VARIABLES: dict[str, Variable] = {}
"""Every variable that has been read, by name."""

PREFIX = "DOSSIER_"
"""Prefix of all variables except DATABASE_URL, REDIS_URL and PORT, which hosting platforms set."""
INTERNAL = frozenset({"DOSSIER_HANDED_OVER", "DOSSIER_HEARTBEAT", "DOSSIER_PROCESS", "DOSSIER_SUPERVISOR"})
"""Set by the supervisor for its children."""
FORMER_NAMES = {
    "EVENTS_PORT": "DOSSIER_EVENTS_PORT",
    "EVENTS_URL": "DOSSIER_EVENTS_URL",
    "WEB_WORKERS": "DOSSIER_WEB_WORKERS",
    "WEB_THREADS": "DOSSIER_WEB_THREADS",
    "WEB_PINNED": "DOSSIER_WEB_CPU_AFFINITY",
    "READS_AT_ONCE": "DOSSIER_WEB_MAX_READS",
    "BODY_SECONDS": "DOSSIER_BODY_TIMEOUT_SECONDS",
    "KEY_RATE": "DOSSIER_INGEST_RATE_PER_KEY",
    "WORKERS": "DOSSIER_TASK_WORKERS",
    "DRAIN_SECONDS": "DOSSIER_DRAIN_SECONDS",
    "METRICS_TOKEN": "DOSSIER_METRICS_TOKEN",
    "TELEMETRY_MAX_BODY": "DOSSIER_TELEMETRY_MAX_BODY",
    "TELEMETRY_MAX_DECODED": "DOSSIER_TELEMETRY_MAX_DECODED_BODY",
    "TELEMETRY_PARTITION": "DOSSIER_TELEMETRY_PARTITION_INTERVAL",
    "TELEMETRY_RETENTION": "DOSSIER_TELEMETRY_RETENTION",
    "TELEMETRY_LONG_RETENTION": "DOSSIER_TELEMETRY_SPARSE_RETENTION",
    "ALERT_MAX_BODY": "DOSSIER_ALERT_MAX_BODY",
    "ALERT_RETENTION": "DOSSIER_ALERT_RETENTION",
    "MAIL_PORT": "DOSSIER_INBOUND_EMAIL_PORT",
    "MAIL_DOMAIN": "DOSSIER_INBOUND_EMAIL_DOMAIN",
    "MAIL_MAX_BODY": "DOSSIER_INBOUND_EMAIL_MAX_BODY",
    "MAIL_CERTIFICATE": "DOSSIER_INBOUND_EMAIL_CERTIFICATE",
    "MAIL_CERTIFICATE_KEY": "DOSSIER_INBOUND_EMAIL_CERTIFICATE_KEY",
    "OTLP_GRPC_PORT": "DOSSIER_OTLP_GRPC_PORT",
    "OTLP_GRPC_CERTIFICATE": "DOSSIER_OTLP_GRPC_CERTIFICATE",
    "OTLP_GRPC_CERTIFICATE_KEY": "DOSSIER_OTLP_GRPC_CERTIFICATE_KEY",
    "OUTGOING_ALLOW": "DOSSIER_OUTBOUND_ALLOWED_NETWORKS",
    "RUN_LEASE": "DOSSIER_RUN_LEASE_TIMEOUT",
    "DELIVERY_RETENTION": "DOSSIER_NOTIFICATION_RETENTION",
    "RUN_RETENTION": "DOSSIER_RUN_RETENTION",
    "SEALS_FILE": "DOSSIER_SEAL_FILE",
    "SEALS_TO": "DOSSIER_SEAL_RECIPIENTS",
    "SEAL_TSA_URL": "DOSSIER_SEAL_TSA_URL",
    "SEAL_TSA_CERTIFICATES": "DOSSIER_SEAL_TSA_CERTIFICATES",
    "DEAD_MAN_URL": "DOSSIER_DEAD_MAN_URL",
    "EMAIL_URL": "DOSSIER_EMAIL_URL",
    "EMAIL_FROM": "DOSSIER_EMAIL_FROM",
    "TRUSTED_PROXIES": "DOSSIER_TRUSTED_PROXY_COUNT",
    "OIDC_URL": "DOSSIER_OIDC_URL",
    "OIDC_CLIENT_ID": "DOSSIER_OIDC_CLIENT_ID",
    "OIDC_CLIENT_SECRET": "DOSSIER_OIDC_CLIENT_SECRET",
    "OIDC_NAME": "DOSSIER_OIDC_NAME",
    "OIDC_SIGNUP": "DOSSIER_OIDC_SIGNUP",
    "OIDC_GROUPS_CLAIM": "DOSSIER_OIDC_GROUPS_CLAIM",
    "OIDC_GROUPS": "DOSSIER_OIDC_GROUP_ROLES",
    "DOSSIER_BIND": "DOSSIER_BIND_ADDRESS",
    "DOSSIER_URL": "DOSSIER_PUBLIC_URL",
    "DOSSIER_SECRET_KEY_OLD": "DOSSIER_SECRET_KEY_FALLBACKS",
    "DOSSIER_AS_ROOT": "DOSSIER_ALLOW_ROOT",
}
"""Names from before the first release."""
_SERVICE_LINK = re.compile(r".*_(SERVICE_(HOST|PORT.*)|PORT_\d+_.*)")


class InvalidSettingError(ValueError):
    """A variable has an invalid value."""


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    default: str
    help: str


def _read(name: str, default: T, shown: str, help: str, parse: Callable[[str], T], right: str) -> T:
    VARIABLES[name] = Variable(name, shown, help)
    raw = os.environ.get(name, "")
    if raw == "":
        return default
    try:
        return parse(raw)
    except ValueError as error:
        raise InvalidSettingError(
            f"{name} is set to {_PASSWORD.sub('…@', raw)!r}; it must be {right}"
        ) from error


def unread() -> list[str]:
    """One line for each variable of the environment with a former or misspelt name of a setting, with the
    right one. Variables that Kubernetes derives from the name of a service are left out."""
    lines = []
    for name in sorted(os.environ):
        raw = os.environ[name]
        if raw == "" or raw.startswith("tcp://") or name in VARIABLES or name in INTERNAL:
            continue
        if name in FORMER_NAMES:
            lines.append(f"{name} is not read: it is now {FORMER_NAMES[name]}")
        elif name.startswith(PREFIX) and not _SERVICE_LINK.fullmatch(name):
            close = get_close_matches(name, VARIABLES, 1)
            lines.append(
                f"{name} is not read: no setting has that name" + "".join(f"; {one} has" for one in close)
            )
    return lines


_PASSWORD = re.compile(r"(?<=:)[^:/@]*@")  # what is malformed is printed, and logged


def text(name: str, default: str, help: str, *, shown: str | None = None) -> str:
    return _read(name, default, default if shown is None else shown, help, str, "text")


def choice(name: str, default: str, of: Sequence[str], help: str) -> str:
    """One of these words, whatever their case."""

    def parse(raw: str) -> str:
        for one in of:
            if one.lower() == raw.lower():
                return one
        raise ValueError(raw)

    return _read(name, default, default, help, parse, f"one of {', '.join(of)}")


def address(name: str, default: str, help: str, *, shown: str | None = None, path: bool = True) -> str:
    """`https://host:port/path`, without the slash at its end; the path only where there may be one."""

    def parse(raw: str) -> str:
        url = urlsplit(raw.rstrip("/"))
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
            raise ValueError(raw)
        if url.path and not path:
            raise ValueError(raw)
        _ = url.port  # ValueError for one that is no number
        return url.geturl()

    right = "http:// or https:// and a host, " + (
        "with a port and a path or without" if path else "with a port or without, and no path"
    )
    return _read(name, default, default if shown is None else shown, help, parse, right)


def broker(name: str, help: str) -> str:
    """The address of a Redis as Celery writes it, empty when unset."""

    def parse(raw: str) -> str:
        url = urlsplit(raw)
        is_socket = url.scheme == "redis+socket" and not url.hostname and url.path.strip("/")
        if not raw.startswith(f"{url.scheme}://") or (
            not is_socket and url.scheme not in ("redis", "rediss")
        ):
            raise ValueError(raw)
        _ = url.port  # ValueError for one that is no number
        return raw

    right = "redis://host:port/0, rediss:// (TLS) or redis+socket:///path?virtual_host=0"
    return _read(name, "", "", help, parse, right)


def integer(name: str, default: int, help: str, *, low: int = 0, high: int = 2**63 - 1) -> int:
    def parse(raw: str) -> int:
        value = int(raw)
        if not low <= value <= high:
            raise ValueError(raw)
        return value

    return _read(name, default, str(default), help, parse, f"a whole number from {low} to {high}")


_BOOLEANS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


def boolean(name: str, default: bool, help: str) -> bool:
    def parse(raw: str) -> bool:
        if raw.lower() not in _BOOLEANS:
            raise ValueError(raw)
        return _BOOLEANS[raw.lower()]

    return _read(name, default, str(default).lower(), help, parse, "true or false")


_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_duration(raw: str) -> timedelta:
    """`90s`, `5m`, `1h`, `30d`, `250ms` as a positive timedelta; ValueError otherwise."""
    match = re.fullmatch(r"(\d{1,9})(ms|s|m|h|d)", raw.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError(f"{raw!r} is not a duration such as 90s, 5m, 1h or 30d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def duration(name: str, default: str, help: str, *, low: str = "1ms") -> timedelta:
    def parse(raw: str) -> timedelta:
        if (span := parse_duration(raw)) < parse_duration(low):
            raise ValueError(raw)
        return span

    bound = "" if low == "1ms" else f", at least {low}"
    right = f"a duration such as 90s, 5m, 1h or 30d{bound}"
    return _read(name, parse_duration(default), default, help, parse, right)


def words(name: str, default: tuple[str, ...], help: str) -> list[str]:
    def parse(raw: str) -> list[str]:
        return [word.strip() for word in raw.split(",") if word.strip()]

    return _read(name, list(default), ",".join(default), help, parse, "words separated by commas")


def networks(name: str, help: str) -> list[IPv4Network | IPv6Network]:
    """`10.1.0.0/16,2001:db8::/32` as networks; none if unset. A bare address is a network of one."""

    def parse(raw: str) -> list[IPv4Network | IPv6Network]:
        return [ip_network(word.strip()) for word in raw.split(",") if word.strip()]

    return _read(name, [], "", help, parse, "networks separated by commas, such as 10.1.0.0/16,2001:db8::/32")


_GROUP_RULE = re.compile(r".+=(staff|[-a-zA-Z0-9_]+:(viewer|responder|manager|admin))")


def group_rules(name: str, help: str) -> list[str]:
    """`GROUP=TEAM:ROLE` and `GROUP=staff`, separated by commas; none if unset."""

    def parse(raw: str) -> list[str]:
        rules = [word.strip() for word in raw.split(",") if word.strip()]
        if not all(_GROUP_RULE.fullmatch(rule) for rule in rules):
            raise ValueError(raw)
        return rules

    right = "rules separated by commas, such as dc-storage=storage:responder,dc-admins=staff"
    return _read(name, [], "", help, parse, right)


def costs(name: str, default: Mapping[str, tuple[float, float]], help: str) -> dict[str, tuple[float, float]]:
    """`KIND=MINUTES+COST`, separated by commas, over the defaults of the kinds that are left out."""

    def parse(raw: str) -> dict[str, tuple[float, float]]:
        found = dict(default)
        for word in raw.split(","):
            kind, _, figures = word.strip().partition("=")
            minutes, cost = (float(one) for one in figures.split("+"))
            if kind not in default or not (0 < minutes < math.inf and 0 <= cost < math.inf):
                raise ValueError(raw)
            found[kind] = minutes, cost
        return found

    shown = ",".join(f"{kind}={minutes:g}+{cost:g}" for kind, (minutes, cost) in default.items())
    right = f"KIND=MINUTES+COST separated by commas, the kinds {', '.join(default)}, such as drain=20+60"
    return _read(name, dict(default), shown, help, parse, right)


def mail_server(name: str, help: str) -> dict[str, str | int | bool]:
    """`smtp://user:password@host:25`, `smtp+tls://` (STARTTLS) or `smtps://` as Django's settings; empty if unset."""

    def parse(raw: str) -> dict[str, str | int | bool]:
        url = urlsplit(raw)
        if url.scheme not in _MAIL or not url.hostname or url.path.strip("/"):
            raise ValueError(raw)
        return {
            "EMAIL_HOST": url.hostname,
            "EMAIL_PORT": url.port or _MAIL[url.scheme],
            "EMAIL_HOST_USER": unquote(url.username or ""),
            "EMAIL_HOST_PASSWORD": unquote(url.password or ""),
            "EMAIL_USE_TLS": url.scheme == "smtp+tls",
            "EMAIL_USE_SSL": url.scheme == "smtps",
        }

    right = "smtp://user:password@host:25, or smtp+tls:// (STARTTLS), or smtps://"
    return _read(name, {}, "", help, parse, right)


_MAIL = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


_CONNECTING = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "target_session_attrs": "read-write",
}
"""A server that loses power is detected within half a minute, instead of the quarter of an hour of TCP's defaults. A
read-only replica counts as no server: senders get 503, and the next host of the address is tried. Parameters of the
address take precedence."""


def database(url: str) -> dict[str, object]:
    """A Postgres by its URL, or by libpq's words, as Django's settings."""
    try:
        parts = {**_CONNECTING, **psycopg2.extensions.parse_dsn(url)}
    except psycopg2.ProgrammingError as error:
        raise InvalidSettingError(
            f"DATABASE_URL is malformed; it must be postgresql://user:password@host:port/name ({str(error).strip()})"
        ) from error
    if not parts.keys() & {"dbname", "service"}:
        raise InvalidSettingError(
            "DATABASE_URL names no database; it must be postgresql://user:password@host:port/name"
        )
    known = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    return {
        "ENGINE": "deploy.postgres",
        **{known[key]: value for key, value in parts.items() if key in known},
        "OPTIONS": {key: value for key, value in parts.items() if key not in known},
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": False,
    }
