"""Configuration as one YAML text: read with the line of everything in it, and written. Pure.

Of YAML only what JSON has too: a plain scalar is null, true, false, a number or else a text, so that neither `no` nor
`12:30` nor a date surprises anybody; no anchors, no tags, no key twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

VERSION: Final = 1
MOST_BYTES: Final = 5 * 2**20
MOST_DEEP: Final = 30
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault with its place: a line of the text (from 1) and the path to it, such as `routes[2].team`."""

    line: int
    where: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {f'{self.where}: ' if self.where else ''}{self.reason}"


class InvalidConfigurationError(ValueError):
    """The text cannot be applied; all that was found wrong."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Item:
    """One configured thing as the text has it."""

    kind: str
    place: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """The items of a text by kind, in its order, and the line of every value."""

    items: Mapping[str, tuple[Item, ...]]
    lines: Mapping[Path, int]

    def fault(self, path: Path, reason: str) -> Fault:
        """A fault at a value or, where the text does not have it, at what it would be part of."""
        known = path
        while known not in self.lines:
            known = known[:-1]
        return Fault(self.lines[known], written(path), reason)


def written(path: Path) -> str:
    """A way into the document as people write it: `routes[2].team`, counted from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read(text: str, kinds: Sequence[str]) -> Document:
    """Read a text in which only these kinds may occur. Raises InvalidConfigurationError."""
    value, lines = values(text)
    return _document({} if value is None else value, lines, kinds)


def values(text: str) -> tuple[Any, dict[Path, int]]:
    """The plain values of any YAML text, and the line of each; None of an empty one. Raises
    InvalidConfigurationError."""
    if len(text.encode(errors="surrogatepass")) > MOST_BYTES:
        raise InvalidConfigurationError([Fault(1, "", f"the text is larger than {MOST_BYTES} bytes")])
    lines: dict[Path, int] = {}
    try:
        node = yaml.compose(text, Loader=_Plain)
        value = None if node is None else _value(node, (), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidConfigurationError(
            [Fault(1 if mark is None else mark.line + 1, "", _error_text(error))]
        ) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidConfigurationError(
            [Fault(1, "", f"is not valid YAML: {str(error) or 'nested too deeply'}")]
        ) from None
    lines.setdefault((), 1)
    return value, lines


def _error_text(error: yaml.MarkedYAMLError) -> str:
    return f"is not valid YAML: {', '.join(filter(None, (error.context, error.problem)))}"


def _document(value: Any, lines: Mapping[Path, int], kinds: Sequence[str]) -> Document:
    document = Document({}, lines)
    if not isinstance(value, dict):
        raise InvalidConfigurationError(
            [document.fault((), f"must be a mapping of {', '.join(kinds)} to lists")]
        )
    faults = []
    if value.get("version", VERSION) != VERSION:
        faults.append(document.fault(("version",), f"must be {VERSION}"))
    items: dict[str, tuple[Item, ...]] = {}
    for kind, values in value.items():
        if kind == "version":
            continue
        if kind not in kinds:
            faults.append(document.fault((kind,), f"is not a section; use {', '.join(kinds)}"))
        elif not isinstance(values, list):
            faults.append(document.fault((kind,), "must be a list"))
        else:
            bad = [at for at, one in enumerate(values) if not isinstance(one, dict)]
            faults += [document.fault((kind, at), "must be a mapping of fields to values") for at in bad]
            items[kind] = tuple(Item(kind, at, one) for at, one in enumerate(values) if at not in bad)
    if faults:
        raise InvalidConfigurationError(faults)
    return Document(items, lines)


class _Plain(yaml.SafeLoader):
    """YAML's safe loader without the surprises of its scalars."""

    deep = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _refused("aliases (*) are not supported", event)
        if self.deep > MOST_DEEP:
            raise _refused("nested too deeply", event)
        self.deep += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.deep -= 1


def _refused(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


_Plain.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"(?:~|null|)", "~n\0"),
    ("bool", r"(?:true|false)", "tf"),
    ("int", r"-?(?:0|[1-9][0-9]{0,17})", "-0123456789"),
    ("float", r"-?[0-9]{1,17}(?:\.[0-9]{1,17})(?:[eE][-+]?[0-9]{1,2})?", "-0123456789"),
):
    _Plain.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^{_pattern}$"), list(_first) + [""] * (_tag == "null")
    )


def _value(node: yaml.Node, path: Path, lines: dict[Path, int]) -> Any:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_value(one, (*path, at), lines) for at, one in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return dict(_pairs(node, path, lines))
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    match kind:
        case "null":
            return None
        case "bool":
            return node.value == "true"
        case "int":
            return int(node.value)
        case "float":
            return float(node.value)
        case "str":
            return node.value
    raise _refused(f"the tag {node.tag} is not supported", node)


def _pairs(node: yaml.MappingNode, path: Path, lines: dict[Path, int]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name is None or name in seen:
            problem = "a key must be a text" if name is None else f"`{name[:60]}` is a duplicate key"
            raise _refused(problem, key)
        seen.add(name)
        yield name, _value(value, (*path, name), lines)
        lines[(*path, name)] = key.start_mark.line + 1


def write(kinds: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The text that `read` reads: every kind with its items, fields in the order given."""
    document = {"version": VERSION, **{kind: [dict(one) for one in items] for kind, items in kinds.items()}}
    text: str = yaml.dump(
        document, Dumper=_Exact, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
    )
    return text


class _Exact(yaml.SafeDumper):
    """YAML's safe dumper; it quotes the line breaks of Unicode, which it would else write as its own."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if any(mark in text for mark in "\x85\u2028\u2029\ufeff") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Exact.add_representer(str, _quoted)
