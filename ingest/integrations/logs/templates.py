"""Log records counted by template: rows of the kind `log_count`. Pure, but for a bounded memory of templates.

A template is the text of a record with `<*>` for each part that varies: quoted texts, words that hold a digit, mail
addresses, long hexadecimal, values of `key=value`, lists, names of days and months. The template depends on the text
alone, so that any two processes name it alike, in whatever order they see the records. Drain (He et al., ICWS 2017)
also replaces words that differ between otherwise equal lines; its templates depend on what was seen before, so two web
workers would disagree. Such words are merged where the rows are read. The library `drain3` has no wheel.

Bounds: the first line of a record, `LONGEST` characters, and by service `MOST_TEMPLATES` templates of which the process
knows; further ones are shortened to two words.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from ingest.integrations.spans import instant
from ingest.log.types import rfc3339

ANY = "<*>"
LONGEST = 300
READ = 1_000
"""Characters of a line that are looked at."""
MOST_TEMPLATES = 500
MOST_SHORTENED = 100
MOST_SERVICES = 500
OVER_NS = 10 * 10**9
"""Nanoseconds over which equal records are one row."""

_SEVERITIES = {
    "trace": "trace", "debug": "debug", "info": "info", "information": "info", "notice": "info", "warn": "warn",
    "warning": "warn", "error": "error", "err": "error", "severe": "error", "critical": "fatal", "crit": "fatal",
    "fatal": "fatal", "alert": "fatal", "emergency": "fatal", "emerg": "fatal", "panic": "fatal",
}  # fmt: skip

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_QUOTED = re.compile(r"""(?<!\w)"[^"]*"|(?<!\w)'[^']*'(?!\w)""")
_DIGITS = re.compile(r"[\w.+-]+@[\w.-]+|\b[0-9a-fA-F]{8,}\b|[\w.:/@%+-]*\d[\w.:/@%+-]*")
_CALENDAR = re.compile(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b(?= <\*>| [A-Z][a-z]{2} <\*>)"
)
_VALUE = re.compile(r"(\b[\w.-]+=)[^\s,;()\[\]{}]+")
_LIST = re.compile(r"\[[^\[\]]*,[^\[\]]*\]|\{[^{}]*\}|\([^()]*[,=][^()]*\)")
_OPEN = re.compile(r"[\[({][^\])}]*$")
_SEVERAL = re.compile(r"<\*>(?:[\s,;:]*<\*>)+")
_SPACE = re.compile(r"[\s\x00-\x1f\x7f\ud800-\udfff]+")
_WORD = re.compile(r"[A-Za-z]+")


def template(text: str) -> str:
    """Constant part of a record's text; empty for an empty text."""
    first = text.strip().partition("\n")[0]
    line = _ESCAPES.sub("", first[:READ])
    line = _QUOTED.sub(ANY, _SPACE.sub(" ", line).strip())
    line = _CALENDAR.sub(ANY, _DIGITS.sub(ANY, line))
    line = _VALUE.sub(rf"\1{ANY}", line)
    for _ in range(3):
        line = _LIST.sub(ANY, line)
    if len(first) > READ:
        line = _OPEN.sub(ANY, line)
    return " ".join(_without_repetition(_SEVERAL.sub(ANY, line).split(" ")))[:LONGEST].rstrip()


def _without_repetition(words: list[str]) -> list[str]:
    """Of several like words with a varying part the first: a list of five is the same text as a list of two."""
    bare = [word.strip("[](){},;") if ANY in word else "" for word in words]
    return [
        word
        for place, word in enumerate(words)
        if not bare[place] or bare[place] != bare[place - 1] or not place
    ]


def severity_of(word: str) -> str:
    """The severity that a logger's word for it means; `unspecified` for no known word."""
    return _SEVERITIES.get(word.strip().lower(), "unspecified")


def severity_in(text: str) -> str:
    """The severity among the first words of a line, where it is written in capitals; else `unspecified`."""
    for word in _WORD.findall(text[:80])[:8]:
        if word.isupper() and (found := severity_of(word)) != "unspecified":
            return found
    return "unspecified"


@dataclass(slots=True)
class Templates:
    """Templates by service as far as one process has seen them, so that their number stays bounded."""

    known: OrderedDict[str, tuple[set[str], set[str]]] = field(default_factory=OrderedDict)

    def of(self, service: str, text: str) -> str:
        """The template of a text, shortened to two words or to nothing where a service has too many."""
        found = template(text)
        whole, short = self.known.setdefault(service, (set(), set()))
        self.known.move_to_end(service)
        if len(self.known) > MOST_SERVICES:
            self.known.popitem(last=False)
        if found in whole:
            return found
        if len(whole) < MOST_TEMPLATES:
            whole.add(found)
            return found
        found = " ".join([*found.split(" ")[:2], ANY])
        if found in short or len(short) < MOST_SHORTENED:
            short.add(found)
            return found
        return ANY


@dataclass(frozen=True, slots=True)
class Record:
    """A log record: nanoseconds since 1970, `kind/name` of who wrote it, its service, its severity and its text."""

    time: int
    component: str
    service: str
    severity: str
    text: str


Counted = tuple[int, str, str, str, int]
"""Nanoseconds since 1970, component, template, severity and number of records."""


def counted(records: Iterable[Record], templates: Templates) -> list[Counted]:
    """The equal records of each ten seconds as one, at the time of the first; in order of time."""
    counts: dict[tuple[str, str, str, int], list[int]] = {}
    for one in records:
        key = one.component, templates.of(one.service, one.text), one.severity, one.time // OVER_NS
        found = counts.setdefault(key, [one.time, 0])
        found[0] = min(found[0], one.time)
        found[1] += 1
    return sorted((first, *key[:3], count) for key, (first, count) in counts.items())


def count_rows(
    records: Iterable[Record], templates: Templates, shift: timedelta = timedelta(0)
) -> list[dict[str, object]]:
    """The same as `log_count` rows; `shift` is added to every time."""
    return [
        {
            "time": rfc3339(instant(time) + shift),
            "component": component,
            "template": text,
            "severity": severity,
            "count": count,
        }
        for time, component, text, severity, count in counted(records, templates)
    ]
