"""Comments in Markdown: what people see, and what nobody can smuggle in."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.markdown import render

LINK = 'rel="noopener noreferrer nofollow"'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("two **optics** flap", "<p>two <strong>optics</strong> flap</p>"),
        ("one\ntwo", "<p>one<br>\ntwo</p>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("`a < b`", "<p><code>a &lt; b</code></p>"),
        ("~~no~~", "<p><s>no</s></p>"),
        ("# Found", "<h3>Found</h3>"),
        ("[log](https://x.example/l)", f'<p><a href="https://x.example/l" {LINK}>log</a></p>'),
        (
            "see https://x.example/a.",
            f'<p>see <a href="https://x.example/a" {LINK}>https://x.example/a</a>.</p>',
        ),
        ("as in #12", f'<p>as in <a href="/incidents/12" {LINK}>#12</a></p>'),
        ("`#12`", "<p><code>#12</code></p>"),
        ("[see #12](https://x.example)", f'<p><a href="https://x.example" {LINK}>see #12</a></p>'),
    ],
)
def test_a_comment_reads_as_its_writer_meant_it(text: str, html: str) -> None:
    assert render(text).strip() == html


def test_a_table_is_a_table() -> None:
    assert "<td>s7</td>" in render("| disk |\n| --- |\n| s7 |")


class Seen(HTMLParser):
    """Parts of a page that a browser would find."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def harmless(html: str) -> bool:
    seen = Seen(html)
    addresses = [value or "" for name, value in seen.attributes if name == "href"]
    return (
        seen.tags.isdisjoint(
            {"script", "img", "iframe", "style", "svg", "form", "input", "object", "link", "base"}
        )
        and {name for name, _ in seen.attributes} <= {"href", "title", "rel", "start"}
        and {urlsplit(address).scheme for address in addresses} <= {"http", "https", "mailto", ""}
    )


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](https://x.example/pixel.png)",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java&#x0A;script:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "<javascript:alert(1)>",
        '[x](https://x.example "title\\" onclick=alert(1)")',
        'https://x.example/"onmouseover=alert(1)',
        "<a href='javascript:alert(1)'>x</a>",
        "`<b>`<svg onload=alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
        "| <img src=x onerror=alert(1)> |\n| --- |\n| <style>*{}</style> |",
    ],
)
def test_what_is_smuggled_in_is_shown_and_never_run(text: str) -> None:
    assert harmless(render(text))


@given(st.text(st.sampled_from("<>\"'&;:/()[]!`*_~|#-\n\\= ascriptjvonlhref1"), max_size=80))
def test_whatever_is_typed_is_harmless(text: str) -> None:
    assert harmless(render(text))


@pytest.mark.parametrize("text", ["[" * 20_000, "*" * 20_000, "> " * 10_000, "`" * 20_000, "![](" * 5_000])
def test_a_comment_that_is_made_to_be_slow_is_not(text: str) -> None:
    assert len(render(text)) < 200_000


def test_a_short_comment_does_not_become_a_table_without_end() -> None:
    text = "|" + "a|" * 1000 + "\n|" + "-|" * 1000 + "\n" + "x\n" * 1000
    assert len(render(text)) < 10 * len(text)


def test_a_table_that_is_written_out_is_one() -> None:
    text = "|a|b|c|\n|-|-|-|\n" + "|1|2|3|\n" * 1000
    assert render(text).count("<td>") == 3000
