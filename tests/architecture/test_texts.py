"""Texts of the interface: words and phrases that a reader should not meet. Code and JSON keys are not looked at."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from deploy.env import VARIABLES
from ingest.telemetry.kinds import KINDS
from tests.architecture.reading import sources, statements
from tests.places import ROOT, TESTS

BANNED = re.compile(
    r"\b(tickets?|whoever|whomever|held back|(?:is|are|was|were) taken back|(?:was|were) not told|(?:is|are) told by"
    r"|so does one|there is none|anew|bounced? back|nobody (?:is|was|will be) (?:called|told|paged)"
    r"|somebody (?:else|who)|as if nobody|(?:is|are|was|were|be|been|being) told(?! (?:apart|from))|told of|says who"
    r"|what became of|(?:is|are) no good)\b",
    re.IGNORECASE,
)
TAGS = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<[^>]*>", re.DOTALL)
JOINT = re.compile(r"""\\\n|["']\s*(?:#[^\n]*\s*)?[rbfu]*["']""", re.IGNORECASE)
"""The gap between two parts of one string, or in a line of it that is continued."""
COMMENT = re.compile(r"\{% comment %\}.*?\{% endcomment %\}", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|https?://\S+", re.DOTALL)
OTHER_SYSTEMS = {"jira.md", "trace_blame.md", "accuracy.md"}
"""Pages that name things of others: tickets of Jira, the data set train-ticket."""


def found(text: str) -> list[str]:
    return [one[0] for one in BANNED.finditer(text)]


def templates() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "frontend" / "templates").rglob("*.html"):
        text = COMMENT.sub("", path.read_text())
        spoken = re.findall(r'(?:title|aria-label|placeholder)="([^"]*)"', text)
        yield path.name, " ".join([TAGS.sub(" ", text), *(TAGS.sub(" ", one) for one in spoken)])


def pages() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "frontend" / "docs").rglob("*.md"):
        if path.name not in OTHER_SYSTEMS and path.parent.name != "decisions":
            yield path.name, CODE.sub("", path.read_text())


def sentences() -> Iterator[tuple[str, str]]:
    """Strings of more than one word in all layers, of files that have a banned word anywhere; no docstring."""
    for folder in ("frontend", "incidents", "analyzers", "ingest", "deploy"):
        for path in (ROOT / folder).rglob("*.py"):
            source = path.read_text()
            if not found(JOINT.sub("", source)):
                continue
            bare: set[ast.AST] = set()  # texts that are statements: a walk meets the statement first
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Expr):
                    bare.add(node.value)
                elif (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and " " in node.value.strip()
                    and node not in bare
                ):
                    yield path.name, node.value


def test_no_template_has_a_banned_word() -> None:
    assert {name: words for name, text in templates() if (words := found(text))} == {}


def test_no_page_of_the_docs_has_a_banned_word() -> None:
    assert {name: words for name, text in pages() if (words := found(text))} == {}


def test_no_sentence_of_the_console_has_a_banned_word() -> None:
    assert [(name, text) for name, text in sentences() if found(text)] == []


CLAUSE = re.compile(r"(What|Who|Whom|Whose|Whoever|Which|How|That|When|Where|If|Why)\b")
"""Words that begin a clause where a docstring has to begin with its noun; `Whether` begins the answer of a test."""
OPENED = re.compile(f'"""{CLAUSE.pattern}')
"""Text of a file that is worth parsing."""


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Those of modules, classes and functions, and the texts below constants and fields."""
    for node in statements(tree):
        for one in getattr(node, "body", []):
            match one:
                case ast.Expr(ast.Constant(str(text))):
                    yield text


def test_a_docstring_begins_with_its_noun() -> None:
    assert [
        (str(path.relative_to(ROOT)), text.splitlines()[0])
        for path in (*sources(), *TESTS.rglob("*.py"))
        if OPENED.search(source := path.read_text())
        for text in docstrings(ast.parse(source))
        if CLAUSE.match(text)
    ] == []


HELP: Final = frozenset({"help", "help_text", "description"})
"""Arguments with a text about a field, a parameter, a setting or a command."""


def helps(tree: ast.Module) -> Iterator[str]:
    """Texts that describe what a reader can set or read: the first part where one is composed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in HELP:
            value = node.value.values[0] if isinstance(node.value, ast.JoinedStr) else node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def test_a_help_text_begins_with_its_noun() -> None:
    given = [
        (str(path.relative_to(ROOT)), text)
        for path in sources()
        if "help" in (source := path.read_text()) or "description" in source
        for text in helps(ast.parse(source))
    ]
    given += [("deploy/settings.py", one.help) for one in VARIABLES.values()]
    given += [(f"kind {kind.name}", field.help) for kind in KINDS.values() for field in kind.fields]
    assert [one for one in given if re.match(CLAUSE.pattern, one[1], re.IGNORECASE)] == []
