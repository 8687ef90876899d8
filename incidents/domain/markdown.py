"""Parser of Markdown as people write it: CommonMark with tables and strikethrough, without HTML and images. Pure.

What costs too much, or makes too much of a short text, is not read as Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it import MarkdownIt

_BRACKETS = 500
"""The time to look for `[text](address)` grows with the square of the brackets; with more they stay as they are."""
_CELLS = 10_000
"""A row that leaves cells out gets them all the same: a comment of 6 kB would fill a page of 700 kB."""


def parser(*without: str) -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True})
    return made.enable(["table", "strikethrough"]).disable(["html_block", "html_inline", "image", *without])


def too_much(text: str) -> Iterator[str]:
    """The rules that would cost too much for this text, or make too much of it."""
    if text.count("[") > _BRACKETS:
        yield from ("link", "reference")
    lines = text.splitlines()
    if len(lines) * max((line.count("|") for line in lines), default=0) > _CELLS:
        yield "table"
