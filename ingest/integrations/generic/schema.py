"""Schema of a stored mapping, applied by `ingest.integrations.generic.apply`. Pure."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field
from typing import Any

import re2

from ingest.integrations.generic.templates import InvalidTemplateError, Path, Template, path, template
from ingest.integrations.json_body import called
from ingest.integrations.normalized import MOST_LABELS, MOST_LINKS

TEXTS = ("title", "key", "status", "severity", "component", "group", "description", "starts_at")
REQUIRED = ("title", "key")
MOST_CHOICES, MOST_WORDS = 12, 100
LONGEST_PATTERN = 500
ANY_WORD = "*"
"""Of `words`: every text that is not listed."""


class InvalidMappingError(ValueError):
    """A mapping that cannot be stored: the field that is wrong and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Source:
    """Source of one text: the first of `choices` that finds one, of it what `find` finds, translated by `words` (in
    lower case; ANY_WORD stands for those that are not listed)."""

    choices: tuple[Template, ...]
    words: abc.Mapping[str, str] = field(default_factory=dict)
    default: str = ""
    find: Any = None
    """A pattern of RE2, which is linear in the text; None for the whole text."""

    def meaning(self, text: str) -> str:
        """The translation of a text by `words`; the text itself where they have none."""
        return self.words.get(text.strip().lower(), self.words.get(ANY_WORD, text))

    def found(self, text: str) -> str:
        """Match of `find`: its group where it has one, else all that it matches; empty where it matches nothing."""
        if self.find is None:
            return text
        found = self.find.search(text.encode(errors="replace").decode())
        return "" if found is None else found[min(1, self.find.groups)] or ""


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping that was checked."""

    texts: abc.Mapping[str, Source]
    items: Path | None = None
    labels: abc.Mapping[str, Source] = field(default_factory=dict)
    all_labels_of: Path | None = None
    links: tuple[tuple[Source, Source], ...] = ()
    inside: Path | None = None
    """Path of a JSON text that is read instead of the payload, which `$root` stays."""
    reads_titles: bool = False
    """Whether a title says the status where no field does."""


def mapping(value: object) -> Mapping:
    """The mapping that an object describes. Raises InvalidMappingError with the first thing that is wrong."""
    if not isinstance(value, dict):
        raise InvalidMappingError("", f"must be an object, not {called(value)}")
    known = (*TEXTS, "items", "inside", "labels", "links", "reads_titles")
    for name in value:
        if name not in known:
            raise InvalidMappingError(str(name), f"is not known; there are {', '.join(known)}")
    for name in REQUIRED:
        if name not in value:
            raise InvalidMappingError(name, "is required")
    labels, reads_titles = value.get("labels", {}), value.get("reads_titles", False)
    if not isinstance(reads_titles, bool):
        raise InvalidMappingError("reads_titles", f"must be true or false, not {called(reads_titles)}")
    return Mapping(
        texts={name: _source(value[name], name) for name in TEXTS if name in value},
        items=_path(value["items"], "items") if "items" in value else None,
        labels={} if isinstance(labels, str) else _labels(labels),
        all_labels_of=_path(labels, "labels") if isinstance(labels, str) else None,
        links=_links(value.get("links", [])),
        inside=_path(value["inside"], "inside") if "inside" in value else None,
        reads_titles=reads_titles,
    )


def _labels(value: object) -> dict[str, Source]:
    if not isinstance(value, dict):
        raise InvalidMappingError("labels", f"must be a path or an object of labels, not {called(value)}")
    if len(value) > MOST_LABELS:
        raise InvalidMappingError("labels", f"must be at most {MOST_LABELS}, not {len(value)}")
    return {str(name): _source(rule, f"labels.{name}") for name, rule in value.items()}


def _links(value: object) -> tuple[tuple[Source, Source], ...]:
    if not isinstance(value, list):
        raise InvalidMappingError("links", f"must be an array, not {called(value)}")
    if len(value) > MOST_LINKS:
        raise InvalidMappingError("links", f"must be at most {MOST_LINKS}, not {len(value)}")
    links = []
    for place, link in enumerate(value):
        where = f"links[{place}]"
        if not isinstance(link, dict) or "href" not in link or set(link) - {"href", "text"}:
            raise InvalidMappingError(where, "must be an object of href and text")
        links.append((_source(link["href"], f"{where}.href"), _source(link.get("text", ""), f"{where}.text")))
    return tuple(links)


def _source(value: object, where: str) -> Source:
    if not isinstance(value, dict):
        return Source(_choices(value, where))
    for name in value:
        if name not in ("from", "find", "words", "default"):
            raise InvalidMappingError(f"{where}.{name}", "is not known; there are from, find, words, default")
    if "from" not in value:
        raise InvalidMappingError(f"{where}.from", "is required")
    default = value.get("default", "")
    if not isinstance(default, str):
        raise InvalidMappingError(f"{where}.default", f"must be a text, not {called(default)}")
    return Source(
        _choices(value["from"], f"{where}.from"),
        _words(value.get("words", {}), f"{where}.words"),
        default,
        _pattern(value["find"], f"{where}.find") if "find" in value else None,
    )


def _pattern(value: object, where: str) -> Any:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_PATTERN:
        raise InvalidMappingError(where, f"must be a pattern of 1 to {LONGEST_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(value.encode(errors="replace").decode(), options)
    except re2.error as error:
        raise InvalidMappingError(where, f"must be a regular expression of RE2: {error}") from None
    if pattern.groups > 1:
        raise InvalidMappingError(where, "must have at most one group, which is what it finds; (?:…) is none")
    return pattern


def _choices(value: object, where: str) -> tuple[Template, ...]:
    choices = value if isinstance(value, list) else [value]
    if not 1 <= len(choices) <= MOST_CHOICES:
        raise InvalidMappingError(where, f"must be one template or an array of up to {MOST_CHOICES}")
    try:
        return tuple(map(template, choices))
    except InvalidTemplateError as error:
        raise InvalidMappingError(where, str(error)) from None


def _words(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(word, str) for word in value.values()):
        raise InvalidMappingError(where, "must be an object of texts")
    if len(value) > MOST_WORDS:
        raise InvalidMappingError(where, f"must be at most {MOST_WORDS}, not {len(value)}")
    return {str(word).strip().lower(): meaning for word, meaning in value.items()}


def _path(value: object, where: str) -> Path:
    try:
        return path(value)
    except InvalidTemplateError as error:
        raise InvalidMappingError(where, str(error)) from None
