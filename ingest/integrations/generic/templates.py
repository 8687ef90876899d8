"""Texts made of parts of a JSON value: constants, paths, templates. Pure; what stored mappings are written in.

- `$.host.name`, `$.disks[0]`, `$["a key"]`: a path, from the item at hand; `$root.receiver` from the whole payload.
- `{host.name}: {$root.service}`: a template, paths within braces (`$.` may be left out); `{{` and `}}` are braces.
- Anything else is a constant.

Paths are the singular queries of JSONPath (RFC 9535, 2.3.5.1), names without quotes being anything up to the next dot
or bracket: they find one value at a cost that their own length bounds. Libraries for JSONPath and JMESPath bring
wildcards, filters and functions, whose cost grows with the payload times itself, and which nobody can preview field
by field; so these forty lines and no library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ingest.integrations.json_body import called, scalar

LONGEST = 1_000
"""Characters of one template."""
MOST_STEPS = 20
MOST_ENTRIES = 50
"""Of an array of texts that becomes one text."""
LONGEST_PART = 10_000

_STEP = re.compile(r"""\.([^.\[\]{}\s"']+)|\[(-?\d{1,9})\]|\["([^"]*)"\]|\['([^']*)'\]""")
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_SHOWN = 60


class InvalidTemplateError(ValueError):
    """A text that is no path or template, and why."""


@dataclass(frozen=True, slots=True)
class Path:
    """Names and indices from a root to one value."""

    text: str
    steps: tuple[str | int, ...]
    from_root: bool

    def find(self, item: Any, root: Any) -> Any:
        """The value; None where there is none."""
        value = root if self.from_root else item
        for step in self.steps:
            if isinstance(step, str) and isinstance(value, dict):
                value = value.get(step)
            elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
                value = value[step]
            else:
                return None
        return value


@dataclass(frozen=True, slots=True)
class Filled:
    """Result of a template: its text, its derivation, and whether every path found something."""

    text: str
    why: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Template:
    """Constants and paths that make one text."""

    text: str
    parts: tuple[str | Path, ...]

    @property
    def is_constant(self) -> bool:
        return not any(isinstance(part, Path) for part in self.parts)

    def fill(self, item: Any, root: Any) -> Filled:
        """The text, empty when none of its paths finds one."""
        if self.is_constant:
            return Filled("".join(map(str, self.parts)), "as the mapping says", True)
        parts: list[str] = []
        texts: list[str] = []
        found: list[bool] = []
        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            text, why = _text(part.find(item, root))
            found.append(bool(text.strip()))
            texts.append(text)
            parts.append(f"{part.text} {why}")
        return Filled("".join(texts).strip() if any(found) else "", ", ".join(parts), all(found))


def template(text: object) -> Template:
    """The template that a text writes. Raises InvalidTemplateError."""
    if not isinstance(text, str):
        raise InvalidTemplateError(
            f"must be a text: a constant, a path ($.host.name) or a template, not {called(text)}"
        )
    if len(text) > LONGEST:
        raise InvalidTemplateError(f"must be at most {LONGEST} characters, not {len(text)}")
    if text.startswith("$"):
        return Template(text, (path(text),))
    return Template(text, tuple(_parts(text)))


def path(text: object) -> Path:
    """The path that a text writes. Raises InvalidTemplateError."""
    if not isinstance(text, str) or not text.startswith("$"):
        raise InvalidTemplateError(
            f"must be a path such as $.host.name, not {text if isinstance(text, str) else called(text)!r}"
        )
    from_root = re.match(r"\$root(?![^.\[])", text) is not None
    place = 5 if from_root else 1
    steps: list[str | int] = []
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            raise InvalidTemplateError(
                f"{text!r} is no path: {text[place:][:20]!r} is neither .name nor [0] nor ['name']"
            )
        name, index, double, single = step.groups()
        steps.append(int(index) if index is not None else name or double or single or "")
        place = step.end()
    if len(steps) > MOST_STEPS:
        raise InvalidTemplateError(f"a path must have at most {MOST_STEPS} steps, not {len(steps)}")
    return Path(text, tuple(steps), from_root)


def _parts(text: str) -> Iterator[str | Path]:
    place = 0
    for piece in _PIECE.finditer(text):
        if piece.start() > place:
            yield text[place : piece.start()]
        place = piece.end()
        match piece[0]:
            case "{{" | "}}":
                yield piece[0][0]
            case "{" | "}":
                raise InvalidTemplateError(
                    f"{text!r} has a brace without its other; {{{{ and }}}} write braces"
                )
            case _:
                inner = piece[1].strip()
                if not inner:
                    raise InvalidTemplateError(f"{text!r} has nothing between two braces")
                yield path(
                    inner if inner.startswith("$") else f"${inner}" if inner[0] == "[" else f"$.{inner}"
                )
    if place < len(text):
        yield text[place:]


def _text(value: Any) -> tuple[str, str]:
    """A value as a text, and what it is."""
    match value:
        case None:
            return "", "is missing"
        case dict():
            return "", "is an object and no text"
        case list() if any(isinstance(entry, (dict, list)) for entry in value[:MOST_ENTRIES]):
            return "", "is an array of more than texts"
        case list():
            text = scalar(value[:MOST_ENTRIES])[:LONGEST_PART]
        case _:
            text = scalar(value)[:LONGEST_PART]
    return text, f"is {shown(text)}" if text.strip() else "is empty"


def shown(text: str) -> str:
    """A text between quotes, cut so that it can stand in a sentence."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
