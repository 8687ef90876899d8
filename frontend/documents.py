"""The documentation in `frontend/docs`: Markdown readable in the repository, shown by the console at /docs."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

ROOT = Path(__file__).parent / "docs"
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*")


@dataclass(frozen=True, slots=True)
class Document:
    """A page: its title (the first heading), its HTML, and its sections as (anchor, words)."""

    title: str
    html: SafeString
    sections: tuple[tuple[str, str], ...]


def documents(folder: str) -> dict[str, str]:
    """The titles of the pages of a folder by slug, such as `analyzers/deepview`, in order of the slugs."""
    found = sorted((ROOT / folder).glob("*.md"))
    slugs = [path.relative_to(ROOT).with_suffix("").as_posix() for path in found]
    return {slug: document(slug).title for slug in slugs}


@lru_cache(maxsize=256)
def document(slug: str) -> Document:
    """The page of a slug. Raises KeyError where there is none."""
    path = ROOT / f"{slug}.md"
    if not _SLUG.fullmatch(slug) or not path.is_file():
        raise KeyError(slug)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    tokens = parser.parse(path.read_text(encoding="utf-8"))
    sections, title = [], slug
    for opening, inline in itertools.pairwise(tokens):
        if opening.type != "heading_open":
            continue
        words = "".join(one.content for one in inline.children or ())
        anchor = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
        opening.attrSet("id", anchor)
        if opening.tag == "h1":
            title = words
        elif opening.tag == "h2":
            sections.append((anchor, words))
    html = parser.renderer.render(tokens, parser.options, {})
    html = html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    return Document(title, mark_safe(html), tuple(sections))
