"""A review as PDF is what people wrote, whatever they wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO

import pytest
from pypdf import PdfReader

from incidents.reviews.models import Review
from incidents.reviews.pdf import MOST_PARTS, pdf_of

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)


def read(text: str) -> PdfReader:
    row = Review(number=7, text=text, actions=[], updated_at=AT, updated_by="user:alice")
    return PdfReader(BytesIO(pdf_of(row)))


def words(text: str) -> str:
    return " ".join(" ".join(page.extract_text() for page in read(text).pages).split())


def test_a_pdf_has_headings_lists_tables_and_code() -> None:
    found = words(
        "# Disk \\`slow\\`\n\n1. one\n2. two\n\n| a | b |\n| - | - |\n| c | |\n\n```\nx = 1\n```\n\n> Жš → ✓\n"
    )
    assert found == (
        "Incident 7. Draft, last changed 2026-11-21 10:00 UTC by alice"
        " Disk `slow` 1. one 2. two a b c x = 1 Жš → ✓ 1 / 1"
    )


def test_text_that_is_code_for_the_typesetter_stays_text() -> None:
    code = '#read("/etc/passwd") #panic() $x$ @label'
    assert code in words(code)


def test_only_addresses_of_the_web_and_of_mail_are_links() -> None:
    page = read("[a](https://example.com/x) [b](file:///etc/passwd) [c](/incidents/1)").pages[0]
    links = [one.get_object()["/A"]["/URI"] for one in page.get("/Annots", ())]
    assert links == ["https://example.com/x"]


@pytest.mark.parametrize(
    "text", ["> " * 500 + "deep", "- " * 500 + "deep", "*a* " * (MOST_PARTS // 2) + "deep"]
)
def test_text_that_is_too_much_for_markdown_is_set_as_written(text: str) -> None:
    assert text[-8:] in words(text)


@pytest.mark.parametrize("mark", ["> ", "- ", "1. "])
def test_lists_and_quotes_in_each_other_are_set(mark: str) -> None:
    text = "\n".join("   " * depth + mark + f"level {depth}" for depth in range(5))
    found = words(text)
    assert [f"level {depth}" in found for depth in range(5)] == [True] * 5


def test_characters_without_a_glyph_are_no_error() -> None:
    assert "before" in words("before \x0b\x00 中")
