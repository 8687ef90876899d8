"""The form that every alert endpoint brings alerts into, whatever its sender writes. Pure.

An endpoint never refuses an alert for being long or odd: what an incident cannot show whole is shortened and says so in
`notes`, and the payload is kept as it came. It refuses what has no meaning: no labels, no summary, a word that is no
status. Times are aware datetimes in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Literal, get_args

from msgspec import Struct, structs

from ingest.telemetry.kinds.declare import is_component

Status = Literal["firing", "acknowledged", "resolved"]
Severity = Literal["critical", "error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)

LONGEST_LINE = 300
LONGEST_TEXT = 10_000
LONGEST_NAME = 255
LONGEST_VALUE = 1_000
LONGEST_ADDRESS = 2_000
MOST_LABELS = 50
MOST_ANNOTATIONS = 50
MOST_ALERTS = 100_000
"""Of one body: their events and rows are one message to the database, which takes 1 GB."""
MOST_LINKS = 20

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""With what turns the direction of the text after it (Unicode Annex 9)."""
_SPACE = re.compile(r"\s+")
_PORT = re.compile(r":\d+$")


class Alert(Struct, frozen=True, array_like=True):
    """One alert of one sender. Two with the same `key` from the same integration are the same alert.

    `group` is what a storm is collapsed by: the rule or check that fired, without the thing that it fired for.
    `starts_at` tells one firing of a key from the next where the sender says it; None where it does not.
    `expires_at` is when a firing alert that is not sent again counts as resolved; None for never.
    """

    key: str
    status: Status
    title: str
    severity: Severity = "warning"
    group: str = ""
    component: str | None = None
    description: str = ""
    labels: Mapping[str, str] = {}
    links: tuple[Mapping[str, str], ...] = ()
    """Each `{"href", "text"}`, http or https."""
    images: tuple[Mapping[str, str], ...] = ()
    """Each `{"src", "href", "alt"}`, https; shown as links, never fetched."""
    starts_at: datetime | None = None
    expires_at: datetime | None = None
    notes: tuple[str, ...] = ()
    """Notes for the reader: shortened texts, the number of alerts that the sender left out."""
    resends: bool = False
    """Whether its sender tells again and again what still fires, with the same start: long after the end it is news."""
    annotations: Mapping[str, str] | None = None
    """As sent; None where its sender has nothing of the kind."""

    def until(self, expires_at: datetime) -> Alert:
        """The same, firing until then."""
        return structs.replace(self, status="firing", expires_at=expires_at)

    def over(self) -> Alert:
        """The same, resolved."""
        return structs.replace(self, status="resolved", expires_at=None)


@dataclass(frozen=True, slots=True)
class Refused:
    """An alert of a body that was not taken: its place from 0, the field that is wrong and why."""

    place: int
    field: str
    reason: str

    def __str__(self) -> str:
        return (
            f"alert {self.place}: {self.field}: {self.reason}"
            if self.field
            else f"alert {self.place}: {self.reason}"
        )


class InvalidPayloadError(ValueError):
    """The whole body is not what this endpoint takes: the field that is wrong ("" for the body) and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Parsed:
    """Contents of a body. On endpoints that take all or nothing `refused` is empty: they raise InvalidPayloadError."""

    alerts: tuple[Alert, ...]
    refused: tuple[Refused, ...] = ()
    left_out: tuple[Refused, ...] = ()
    """Items that a mapping or a rule leaves out on purpose, with the reason: nothing is dropped silently."""


# Severity
# ----------------------------------------------------------------------------------------------------------
_WORDS: Mapping[Severity, str] = {
    "critical": "critical crit fatal emergency emerg alert disaster page down p1 sev1",
    "error": "error err major high unreachable p2 sev2",
    "warning": "warning warn minor average medium unknown p3 sev3",
    "info": "info informational information notice low debug ok none p4 p5 sev4 sev5",
}
WORDS_OF_SEVERITY: Mapping[str, Severity] = {
    word: severity for severity, words in _WORDS.items() for word in words.split()
}
"""The words that monitoring systems use, in lower case."""


def severity_of(word: object, default: Severity = "warning") -> Severity:
    """The severity that a sender's word means; `default` for no word or one that nobody knows."""
    return WORDS_OF_SEVERITY.get(str(word).strip().lower(), default) if word else default


# Component
# ----------------------------------------------------------------------------------------------------------
LABELS_OF_COMPONENTS: tuple[tuple[str, str], ...] = (
    ("link", "link"),
    ("disk", "disk"),
    ("gpu", "gpu"),
    ("nic", "nic"),
    ("tor", "tor"),
    ("switch", "switch"),
    ("router", "router"),
    ("storage_cluster", "storage_cluster"),
    ("compute_cluster", "compute_cluster"),
    ("pod", "pod"),
    ("deployment", "deployment"),
    ("statefulset", "statefulset"),
    ("daemonset", "daemonset"),
    ("node", "node"),
    ("host", "host"),
    ("hostname", "host"),
    ("host_name", "host"),
    ("instance", "host"),
    ("device", "device"),
    ("database", "database"),
    ("service", "service"),
    ("service_name", "service"),
    ("job", "service"),
    ("cluster", "cluster"),
)
"""Labels that name a component, the narrowest first, and the kind that they name."""


def component_of(labels: Mapping[str, str]) -> str | None:
    """The component that labels name: `component` if it is `kind/name`, else the first of LABELS_OF_COMPONENTS.

    The port of `instance` is left out; None where no label names anything.
    """
    component = labels.get("component", "").strip()
    if is_component(component):
        return component
    for label, kind in LABELS_OF_COMPONENTS:
        if label not in labels or not (value := labels[label].strip()):
            continue
        if label == "instance":
            value = _PORT.sub("", value)
        name = value if value.startswith(f"{kind}/") else f"{kind}/{_SPACE.sub('-', value)}"
        if value and is_component(name):
            return name
    return None


_HOST = re.compile(r"(?=.*[0-9.-])[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def host_of(text: str) -> str | None:
    """`host/TEXT` for what may be the name of a host: one word with a digit, dot or hyphen. `Website` is none."""
    return f"host/{text}" if _HOST.fullmatch(text) and is_component(f"host/{text}") else None


# Texts
# ----------------------------------------------------------------------------------------------------------
def key_of(text: str) -> str:
    """A sender's key, shortened to LONGEST_NAME characters so that two of them stay two: the rest as its SHA-256.

    Characters that Postgres keeps in no text are replaced; a key with them gets the digest, too.
    """
    clean = _CONTROL.sub("\ufffd", text)
    if clean == text and len(text) <= LONGEST_NAME:
        return text
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{clean[: LONGEST_NAME - len(digest) - 1]}~{digest}"


@dataclass(slots=True)
class Notes:
    """Collects what was changed so that an incident can show an alert."""

    texts: list[str] = field(default_factory=list)

    def line(self, name: str, text: object, longest: int = LONGEST_LINE) -> str:
        """One line without control characters, shortened to `longest` characters."""
        clean = str(text)
        # Nearly every text is clean already, and seeing that is much cheaper than replacing nothing.
        if _is_clean(clean, longest):
            return clean.strip()
        return self._short(name, _SPACE.sub(" ", _CONTROL.sub("\ufffd", clean)).strip(), longest)

    def text(self, name: str, text: object, longest: int = LONGEST_TEXT) -> str:
        """As `line`, with its line breaks."""
        return self._short(name, _CONTROL.sub("\ufffd", str(text)).strip(), longest)

    def labels(self, labels: Mapping[str, Any]) -> dict[str, str]:
        """Names in order, at most MOST_LABELS of them."""
        names = sorted(map(str, labels))
        if len(names) > MOST_LABELS:
            self.texts.append(f"{len(names) - MOST_LABELS} of {len(names)} labels are in the payload only")
        return {
            self.line("a label's name", name, LONGEST_NAME): value.strip()
            if isinstance(value := labels[name], str) and _is_clean(value, LONGEST_VALUE)
            else self.line(f"label {name[:50]}", value, LONGEST_VALUE)
            for name in names[:MOST_LABELS]
        }

    def annotations(self, annotations: Mapping[str, str]) -> dict[str, str]:
        """Names in order with their texts as sent, white space too, but for characters that Postgres keeps in no text
        and for what exceeds MOST_ANNOTATIONS or LONGEST_TEXT."""
        names = sorted(annotations)
        if len(names) > MOST_ANNOTATIONS:
            self.texts.append(
                f"{len(names) - MOST_ANNOTATIONS} of {len(names)} annotations are in the payload only"
            )
        return {
            self._short("an annotation's name", _CONTROL.sub("\ufffd", name), LONGEST_NAME): self._short(
                f"annotation {name[:50]}", _CONTROL.sub("\ufffd", annotations[name]), LONGEST_TEXT
            )
            for name in names[:MOST_ANNOTATIONS]
        }

    def links(self, links: Iterable[tuple[object, object]]) -> tuple[dict[str, str], ...]:
        """(href, text) pairs: http and https only, each address once."""
        shortened: dict[str, dict[str, str]] = {}
        for href, text in links:
            address = str(href or "").strip()
            if not address:
                continue
            if len(address) > LONGEST_ADDRESS:
                self.texts.append(f"a link was left out, it has {len(address)} characters")
            elif not is_address(address):
                self.texts.append(f"a link was left out, it is no http address: {self.line('', address, 80)}")
            elif len(shortened) < MOST_LINKS:
                shortened.setdefault(
                    address, {"href": address, "text": self.line("a link's text", text or "", LONGEST_LINE)}
                )
            else:
                self.texts.append(f"only the first {MOST_LINKS} links are shown")
                break
        return tuple(shortened.values())

    def _short(self, name: str, text: str, longest: int) -> str:
        if len(text) <= longest:
            return text
        if name:
            self.texts.append(f"{name} was shortened from {len(text)} to {longest} characters")
        return text[: longest - 1] + "…"


def _is_clean(text: str, longest: int) -> bool:
    return len(text) <= longest and text.isprintable() and "  " not in text


def is_address(text: str) -> bool:
    """Whether a text is something a person may click on: http or https, without spaces, up to 2,000 characters."""
    return (
        text[:8].lower().startswith(("http://", "https://"))
        and len(text) <= LONGEST_ADDRESS
        and not _CONTROL.search(text)
        and not _SPACE.search(text)
    )


# Times
# ----------------------------------------------------------------------------------------------------------
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


def instant(text: object) -> datetime | None:
    """An RFC 3339 time with a zone; None for no time, which senders also write as the year 1.

    Raises ValueError for anything else.
    """
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise ValueError("must be an RFC 3339 time, such as 2026-01-31T12:00:00Z")
    try:
        # datetime reads at most six digits of a second; senders write up to nine.
        at = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text.strip()))
    except ValueError:
        raise ValueError(
            f"must be an RFC 3339 time, such as 2026-01-31T12:00:00Z, not {text[:40]!r}"
        ) from None
    if at.tzinfo is None:
        raise ValueError(f"must have a time zone (Z or +01:00), not {text[:40]!r}")
    try:
        at = at.astimezone(UTC)
    except OverflowError:
        return None
    return at if FIRST <= at < LAST else None
