"""The documentation pages: Markdown in the repository, HTML in the console."""

from pathlib import Path

import pytest

from frontend import documents


def test_a_page_has_its_title_and_its_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("# Sums of `x`\n\n## What it reads\n\n<b>no</b>\n\n| a |\n| - |\n| 1 |\n")
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    documents.document.cache_clear()
    page = documents.document("a")
    assert (page.title, page.sections) == ("Sums of x", (("what-it-reads", "What it reads"),))
    assert "<b>" not in page.html
    assert '<h2 id="what-it-reads">' in page.html
    documents.document.cache_clear()


@pytest.mark.parametrize("slug", ["nothing", "../examples", "analyzers/../../x", "/etc/passwd", ""])
def test_an_unknown_page_is_a_key_error(slug: str) -> None:
    with pytest.raises(KeyError):
        documents.document(slug)
