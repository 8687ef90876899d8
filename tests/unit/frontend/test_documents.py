"""The documentation pages: Markdown in the repository, HTML in the console."""

from pathlib import Path

import pytest

from frontend import documents
from frontend.document_parts import value


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    return tmp_path


def test_a_page_has_its_title_and_its_sections(folder: Path) -> None:
    (folder / "a.md").write_text("# Sums of `x`\n\n## What it reads\n\n<b>no</b>\n\n| a |\n| - |\n| 1 |\n")
    page = documents.document("a")
    assert (page.title, page.sections) == ("Sums of x", (("what-it-reads", "What it reads"),))
    assert "<b>" not in page.html
    assert '<h2 id="what-it-reads">' in page.html


@pytest.mark.parametrize("slug", ["nothing", "../examples", "analyzers/../../x", "/etc/passwd", "", "README"])
def test_an_unknown_page_is_a_key_error(slug: str) -> None:
    with pytest.raises(KeyError):
        documents.document(slug)


def test_a_part_shows_the_value_of_the_installation(folder: Path) -> None:
    (folder / "a.md").write_text(
        "# A\n\nAt most <!-- = RATE -->5<!-- / --> and <!-- = other -->6<!-- / -->.\n"
    )
    assert "At most 7 and 6." in documents.document("a", {"RATE": "7"}).html


def test_a_page_shows_the_address_of_the_installation(folder: Path) -> None:
    (folder / "a.md").write_text(
        "# A\n\n`https://dossier.example.com/api` [x](https://dossier.example.com/silences)\n"
    )
    page = documents.document("a", address="http://monitor:8000").html
    assert "http://monitor:8000/api" in page
    assert '<a href="/silences">' in page


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("routes.md#grouping", "/docs/operate/routes#grouping"),
        ("../api/incidents.md", "/docs/api/incidents"),
        ("../README.md", "/docs"),
        ("#here", "#here"),
        ("https://example.com/x.md", "https://example.com/x.md"),
    ],
)
def test_a_link_between_files_leads_to_the_page(link: str, leads_to: str) -> None:
    assert documents.href(link, "operate/on-call", "https://dossier.example.com") == leads_to


def test_headings_of_the_same_words_have_anchors_of_their_own(folder: Path) -> None:
    (folder / "a.md").write_text("# A\n\n## Log_count & more\n\n## Log_count & more\n")
    assert [anchor for anchor, _ in documents.document("a").sections] == [
        "log_count--more",
        "log_count--more-1",
    ]


def test_a_search_finds_pages_with_all_words_and_titles_first(folder: Path) -> None:
    (folder / "README.md").write_text("# X\n\n## S\n\n- [Limits](limits.md): a\n- [Silences](silences.md)\n")
    (folder / "limits.md").write_text("# Limits\n\nA body.\n\n## Storms\n\nMany silences of a *storm*.\n")
    (folder / "silences.md").write_text("# Silences\n\nHold alerts back, also in a storm.\n")
    first, second = documents.search("SILENCES storm")
    assert (first.slug, first.anchor) == ("silences", "")
    assert (second.slug, second.anchor, second.heading) == ("limits", "storms", "Storms")
    assert "Many silences of a storm." in second.excerpt
    assert documents.search("silences flood") == []
    assert documents.search("  ") == []


@pytest.mark.parametrize(
    ("name", "raw", "shown"),
    [("INGEST_RATE_PER_KEY", "1000", "1,000"), ("INBOUND_EMAIL_MAX_BODY", "10485760", "10 MiB")],
)
def test_a_setting_is_shown_as_people_write_it(name: str, raw: str, shown: str) -> None:
    assert value(name, raw) == shown
