"""Any JSON through a stored mapping: which parts of a payload are an alert's title, key, status and so on. Pure.

A mapping is data, checked by `mapping` when it is stored; `apply` tells for every field where its value came from, so
that a mapping can be tried before anything is sent. Each field is a template
(see `ingest.integrations.generic.templates`), or an object around one:

    {"from": "$.state", "words": {"PROBLEM": "firing", "RECOVERY": "resolved"}, "default": "firing"}

`from` may be an array: the first counts whose every path finds a text, the last with whatever it finds. `words`
translates whole texts, whatever their case; `*` is any text that is not listed. `find` is a pattern of RE2: what its
group finds in the text, or all that it matches, is the text, as in `{"from": "$.subject", "find": "#(\\d+)"}`.

    {
      "items": "$.alerts",                     where the alerts are; without it the payload, or each of its items
      "inside": "$.Message",                   where a text of JSON stands that is read instead; $root is the payload
      "title": "{host}: {check}",              required
      "key": "{host}/{check}",                 required: the same for all messages about one thing
      "status": "$.state",                     firing (default), acknowledged, resolved; `ignored` or `ignored: REASON`
                                               leaves a message out; any other word fires and is shown as received
      "reads_titles": true,                    where no field says the status, the title does: `[OK] Disk`
      "severity": "$.level",                   critical, error, warning (default), info, words of WORDS_OF_SEVERITY
      "component": "host/{host}",              kind/name; default: what the labels name
      "group": "$.check", "description": "$.output",
      "starts_at": "$.since",                  RFC 3339, or seconds or milliseconds since 1970
      "labels": {"team": "$.team"},            or a path to an object: all texts within it
      "links": [{"href": "$.url", "text": "Check"}]
    }
"""

from __future__ import annotations

import re
from collections import abc
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl

from ingest.integrations.generic.schema import InvalidMappingError, Mapping, Source, mapping
from ingest.integrations.generic.templates import shown
from ingest.integrations.json_body import LARGEST_REQUEST, called, leaves, read
from ingest.integrations.normalized import (
    FIRST,
    LAST,
    MOST_ALERTS,
    WORDS_OF_SEVERITY,
    Alert,
    InvalidPayloadError,
    Notes,
    Parsed,
    Refused,
    Status,
    component_of,
    instant,
    key_of,
)
from ingest.integrations.recovery import key_of_title, read_title, status_of
from ingest.telemetry.kinds.declare import COMPONENT_FORM, is_component

__all__ = ["InvalidMappingError", "Item", "Mapping", "Preview", "apply", "mapping", "read_form", "receive"]

MOST_ITEMS = MOST_ALERTS
"""Of one payload."""
FORM: Final = "application/x-www-form-urlencoded"
MOST_FIELDS = 200
"""Of a form."""
IGNORED: Final = "ignored"
_NUMBER = re.compile(r"\d{1,20}(\.\d{1,20})?")
STATUS_LABEL: Final = "status"
"""Label that holds an unknown status word."""
_OVER: Final = frozenset({"clear", "cleared", "ok", "normal", "resolved", "recovered"})
"""Words in place of a severity that say that an alert is over."""


@dataclass(frozen=True, slots=True)
class Item:
    """Outcome of one item of a payload: an alert, or the reason why not. `why` tells it for every field."""

    place: int
    alert: Alert | None = None
    refused: str = ""
    refused_field: str = ""
    ignored: str = ""
    """Reason why the mapping leaves this item out on purpose."""
    why: abc.Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preview:
    """Result of a mapping for a payload, item by item."""

    items: tuple[Item, ...]

    @property
    def parsed(self) -> Parsed:
        """The alerts, what was refused, and what the mapping leaves out."""
        return Parsed(
            tuple(item.alert for item in self.items if item.alert is not None),
            tuple(
                Refused(item.place, item.refused_field, item.refused) for item in self.items if item.refused
            ),
            tuple(Refused(item.place, "", item.ignored) for item in self.items if item.ignored),
        )


def receive(how: Mapping, body: bytes, media_type: str = "application/json") -> Preview:
    """Result of a mapping for a body. Raises InvalidPayloadError for one that cannot be read or holds no items."""
    return apply(how, payload_of(body, media_type))


def payload_of(body: bytes, media_type: str) -> Any:
    """The value of a body of JSON, or of a form. Raises InvalidPayloadError."""
    return read_form(body) if media_type == FORM else read(body)


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a form as an object of texts; of a field that is given twice the last counts.

    Forms are for senders that can call curl and cannot write JSON: `--data-urlencode` takes any text as it is.
    """
    if len(body) > LARGEST_REQUEST:
        raise InvalidPayloadError("", f"must be at most {LARGEST_REQUEST} bytes, not {len(body)}")
    try:
        return dict(
            parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        )
    except ValueError:
        raise InvalidPayloadError("", f"must be a form of at most {MOST_FIELDS} fields") from None


def apply(how: Mapping, payload: Any) -> Preview:
    """Result of a mapping for a payload as `json_body.read` or `read_form` gave it. Raises InvalidPayloadError."""
    inner = _inside(how, payload)
    found = inner if how.items is None else how.items.find(inner, payload)
    items = found if isinstance(found, list) else [found]
    where = "" if how.items is None else how.items.text
    if len(items) > MOST_ITEMS:
        raise InvalidPayloadError(where, f"must be at most {MOST_ITEMS} items, not {len(items)}")
    if not isinstance(found, (dict, list)):
        raise InvalidPayloadError(where, f"must be an object or an array of objects, not {called(found)}")
    return Preview(tuple(_item(how, place, item, payload) for place, item in enumerate(items)))


def _inside(how: Mapping, payload: Any) -> Any:
    """Value in the text at `inside`; the payload where there is none, or it is no object."""
    text = None if how.inside is None else how.inside.find(payload, payload)
    if not isinstance(text, str):
        return payload
    try:
        inner = read(text.encode())
    except InvalidPayloadError:
        return payload
    return inner if isinstance(inner, dict) else payload


def _item(how: Mapping, place: int, item: Any, root: Any) -> Item:
    if not isinstance(item, dict):
        return Item(place, refused=f"must be an object, not {called(item)}")
    reading = _Reading(how, item, root)
    try:
        status = reading.status()
        if status is None:
            return Item(place, ignored=reading.left_out(), why=reading.why)
        return Item(place, alert=reading.alert(status), why=reading.why)
    except InvalidPayloadError as bad:
        return Item(place, refused=bad.reason, refused_field=bad.field, why=reading.why)


@dataclass(slots=True)
class _Reading:
    """One item being read."""

    how: Mapping
    item: Any
    root: Any
    why: dict[str, str] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    unknown: str = ""
    """A status word as received that has no meaning here."""

    def alert(self, status: Status) -> Alert:
        labels = self._labels()
        title = self.notes.line("the title", self._needed("title"))
        key = self._needed("key")
        if self.how.reads_titles:
            title, key = read_title(title)[1], key_of_title(key)
        if self.unknown:
            labels.setdefault(STATUS_LABEL, self.unknown)
        return Alert(
            key=key_of(key),
            status=status,
            title=title,
            severity=WORDS_OF_SEVERITY[self._severity()],
            group=self.notes.line("the group", self._text("group")),
            component=self._component(labels),
            description=self.notes.text("the description", self._text("description")),
            labels=self.notes.labels(labels),
            links=self.notes.links(
                (self._read(href, f"links[{n}].href"), self._read(text, f"links[{n}].text"))
                for n, (href, text) in enumerate(self.how.links)
            ),
            starts_at=self._starts_at(),
            notes=tuple(self.notes.texts),
        )

    def status(self) -> Status | None:
        """None for an item that the mapping leaves out."""
        if "status" not in self.how.texts:
            if self.how.reads_titles and (status := self._implied("the mapping names no field")) is not None:
                return status
            self.why["status"] = "firing, the mapping says nothing else"
            return "firing"
        word = self._text("status").strip().lower()
        if word == IGNORED or word.startswith(f"{IGNORED}:"):
            return None
        if (status := status_of(word)) is not None:
            return status
        if self.how.reads_titles and (status := self._implied(self.why["status"])) is not None:
            return status
        if word:
            self.unknown = self._text("status").strip()
            note = f"the status {shown(self.unknown)} is not known and was taken as firing"
            self.why["status"] += f"; {note}"
            self.notes.texts.append(f"{note}; put it into `words` of the status in the integration's mapping")
        elif self.how.reads_titles:
            self.why["status"] += "; nothing says a status, so firing"
        else:
            raise InvalidPayloadError("status", f"is empty: {self.why['status']}")
        return "firing"

    def left_out(self) -> str:
        """Reason why the mapping leaves this item out: the one that it gives, else the origin of the word."""
        reason = self._text("status").strip().partition(":")[2].strip()
        return reason or self.why["status"]

    def _implied(self, why: str) -> Status | None:
        """Status that the severity (`clear`) or the title (`[OK] Disk d7`) implies; `why` no field does."""
        if self._text("severity").strip().lower() in _OVER:
            self.why["status"] = f"{why}, resolved because of the severity"
            return "resolved"
        status, _ = read_title(self._text("title"))
        if status is not None:
            self.why["status"] = f"{why}, {status} because of the title"
        return status

    def _severity(self) -> str:
        word = self._text("severity").strip().lower()
        if word in WORDS_OF_SEVERITY:
            return word
        if "severity" in self.how.texts:
            self.why["severity"] += (
                f"; {shown(word)} is no severity, taken as warning" if word else "; taken as warning"
            )
        else:
            self.why["severity"] = "warning, the mapping says nothing else"
        return "warning"

    def _component(self, labels: abc.Mapping[str, str]) -> str | None:
        if "component" in self.how.texts:
            # A name may have spaces where it comes from, a component has none.
            text = "-".join(self._text("component").split())
            if is_component(text):
                return text
            if text:
                self.why["component"] += f"; {shown(text)} is none, it must be {COMPONENT_FORM}"
        found = component_of(labels)
        if found:
            why = self.why.get("component")
            self.why["component"] = f"{why}; {found} from the labels" if why else f"{found} from the labels"
        return found

    def _starts_at(self) -> datetime | None:
        text = self._text("starts_at").strip()
        try:
            return _moment(text)
        except ValueError as error:
            self.notes.texts.append(f"starts_at {error}")
            return None

    def _labels(self) -> dict[str, str]:
        if self.how.all_labels_of is not None:
            found = leaves(self.how.all_labels_of.find(self.item, self.root))
            self.why["labels"] = f"{len(found)} texts within {self.how.all_labels_of.text}"
            return {name: text for name, text in found.items() if name}
        read = {name: self._read(source, f"labels.{name}") for name, source in self.how.labels.items()}
        return {name: text for name, text in read.items() if text}

    def _needed(self, name: str) -> str:
        text = self._text(name).strip()
        if not text:
            raise InvalidPayloadError(name, f"is empty: {self.why[name]}")
        return text

    def _text(self, name: str) -> str:
        return self._read(self.how.texts[name], name) if name in self.how.texts else ""

    def _read(self, source: Source, where: str) -> str:
        parts: list[str] = []
        for choice in source.choices:
            filled = choice.fill(self.item, self.root)
            parts.append(filled.why)
            if not filled.text or not (filled.whole or choice is source.choices[-1]):
                continue
            found = source.found(filled.text)
            if not found:
                parts.append("in which the pattern finds nothing")
                continue
            if found != filled.text:
                parts.append(f"in which the pattern finds {shown(found)}")
            meaning = source.meaning(found)
            if meaning != found:
                parts.append(f"which means {shown(meaning)}")
            self.why[where] = ", ".join(parts)
            return meaning
        if source.default:
            parts.append(f"so the default {shown(source.default)}")
        self.why[where] = ", ".join(parts)
        return source.default


def _moment(text: str) -> datetime | None:
    """RFC 3339, or seconds, milli-, micro- or nanoseconds since 1970, told apart by their size; 0 is no time."""
    if not _NUMBER.fullmatch(text):
        return instant(text)
    number = float(text)
    while number >= 1e11:
        number /= 1000
    at = datetime.fromtimestamp(number, UTC)
    return at if FIRST < at < LAST else None
