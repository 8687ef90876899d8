"""The documentation in the console: every page, the addresses that they had before, the search."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend import documents
from frontend.senders import BY_SLUG
from frontend.views.reading import MOVED


@pytest.fixture
def bob(log_database: str) -> Client:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="bob"))
    return client


def test_every_page_has_one_heading_and_the_address_of_this_dossier(bob: Client) -> None:
    of_senders = {f"integrate/{sender}" for sender in BY_SLUG}  # `test_console_endpoints` opens these
    slugs = [slug for slug in documents.slugs() - of_senders if not slug.startswith("decisions/")]
    pages = {slug: bob.get(f"/docs/{slug}").content.decode() for slug in slugs}
    assert [slug for slug, page in pages.items() if page.count("<h1") != 1] == []
    assert [slug for slug, page in pages.items() if "dossier.example.com" in page] == []
    assert [slug for slug, page in pages.items() if "&lt;!--" in page] == []


def test_a_page_leads_to_the_previous_and_the_next(bob: Client) -> None:
    first, second, third, *_ = (entry for section in documents.contents() for entry in section.entries)
    page = bob.get(f"/docs/{second.slug}").content.decode()
    assert f'rel="prev" href="/docs/{first.slug}"' in page
    assert f'rel="next" href="/docs/{third.slug}"' in page


@pytest.mark.parametrize("old", MOVED)
def test_an_earlier_address_leads_to_the_page(bob: Client, old: str) -> None:
    assert bob.get(f"/docs/{old}", follow=True).status_code == 200


def test_a_search_lists_pages_and_says_when_there_is_none(bob: Client) -> None:
    assert 'href="/docs/operate/on-call' in bob.get("/docs", {"q": "swap overrides"}).content.decode()
    assert "No page contains" in bob.get("/docs", {"q": "zeppelin"}).content.decode()


def test_an_unknown_page_is_not_found(bob: Client) -> None:
    assert bob.get("/docs/operate/nothing").status_code == 404
