"""The search of the inbox as text: `disk team:storage -severity:info label:rack=r12`. Pure; knows no incidents.

A search is words between spaces. `name:value` asks one field; alternatives stand between commas or are repeated.
Whatever stands in double quotes is one piece. A `-` before a word turns it round. Other words are looked for as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from incidents.domain.values import SEVERITIES, STATES

LIMIT: Final = 1000
"""Characters of a search."""
MOST_TERMS: Final = 50

FIELDS: Final = {
    "team": "slug of a team, such as team:storage",
    "component": "start of the name, or with *: component:tor/dc1-*, component:none",
    "state": f"{', '.join(STATES)}, or unresolved",
    "severity": ", ".join(SEVERITIES),
    "owner": "a login, me or none",
    "label": "label:rack=r12, or label:rack for any value",
    "analyzer": "analyzer of the verdict",
    "service": "slug of a service, or none",
    "is": "flapping, firing, blamed, merged, handed_over or storm",
    "number": "incident number; short form #12",
    "cause": "the confirmed cause: a component, a class such as firmware, or none",
    "age": "age:<2h (younger), age:>1d (older); units min, h, d, w",
    "alerts": "number of alerts: alerts:>10",
    "hops": "number of hand-overs: hops:>=2",
    "confidence": "from 0 to 1: confidence:>0.9",
}
"""Fields of a search, and the values after the colon."""
FLAGS: Final = ("flapping", "firing", "blamed", "merged", "handed_over", "storm")
NUMBERS: Final = ("alerts", "hops", "confidence")
_CHOICES: Final = {"state": (*STATES, "unresolved"), "severity": SEVERITIES, "is": FLAGS}
_WORD: Final = re.compile(r'-?(?:[^\s"]|"[^"]*")+|"')
_NAMED: Final = re.compile(r"([A-Za-z_]+):(.*)", re.DOTALL)
_PIECE: Final = re.compile(r'(?:[^,"]|"[^"]*")+')
_COMPARED: Final = re.compile(r"(>=|<=|>|<)?([0-9]{0,9}(?:\.[0-9]{1,6})?)")
_AGE: Final = re.compile(r"([<>])([0-9]{1,4})(min|h|d|w)")
MINUTES: Final = {"min": 1, "h": 60, "d": 1440, "w": 10_080}


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a search: `field` is "" for text. `written` is how it stood there."""

    field: str
    values: tuple[str, ...]
    negated: bool
    written: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A word that cannot be read: which, and what would be right."""

    written: str
    reason: str

    def __str__(self) -> str:
        return f"{self.written}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Search:
    terms: tuple[Term, ...]
    problems: tuple[Problem, ...]


def read(text: str, teams: Sequence[str] | None = None) -> Search:
    """The words of a search. With `teams`, a team that is none of them is a problem. Never raises."""
    if len(text) > LIMIT:
        return Search((), (Problem(f"{text[:30]}…", f"must have at most {LIMIT} characters"),))
    words = _WORD.findall(text)
    if len(words) > MOST_TERMS:
        return Search((), (Problem(f"{len(words)} words", f"must be at most {MOST_TERMS}"),))
    terms, problems = [], []
    for written in words:
        found = _term(written)
        why = found if isinstance(found, str) else _wrong(found, teams)
        if why:
            problems.append(Problem(written, why))
        elif isinstance(found, Term):
            terms.append(found)
    return Search(tuple(terms), tuple(problems))


def _term(written: str) -> Term | str:
    """A word as a term, or why it is none."""
    negated = len(written) > 1 and written.startswith("-")
    word = written[1:] if negated else written
    if word.count('"') % 2:
        return "a quotation mark is missing: put one at the end, or write '\"' nowhere"
    named = _NAMED.fullmatch(word)
    if named is None:
        if re.fullmatch(r"#[0-9]{1,15}", word):
            return Term("number", (word[1:],), negated, written)
        return Term("", (_bare(word),), negated, written) if _bare(word) else "is empty"
    field = named[1].lower()
    if field not in FIELDS:
        near = get_close_matches(field, FIELDS, 1)
        hint = f"did you mean {near[0]}:?" if near else f"fields are {', '.join(FIELDS)}."
        return f'is not a field; {hint} To search for it as text, use quotes: "{_bare(word)}"'
    values = tuple(value for piece in _PIECE.findall(named[2]) if (value := _bare(piece)))
    return (
        Term(field, values, negated, written) if values else f"needs a value after the colon: {FIELDS[field]}"
    )


def _bare(piece: str) -> str:
    return piece.replace('"', "").strip()


def _wrong(term: Term, teams: Sequence[str] | None) -> str:
    """Reason why the values of a term are none of its field's, or ""."""
    return next((why for value in term.values if (why := _wrong_value(term.field, value, teams))), "")


def _wrong_value(field: str, value: str, teams: Sequence[str] | None) -> str:
    if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in value):
        return "must not contain control characters"
    if field in _CHOICES:
        return _not_one_of(value.lower(), _CHOICES[field])
    if field == "team" and teams is not None:
        return _not_one_of(value, teams)
    if field == "number":
        return "" if re.fullmatch(r"#?[0-9]{1,15}", value) else "must be an incident number such as #12"
    if field == "age":
        return "" if _AGE.fullmatch(value) else f"must be such as {FIELDS['age']}"
    if field in NUMBERS:
        found = _COMPARED.fullmatch(value)
        whole = field == "confidence" or "." not in value
        return "" if found and whole and found[2] not in ("", ".") else f"must be a number, {FIELDS[field]}"
    if field == "component" and value.count("*") > 10:
        return "must have at most ten *"
    return ""


def _not_one_of(value: str, choices: Sequence[str]) -> str:
    if value in choices:
        return ""
    near = get_close_matches(value, choices, 1)
    hint = f"did you mean {near[0]}? It " if near else ""
    return f"{hint}must be one of {', '.join(choices)}"


def compared(value: str) -> tuple[str, float]:
    """`>=2` as its sign ("=" without one) and its number. Of a value that `read` let through."""
    found = _COMPARED.fullmatch(value)
    assert found is not None
    return found[1] or "=", float(found[2])


def age(value: str) -> tuple[str, int]:
    """`<2h` as its sign and minutes. Of a value that `read` let through."""
    found = _AGE.fullmatch(value)
    assert found is not None
    return found[1], int(found[2]) * MINUTES[found[3]]


# Written
# ----------------------------------------------------------------------------------------------------------
def quoted(value: str) -> str:
    """A value as it stands behind a colon."""
    return f'"{value}"' if re.search(r"[\s,]", value) else value


def changed(text: str, field: str, values: Iterable[str]) -> str:
    """The search with what it asks `field` to be replaced by these values; with none, taken away. What it asks the
    field not to be stays."""
    others = [
        written
        for written in _WORD.findall(text)
        if not (isinstance(found := _term(written), Term) and found.field == field and not found.negated)
    ]
    values_text = ",".join(quoted(value) for value in values)
    return " ".join([*others, f"{field}:{values_text}"] if values_text else others)


def chosen(search: Search, field: str) -> str:
    """The one value that a search asks a field to be, or "" where it asks for none or several."""
    values = [
        value for term in search.terms if term.field == field and not term.negated for value in term.values
    ]
    return values[0] if len(values) == 1 else ""


def matches_glob(pattern: str, text: str) -> bool:
    """Whether `text` is what a pattern with `*` says, in any case; without `*`, whether it begins so."""
    pieces = pattern.lower().split("*")
    text, first, last = text.lower(), pieces[0], pieces[-1]
    if len(pieces) == 1:
        return text.startswith(first)
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    place, end = len(first), len(text) - len(last)
    for piece in pieces[1:-1]:
        place = text.find(piece, place, end)
        if place < 0:
            return False
        place += len(piece)
    return True


# Suggested
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Suggestion:
    """Whole search with the suggested word, the word itself, and its meaning."""

    search: str
    word: str
    meaning: str


def suggestions(text: str, known: Callable[[str, str], Sequence[str]], most: int = 8) -> list[Suggestion]:
    """Continuations of the last word of a search. `known(field, begin)` looks up values of a field that begin so."""
    if len(text) > LIMIT or text.count('"') % 2:
        return []
    words = _WORD.findall(text)
    last = words.pop() if words and not text[-1:].isspace() else ""
    before = "".join(f"{word} " for word in words)
    sign, last = ("-", last[1:]) if last.startswith("-") else ("", last)
    named = _NAMED.fullmatch(last)
    if named is None:
        begun = [name for name in FIELDS if name.startswith(last.lower())]
        return [Suggestion(f"{before}{sign}{name}:", f"{sign}{name}:", FIELDS[name]) for name in begun][:most]
    field, (given, comma, part) = named[1].lower(), named[2].rpartition(",")
    part = _bare(part).lower()
    values = _CHOICES[field] if field in _CHOICES else known(field, part)
    begun = [value for value in values if value.lower().startswith(part) and value.lower() != part]
    words = [f"{sign}{field}:{given}{comma}{quoted(value)}" for value in begun[:most]]
    return [Suggestion(f"{before}{word} ", word, "") for word in words]
