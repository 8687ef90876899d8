"""Comments as people write them, in Markdown, as HTML that is safe to show.

CommonMark with tables and strikethrough. No HTML of the writer's, no images (whoever looks at an incident would tell a
stranger so), and addresses with http, https or mailto only. Bare addresses become links, and #12 one to that incident.
What is rendered is sanitised once more, so that a mistake in one of the two shows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from incidents.domain import markdown

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
_LINKED = re.compile(
    r"""(?P<url>https?://[^\s<>"']*[^\s<>"'.,;:!?)\]])|(?<![\w&/#])\#(?P<number>[0-9]{1,9})\b"""
)


def _link(state: StateCore) -> None:
    """Bare addresses and numbers of incidents become links, but not within a link or code."""
    for block in state.tokens:
        if block.type == "inline" and block.children:
            block.children = list(_linked(block.children))


def _linked(tokens: list[Token]) -> Iterator[Token]:
    inside = 0
    for token in tokens:
        inside += token.nesting if token.type in ("link_open", "link_close") else 0
        if token.type == "text" and not inside:
            yield from _pieces(token.content)
        else:
            yield token


def _pieces(text: str) -> Iterator[Token]:
    end = 0
    for match in _LINKED.finditer(text):
        yield _text(text[end : match.start()])
        href = match["url"] or f"/incidents/{match['number']}"
        yield Token("link_open", "a", 1, attrs={"href": href})
        yield _text(match[0])
        yield Token("link_close", "a", -1)
        end = match.end()
    yield _text(text[end:])


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _lower_headings(state: StateCore) -> None:
    """A comment stands below the page's own headings."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"


def _parser(*without: str) -> MarkdownIt:
    made = markdown.parser(*without)
    made.core.ruler.push("bare_links", _link)
    made.core.ruler.push("lower_headings", _lower_headings)
    return made


_parser_without = lru_cache(maxsize=4)(_parser)


@lru_cache(maxsize=1024)
def render(text: str) -> SafeString:
    """The HTML of a comment; what a browser would run or load is not in it, whatever was written."""
    clean = nh3.clean(
        _parser_without(*markdown.too_much(text)).render(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)
