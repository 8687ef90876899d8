"""The documentation in `frontend/docs`: Markdown readable in the repository, shown by the console at /docs.

`frontend/docs/README.md` lists the pages: each `##` is a section, each item of its list a page. The order of that
list is the order of the navigation. Two things of a page depend on the installation:

- `https://dossier.example.com` stands for the address of this Dossier;
- `<!-- = NAME -->text<!-- / -->` is a part that is computed (`frontend.document_parts`). The file holds it as it is
  with the default settings, written by `manage.py write_docs`; the console computes it anew.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from frontend.senders.form import HTTPS, placed

ROOT = Path(__file__).parent / "docs"
CONTENTS = "README"
EXCERPT = 160
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*")
_PART = re.compile(r"<!-- = (?P<name>[\w -]+) -->(?P<text>.*?)<!-- / -->", re.DOTALL)
_ENTRY = re.compile(r"- \[(?P<title>[^\]]+)\]\((?P<slug>[\w/-]+)\.md\)(: (?P<about>.+))?")
_SPACE = re.compile(r"\s+")

Parts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the table of contents."""

    slug: str
    title: str
    about: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the table of contents and its pages, in order."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A page: its title (the first heading), its HTML, and its sections as (anchor, words)."""

    title: str
    html: SafeString
    sections: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A page that has all words of a search, and the passage that shows most of them."""

    slug: str
    title: str
    anchor: str
    heading: str
    excerpt: str


def contents() -> tuple[Section, ...]:
    """The sections of the documentation with their pages, as `frontend/docs/README.md` lists them."""
    found: list[tuple[str, list[Entry]]] = []
    for line in (ROOT / f"{CONTENTS}.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found.append((line[3:], []))
        elif found and (entry := _ENTRY.fullmatch(line)):
            found[-1][1].append(Entry(entry["slug"], entry["title"], entry["about"] or ""))
    return tuple(Section(title, tuple(entries)) for title, entries in found)


def slugs() -> set[str]:
    """The slugs of all pages, such as `analyzers/deepview`; the table of contents is none."""
    paths = (path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.md"))
    return {slug for slug in paths if slug != CONTENTS}


def source(slug: str) -> str:
    """The Markdown of a page, or of the table of contents, in the repository. Raises KeyError where there is none."""
    path = ROOT / f"{slug}.md"
    if not (_SLUG.fullmatch(slug) or slug == CONTENTS) or not path.is_file():
        raise KeyError(slug)
    return path.read_text(encoding="utf-8")


def filled(text: str, parts: Parts) -> str:
    """Markdown with each part that `parts` names replaced; others stay as they are."""

    def part(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- = {name} -->{parts[name]}<!-- / -->" if name in parts else match[0]

    return _PART.sub(part, text)


def part_names(text: str) -> list[str]:
    """The names of the computed parts of a page, in order."""
    return [match["name"] for match in _PART.finditer(text)]


def document(slug: str, parts: Parts | None = None, address: str = HTTPS) -> Document:
    """The page of a slug with the parts and the address of an installation. Raises KeyError where there is none."""
    if slug == CONTENTS:
        raise KeyError(slug)
    return _rendered(slug, placed(filled(source(slug), parts or {}), address), address)


def search(query: str) -> list[Hit]:
    """The pages that have every word of the query, those with it in the title first; none for an empty query."""
    words = query.casefold().split()
    hits = []
    for place, entry in enumerate(_entries()) if words else ():
        passages = list(_passages(source(entry.slug)))
        text = " ".join(f"{heading} {text}" for _, heading, text in passages).casefold()
        if not all(word in text for word in words):
            continue
        anchor, heading, passage = max(passages, key=lambda one: _weight(one[1], one[2], words))
        rank = _weight(entry.title, "", words)
        hits.append((-rank, place, Hit(entry.slug, entry.title, anchor, heading, _excerpt(passage, words))))
    return [hit for *_, hit in sorted(hits, key=lambda one: one[:2])]


def _entries() -> list[Entry]:
    return [entry for section in contents() for entry in section.entries]


def _weight(heading: str, text: str, words: list[str]) -> int:
    heading, text = heading.casefold(), text.casefold()
    return sum(3 * (word in heading) + (word in text) for word in words)


def _excerpt(text: str, words: list[str]) -> str:
    folded = text.casefold()
    at = min((place for word in words if (place := folded.find(word)) >= 0), default=0)
    start = max(0, at - EXCERPT // 3)
    cut = text[start : start + EXCERPT]
    return f"{'…' if start else ''}{cut.strip()}{'…' if start + EXCERPT < len(text) else ''}"


def _passages(text: str) -> Iterator[tuple[str, str, str]]:
    """(anchor, heading, words) of a page, heading by heading. The anchor of the first heading is empty."""
    taken: dict[str, int] = {}
    anchor, heading, found = "", "", list[str]()
    for token in _parser().parse(_uncommented(text)):
        if token.type == "heading_open" and heading:
            yield anchor, heading, _plain(found)
            heading, found = "", []
        elif token.type == "inline" and not heading:
            heading = _words(token)
            anchor = _anchor(heading, taken)
            if len(taken) == 1:
                anchor = ""
        elif token.type in ("inline", "fence"):
            found.append(token.content if token.type == "fence" else _words(token))
    yield anchor, heading, _plain(found)


def _plain(found: list[str]) -> str:
    return _SPACE.sub(" ", " ".join(found)).strip()


def _words(token: Token) -> str:
    return "".join(
        " " if one.type == "softbreak" else one.content
        for one in token.children or []
        if one.type != "html_inline"
    )


def _anchor(heading: str, taken: dict[str, int]) -> str:
    """The id of a heading as GitHub makes it, so that a link leads to the same place in both."""
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
    taken[anchor] = count = taken.get(anchor, -1) + 1
    return f"{anchor}-{count}" if count else anchor


def _uncommented(text: str) -> str:
    """Markdown without the marks of its parts; a part on lines of its own stays a block of its own."""
    return re.sub(r"<!-- (?:= [\w -]+|/) -->", "", text)


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@lru_cache(maxsize=256)
def _rendered(slug: str, text: str, address: str) -> Document:
    parser = _parser()
    tokens = parser.parse(_uncommented(text))
    sections, title, taken = [], slug, dict[str, int]()
    for place, opening in enumerate(tokens):
        if opening.type == "inline":
            _lead(opening, slug, address)
        if opening.type != "heading_open":
            continue
        words = _words(tokens[place + 1])
        anchor = _anchor(words, taken)
        opening.attrSet("id", anchor)
        if opening.tag == "h1":
            title = words
        elif opening.tag == "h2":
            sections.append((anchor, words))
    made = parser.renderer.render(tokens, parser.options, {})
    made = made.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    made = re.sub(r'<pre><code(?: class="[^"]*")?>(.*?)</code></pre>', _block, made, flags=re.DOTALL)
    made = re.sub(r'<(h[23]) id="([^"]+)">(.*?)</\1>', _heading, made)
    return Document(title, mark_safe(made), tuple(sections))


def _block(match: re.Match[str]) -> str:
    button = '<button type="button" class="needs-js" data-copy>Copy</button>'
    return f'<div class="paste"><pre>{match[1]}</pre>{button}</div>'


def _heading(match: re.Match[str]) -> str:
    tag, anchor, words = match.groups()
    label = html.escape(re.sub(r"<[^>]+>", "", words), quote=True)
    link = f'<a class="anchor" href="#{anchor}" aria-label="Link to {label}">#</a>'
    return f'<{tag} id="{anchor}">{words} {link}</{tag}>'


def _lead(inline: Token, slug: str, address: str) -> None:
    """Links between files become addresses of the console, those to this Dossier paths of it."""
    for token in inline.children or []:
        if token.type == "link_open":
            token.attrSet("href", href(str(token.attrGet("href")), slug, address))


def href(target: str, slug: str, address: str) -> str:
    """The address of a link: from `operate/on-call` `routes.md#grouping` is `/docs/operate/routes#grouping`."""
    if target.startswith(address) and target[len(address) :][:1] in ("", "/"):
        return target[len(address) :] or "/"
    path, mark, anchor = target.partition("#")
    if "://" in path or not path.endswith(".md"):
        return target
    found = posixpath.normpath(posixpath.join("/docs", posixpath.dirname(slug), path[:-3]))
    return f"{found.removesuffix(f'/{CONTENTS}')}{mark}{anchor}"
