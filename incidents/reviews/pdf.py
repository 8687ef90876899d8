"""A review as PDF: its Markdown is parsed, and its tokens are set by Typst.

The text reaches Typst as data, so that nothing in it is code or a file of this machine. Fonts are those of the library,
and those of the machine for scripts that it lacks.
"""

from __future__ import annotations

import json
from typing import Any, Final

from markdown_it.tree import SyntaxTreeNode

from incidents.domain.incident.decide import CommandRefusedError
from incidents.domain.incident.timeline import actor_name
from incidents.domain.markdown import parser, too_much
from incidents.domain.review import exported
from incidents.reviews.commands import actions_of
from incidents.reviews.models import Review

MOST_PARTS: Final = 10_000
DEEPEST: Final = 12
"""A text of more headings, words in bold and the like, or with lists and quotes in each other beyond that level of the
parser, is set as it is written."""
MOST_LINES: Final = 3_000
SCHEMES: Final = ("http://", "https://", "mailto:")
TEMPLATE: Final = r"""
#let review = json(bytes(sys.inputs.review))
#set document(title: review.title, date: none)
#set page(paper: "a4", margin: 2cm, numbering: "1 / 1", header: text(8pt, luma(40%), review.state))
#set text(10pt, lang: "en")
#set par(leading: 0.6em)
#show heading: set block(above: 1.4em, below: 0.7em)
#show link: set text(rgb("#0b57d0"))
#show raw.where(block: true): set block(fill: luma(95%), inset: 6pt, width: 100%)
#set table(stroke: 0.5pt + luma(75%), inset: 5pt)

#let shown(node) = {
  let parts = node.children.map(shown)
  let body = parts.join()
  let kind = node.kind
  if kind == "text" { node.content }
  else if kind == "softbreak" or kind == "hardbreak" { linebreak() }
  else if kind == "code_inline" { raw(node.content) }
  else if kind == "fence" or kind == "code_block" { raw(node.content, block: true) }
  else if kind == "strong" { strong(body) }
  else if kind == "em" { emph(body) }
  else if kind == "s" { strike(body) }
  else if kind == "link" { if node.href == "" { body } else { link(node.href, body) } }
  else if kind == "heading" { heading(level: node.level, body) }
  else if kind == "paragraph" { par(body) }
  else if kind == "bullet_list" { list(..parts) }
  else if kind == "ordered_list" { enum(start: node.level, ..parts) }
  else if kind == "blockquote" { pad(left: 1em, text(luma(30%), body)) }
  else if kind == "hr" { line(length: 100%, stroke: 0.5pt) }
  else if kind == "table" { table(columns: node.level, ..node.children.map(row => row.children.map(shown)).flatten()) }
  else if kind == "th" { table.cell(fill: luma(95%), strong(body)) }
  else { body }
}

#review.blocks.map(shown).join()
"""


def pdf_of(row: Review) -> bytes:
    """PDF of a review with its actions. Raises CommandRefusedError for one of more than MOST_LINES."""
    text = exported(row.text, actions_of(row))
    lines = len(text.splitlines())
    if lines > MOST_LINES:
        raise CommandRefusedError(
            f"a PDF has at most {MOST_LINES:,} lines, this review has {lines:,}; export Markdown"
        )
    tokens = parser(*too_much(text)).parse(text)
    state = "Draft" if row.published_at is None else f"Published {row.published_at:%Y-%m-%d %H:%M} UTC"
    review = {
        "title": f"Review of incident {row.number}",
        "state": f"Incident {row.number}. {state}, last changed {row.updated_at:%Y-%m-%d %H:%M} UTC by"
        f" {actor_name(row.updated_by)}",
    }
    blocks = [_node(one) for one in SyntaxTreeNode(tokens).children]
    parts = sum(1 + len(one.children or ()) for one in tokens)
    if parts > MOST_PARTS or max((one.level for one in tokens), default=0) > DEEPEST:
        blocks = [{"kind": "code_block", "content": text, "level": 1, "href": "", "children": []}]
    import typst  # a library of 80 MB, which no other request needs

    pdf: bytes = typst.compile(
        TEMPLATE.encode(), sys_inputs={"review": json.dumps({**review, "blocks": blocks})}
    )
    return pdf


def _node(node: SyntaxTreeNode) -> dict[str, Any]:
    """A node as the template reads it; `level` is that of a heading, the start of a list, the columns of a table."""
    children, level = node.children, 1
    if node.type == "table":
        children = [row for part in node.children for row in part.children]
        level = max(len(row.children) for row in children)
    elif node.type == "heading":
        level = int(node.tag[1])
    elif node.type == "ordered_list":
        level = int(node.attrs.get("start", 1))
    href = str(node.attrs.get("href", "")) if node.type == "link" else ""
    return {
        "kind": node.type,
        "content": node.content if not node.children else "",
        "level": level,
        "href": href if href.startswith(SCHEMES) else "",
        "children": [_node(one) for one in children],
    }
