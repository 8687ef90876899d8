"""Integration keys: made once, shown once, kept as SHA-256, checked with few queries."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from ingest.api.models import IntegrationKey
from ingest.api.redact import PREFIX
from ingest.db import database
from ingest.integrations.generic import apply
from ingest.log.configuration_events import record_configuration
from ingest.log.types import Context

KIND = "integration"
"""Kind of an integration in the log of changes."""
ADMIN = "admin"
SCOPES = (
    "telemetry",
    "alerts",
    "incidents:read",
    "incidents:write",
    "incidents:propose",
    "remediation:request",
    "remediation:answer",
    ADMIN,
)
TRUSTED_FOR = 5.0
"""Seconds for which a process takes a key without looking again; a revoked key works elsewhere for at most so
long."""
NAME_IS_UNIQUE = "integrationkey_name_"
"""Part of the constraint's name in Postgres."""
MOST_REMEMBERED = 10_000
USE_NOTED_EVERY = timedelta(seconds=TRUSTED_FOR)


@dataclass(frozen=True, slots=True)
class Key:
    """A key that was shown to be good. `region` is empty where rows without a region go to `default`."""

    name: str
    scopes: frozenset[str]
    region: str = ""
    kinds: frozenset[str] = frozenset()
    endpoints: frozenset[str] = frozenset()
    mapping: Mapping[str, Any] | None = field(default=None, hash=False)

    def allows(self, scope: str) -> bool:
        return scope in self.scopes or ADMIN in self.scopes

    def allows_kind(self, kind: str) -> bool:
        """Whether rows of this kind may be sent, by a key that may send telemetry."""
        return not self.kinds or kind in self.kinds

    def allows_format(self, endpoint: str) -> bool:
        """Whether alerts may come through this endpoint, by a key that may send alerts."""
        return not self.endpoints or endpoint in self.endpoints


class KeyNameTakenError(ValueError):
    """There is a key of that name already."""


_seen: dict[
    tuple[str, bytes], tuple[float, Key]
] = {}  # by database and digest or mail token: until when, and what


def create(
    name: str,
    scopes: Iterable[str],
    region: str = "",
    mapping: Mapping[str, Any] | None = None,
    endpoints: Iterable[str] = (),
    *,
    expires_at: datetime | None = None,
    context: Context | None = None,
) -> str:
    """Make a key and return it; it cannot be had again. `mapping` is how its generic endpoint reads payloads;
    `endpoints` are those that it may use, none for all. With `context` the change is recorded, as by all commands here.

    Raises ValueError for an unknown scope, InvalidMappingError (one, too) for a mapping, KeyNameTakenError.
    """
    if mapping is not None:
        apply.mapping(mapping)
    wanted = sorted(set(scopes))
    if not name or not wanted or not set(wanted) <= set(SCOPES):
        raise ValueError(f"a key needs a name and one or more scopes of {', '.join(SCOPES)}")
    if expires_at is not None and expires_at <= timezone.now():
        raise ValueError("a key cannot expire in the past")
    secret = PREFIX + secrets.token_urlsafe(32)
    try:
        with transaction.atomic():
            row = IntegrationKey.objects.create(
                name=name,
                digest=_digest(secret),
                scopes=wanted,
                region=region,
                mapping=mapping,
                endpoints=sorted(set(endpoints)),
                expires_at=expires_at,
            )
            _record(row.name, None, key_as_json(row), context)
    except IntegrityError as error:
        if not _is_of_the_name(error):
            raise
        raise KeyNameTakenError(f"there is a key named {name} already") from error
    return secret


def _is_of_the_name(error: IntegrityError) -> bool:
    """Whether two keys may not have one name, and not something else that the database refuses."""
    diagnostics = getattr(error.__cause__, "diag", None)
    return NAME_IS_UNIQUE in (getattr(diagnostics, "constraint_name", None) or "")


def key_as_json(row: IntegrationKey) -> dict[str, Any]:
    """An integration as the log keeps it: never the key, nor anything that it could be told by."""
    return {
        "name": row.name,
        "scopes": list(row.scopes),
        "endpoints": list(row.endpoints),
        "kinds": list(row.kinds),
        "region": row.region,
        "mapping": row.mapping,
        "expires_at": None if row.expires_at is None else row.expires_at.isoformat(),
        "revoked": row.revoked_at is not None,
        "key": "set",
    }


def _record(
    name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, context: Context | None
) -> None:
    if context is not None:
        record_configuration(KIND, name, before, after, context)


def rotate(name: str, overlap: timedelta, context: Context | None = None) -> str | None:
    """A new key for an integration; the one before stays good for `overlap`. None where there is no such integration.

    The key before that one ends at once.
    """
    secret = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        row = IntegrationKey.objects.select_for_update().filter(name=name, revoked_at=None).first()
        if row is None:
            return None
        row.previous_digest, row.previous_until = row.digest, timezone.now() + overlap
        row.digest = _digest(secret)
        row.save(update_fields=["digest", "previous_digest", "previous_until"])
        until = row.previous_until.isoformat()
        _record(
            name, key_as_json(row), {**key_as_json(row), "key": f"new, the one before until {until}"}, context
        )
    _seen.clear()
    return secret


def set_mapping(name: str, mapping: Mapping[str, Any] | None, context: Context | None = None) -> bool:
    """Set the mapping by which an integration's generic endpoint reads payloads from now on; None: as built in. Says
    whether there is one.

    Raises InvalidMappingError. Other processes notice within TRUSTED_FOR seconds.
    """
    if mapping is not None:
        apply.mapping(mapping)
    return _change(name, {"mapping": mapping}, context)


def change(name: str, fields: Mapping[str, Any], context: Context | None = None) -> bool:
    """Scopes, endpoints, region, mapping, and when it expires; says whether there is one.

    Raises ValueError for an unknown scope, InvalidMappingError.
    """
    given = dict(fields)
    if (mapping := given.get("mapping")) is not None:
        apply.mapping(mapping)
    for listed in ("scopes", "endpoints"):
        if listed in given:
            given[listed] = sorted(set(given[listed]))
    if not given.keys() <= {"scopes", "endpoints", "region", "mapping", "expires_at"} or not set(
        given.get("scopes", ())
    ) <= set(SCOPES):
        raise ValueError("a key has no such setting or scope")
    return _change(name, given, context)


def _change(name: str, fields: Mapping[str, Any], context: Context | None) -> bool:
    with transaction.atomic():
        row = IntegrationKey.objects.select_for_update().filter(name=name, revoked_at=None).first()
        if row is None:
            return False
        before = key_as_json(row)
        for field_name, value in fields.items():
            setattr(row, field_name, value)
        row.save(update_fields=list(fields))
        _record(name, before, key_as_json(row), context)
    _seen.clear()
    return True


def revoke(name: str, context: Context | None = None) -> bool:
    """End a key; says whether there was one to end. Other processes notice within TRUSTED_FOR seconds."""
    return _change(name, {"revoked_at": timezone.now()}, context)


def why_not(header: str | None) -> str:
    """Reason why a header's key is refused, for its owner: that it expired, was revoked, or is not known."""
    row = None
    secret = (header or "").partition(" ")[2].strip()
    if secret.startswith(PREFIX):
        row = IntegrationKey.objects.filter(digest=_digest(secret)).first()
    if row is None:
        return "The key is not known; it may have been replaced by a new one."
    if row.revoked_at is not None:
        return f"The key {row.name} was revoked on {row.revoked_at:%Y-%m-%d %H:%M} UTC."
    if row.expires_at is not None and row.expires_at <= timezone.now():
        return f"The key {row.name} expired on {row.expires_at:%Y-%m-%d %H:%M} UTC; create a new one."
    return f"The key {row.name} is good; try again."


def authenticate(header: str | None) -> Key | None:
    """The key of an Authorization header `Bearer KEY`, `GenieKey KEY` as clients of Opsgenie write it, or `Basic` with
    the key as the password; None for others."""
    scheme, _, parts = (header or "").partition(" ")
    match scheme.lower():
        case "bearer" | "geniekey":
            return find(parts.strip())
        case "basic":
            try:
                plain = base64.b64decode(parts.strip(), validate=True).decode()
            except ValueError:
                return None
            return find(plain.partition(":")[2])
    return None


def find(secret: str) -> Key | None:
    """The key of a secret, as the compatibility endpoints carry it in a path or a body; None for a wrong or ended
    one."""
    if not secret.startswith(PREFIX):
        return None
    digest = _digest(secret)

    def looked_up(now: datetime) -> IntegrationKey | None:
        replaced = Q(previous_digest=digest, previous_until__gt=now)
        return _in_force(now).filter(Q(digest=digest) | replaced).first()

    return _remembered(digest, looked_up)


def _in_force(now: datetime) -> QuerySet[IntegrationKey]:
    return IntegrationKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


def mail_token(digest: bytes) -> str:
    """Local part of the mail address of the key with this digest: 32 lower-case characters, 160 bits.

    Whoever knows the address can send mail and nothing else: the key does not follow from it.
    """
    return base64.b32encode(hashlib.sha256(b"mail\0" + digest).digest()[:20]).decode().lower()


def mail_address(row: IntegrationKey) -> str | None:
    """Mail address for alerts; None where the key may not send any, or the endpoint is closed."""
    may = {"alerts", "admin"} & set(row.scopes) and (not row.endpoints or "mail" in row.endpoints)
    return (
        f"{mail_token(bytes(row.digest))}@{settings.INBOUND_EMAIL_DOMAIN}"
        if may and settings.INBOUND_EMAIL_PORT
        else None
    )


def find_by_mail(token: str) -> Key | None:
    """The key whose mail_token this is; None for a wrong or ended one."""

    def looked_up(now: datetime) -> IntegrationKey | None:
        for row in _in_force(now):
            before = row.previous_digest if row.previous_until and row.previous_until > now else None
            digests = [bytes(digest) for digest in (row.digest, before) if digest is not None]
            if any(hmac.compare_digest(mail_token(digest), token) for digest in digests):
                return row
        return None

    return _remembered(token.encode(), looked_up) if re.fullmatch("[a-z2-7]{32}", token) else None


def _remembered(known_by: bytes, look_up: Callable[[datetime], IntegrationKey | None]) -> Key | None:
    """A key that was good within the last TRUSTED_FOR seconds, or is found to be; notes that it was used."""
    place = (database.name(), known_by)
    until, key = _seen.get(place, (0.0, None))
    if key is not None and time.monotonic() < until:
        return key
    now = timezone.now()
    row = look_up(now)
    if row is None:
        _seen.pop(place, None)
        return None
    if row.last_used_at is None or now - row.last_used_at > USE_NOTED_EVERY:
        IntegrationKey.objects.filter(pk=row.pk).update(last_used_at=now)
    key = Key(
        row.name, frozenset(row.scopes), row.region, frozenset(row.kinds), frozenset(row.endpoints), row.mapping
    )  # fmt: skip
    if len(_seen) >= MOST_REMEMBERED:
        _seen.clear()
    left = TRUSTED_FOR if row.expires_at is None else (row.expires_at - now).total_seconds()
    _seen[place] = (time.monotonic() + min(TRUSTED_FOR, left), key)
    return key


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
