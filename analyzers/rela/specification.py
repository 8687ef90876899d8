"""The specification of a change: its grammar, as a tree. Names of locations are resolved by `automata`.

    zone NAME = LOCATION ...          locations by name or glob
    path NAME = PATHS                 a named set of paths
    for NAME=VALUE ...: RULES         traffic classes by label; the first `for` that selects a class decides
    RULES = RULE else RULE ...        a path belongs to the first rule whose scope has it
    RULE  = RELATION [on PATHS]

A line that begins with a space continues the one before; `#` begins a comment. PATHS is a regular expression over
locations: names separated by spaces, `.` for any location, `|`, `*`, `+`, `?` and parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 65_536
"""Characters of a specification."""
DEEPEST = 50
"""Parentheses within one another."""
MOST_RULES = 100
RELATIONS = ("nochange", "add", "remove", "replace", "any", "drop")
RESERVED = frozenset({*RELATIONS, "on", "else", "for", "zone", "path"})
_TOKEN = re.compile(r'\s*(?:"([^"\n]+)"|([A-Za-z0-9_](?:[A-Za-z0-9_@/:.\-]*[A-Za-z0-9_])?)|([.()|*+?,]))')
_SELECTOR = re.compile(r"for\s+(.*?):(?:\s+|$)(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*")


class InvalidSpecificationError(ValueError):
    """The specification cannot be read; the message names the line and what would be right."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"specification, line {line}: {reason}")


@dataclass(frozen=True, slots=True)
class Node:
    """A regular expression over locations. `kind`: name, any, cat, alt, star, plus or maybe."""

    kind: str
    line: int
    name: str = ""
    parts: tuple[Node, ...] = ()

    def named(self) -> Iterator[Node]:
        """The nodes that name a location, zone or path set."""
        if self.kind == "name":
            yield self
        for part in self.parts:
            yield from part.named()


@dataclass(frozen=True, slots=True)
class Rule:
    """`relation(paths[0], paths[1]) on zone`; `text` is as written."""

    relation: str
    paths: tuple[Node, ...]
    zone: Node | None
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """Rules of the classes whose labels match `selector`: pairs of name and value, none for all classes."""

    selector: tuple[tuple[str, str], ...]
    rules: tuple[Rule, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Specification:
    """`zones` map a name to names or globs of locations with the line; `paths` a name to its expression."""

    zones: dict[str, tuple[tuple[str, ...], int]]
    paths: dict[str, Node]
    blocks: tuple[Block, ...]


def parse(text: str) -> Specification:
    """The specification of a text. Raises InvalidSpecificationError."""
    if len(text) > LONGEST:
        raise InvalidSpecificationError(1, f"longer than {LONGEST:,} characters")
    zones: dict[str, tuple[tuple[str, ...], int]] = {}
    paths: dict[str, Node] = {}
    blocks: list[Block] = []
    for line, statement in _statements(text):
        word = statement.split(None, 1)[0]
        if word in ("zone", "path"):
            name, body = _definition(word, statement, line)
            if name in zones or name in paths:
                raise InvalidSpecificationError(line, f"{name} is defined twice")
            if word == "zone":
                zones[name] = (tuple(one.strip('"') for one in body.split()), line)
            else:
                paths[name] = _Reader(body, line).whole()
        else:
            blocks.append(_block(statement, line))
    if not blocks:
        raise InvalidSpecificationError(1, "no rule; the shortest specification is `nochange`")
    if sum(len(block.rules) for block in blocks) > MOST_RULES:
        raise InvalidSpecificationError(1, f"more than {MOST_RULES} rules")
    return Specification(zones, paths, tuple(blocks))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each statement, with its continuation lines."""
    begun, first = "", 1
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r'("[^"]*")|#.*', lambda found: found[1] or "", raw).rstrip()
        if not line.strip():
            begun += "\n" * bool(begun)
        elif line[0] in " \t" and begun:
            begun += f"\n{line}"
        else:
            if begun:
                yield first, begun
            begun, first = line.strip(), number
    if begun:
        yield first, begun


def _definition(word: str, statement: str, line: int) -> tuple[str, str]:
    name, equals, body = statement[len(word) :].partition("=")
    name = name.strip()
    if not equals or not body.strip():
        raise InvalidSpecificationError(line, f"write `{word} NAME = ...`")
    if not _NAME.fullmatch(name) or name in RESERVED:
        raise InvalidSpecificationError(
            line, f"{name!r} cannot be a name: letters, digits, - and _, no keyword"
        )
    return name, body


def _block(statement: str, line: int) -> Block:
    if statement.split(None, 1)[0] != "for":
        return Block((), _Reader(statement, line).rules(), line)
    found = _SELECTOR.fullmatch(statement)
    if found is None or not found[1].strip():
        raise InvalidSpecificationError(line, "write `for NAME=VALUE ...: RULES`, or `for *: RULES`")
    selector = []
    for one in found[1].split():
        name, equals, value = one.partition("=")
        if one != "*" and not (equals and name and value):
            raise InvalidSpecificationError(line, f"{one!r} is no NAME=VALUE")
        if one != "*":
            selector.append((name, value))
    offset = statement[: found.start(2)].count("\n")
    return Block(tuple(selector), _Reader(found[2], line + offset).rules(), line)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    line: int
    start: int
    end: int
    name: bool


class _Reader:
    """Recursive descent over the tokens of one statement."""

    def __init__(self, text: str, line: int) -> None:
        self.text, self.line, self.place, self.depth = text, line, 0, 0
        self.tokens = list(self._tokens())

    def _tokens(self) -> Iterator[_Token]:
        place = 0
        text = self.text.rstrip()
        while place < len(text):
            found = _TOKEN.match(text, place)
            start = place if found is None else found.start(found.lastindex or 0)
            line = self.line + text.count("\n", 0, start)
            if found is None:
                rest = text[place:].split()[0]
                raise InvalidSpecificationError(line, f"cannot read {rest[:40]!r}; put odd names in quotes")
            if found[1]:
                yield _Token(found[1], line, start, found.end(), True)
            else:
                word = found[2] or found[3]
                yield _Token(word, line, start, found.end(), bool(found[2]) and word not in RESERVED)
            place = found.end()

    def _peek(self) -> str:
        """The next keyword or sign; empty at the end and before a name."""
        if self.place >= len(self.tokens) or self.tokens[self.place].name:
            return ""
        return self.tokens[self.place].text

    def _at(self) -> int:
        last = min(self.place, len(self.tokens) - 1)
        return self.tokens[last].line if self.tokens else self.line

    def _fail(self, wanted: str) -> InvalidSpecificationError:
        found = repr(self.tokens[self.place].text) if self.place < len(self.tokens) else "the end"
        return InvalidSpecificationError(self._at(), f"expected {wanted}, found {found}")

    def _take(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._fail(f"`{sign}`")
        self.place += 1

    def whole(self) -> Node:
        """One set of paths and nothing behind it."""
        found = self._paths()
        if self.place < len(self.tokens):
            raise self._fail("the end of the path set")
        return found

    def rules(self) -> tuple[Rule, ...]:
        found = [self._rule()]
        while self._peek() == "else":
            self.place += 1
            found.append(self._rule())
        if self.place < len(self.tokens):
            raise self._fail("`else`, `on` or the end of the rules")
        return tuple(found)

    def _rule(self) -> Rule:
        relation, line = self._peek(), self._at()
        if relation not in RELATIONS:
            raise self._fail(f"one of {', '.join(RELATIONS)}")
        start = self.tokens[self.place].start
        self.place += 1
        paths = self._arguments(relation)
        zone = None
        if self._peek() == "on":
            self.place += 1
            zone = self._paths()
        if relation == "any" and paths and zone is None:
            raise InvalidSpecificationError(
                line, "any(PATHS) needs the paths that it replaces: any(PATHS) on PATHS"
            )
        text = " ".join(self.text[start : self.tokens[self.place - 1].end].split())
        return Rule(relation, paths, zone, line, text)

    def _arguments(self, relation: str) -> tuple[Node, ...]:
        if relation in ("nochange", "drop") or (relation == "any" and self._peek() != "("):
            return ()
        self._take("(")
        paths = [self._paths()]
        if relation == "replace":
            self._take(",")
            paths.append(self._paths())
        self._take(")")
        return tuple(paths)

    def _paths(self) -> Node:
        line, found = self._at(), [self._sequence()]
        while self._peek() == "|":
            self.place += 1
            found.append(self._sequence())
        return found[0] if len(found) == 1 else Node("alt", line, parts=tuple(found))

    def _sequence(self) -> Node:
        line, found = self._at(), []
        while self.place < len(self.tokens) and (
            self.tokens[self.place].name or self._peek() in (".", "(", "drop")
        ):
            found.append(self._repeated())
        if not found:
            raise self._fail("a location, `.` or `(`")
        return found[0] if len(found) == 1 else Node("cat", line, parts=tuple(found))

    def _repeated(self) -> Node:
        found = self._atom()
        while (sign := self._peek()) in ("*", "+", "?") and sign:
            found = Node({"*": "star", "+": "plus", "?": "maybe"}[sign], found.line, parts=(found,))
            self.place += 1
            if self._peek() in ("*", "+", "?"):
                raise self._fail("one of `*`, `+` and `?`, not two")
        return found

    def _atom(self) -> Node:
        token = self.tokens[self.place]
        self.place += 1
        if token.name or token.text == "drop":
            return Node("name", token.line, token.text)
        if token.text == ".":
            return Node("any", token.line)
        self.depth += 1
        if self.depth > DEEPEST:
            raise InvalidSpecificationError(token.line, f"more than {DEEPEST} parentheses within one another")
        found = self._paths()
        self._take(")")
        self.depth -= 1
        return found
