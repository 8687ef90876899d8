"""The documents: computed parts are current, links lead somewhere, every page is listed, none grows without end."""

import re
from functools import cache
from urllib.parse import urlsplit

import pytest
from django.urls import Resolver404, resolve

from deploy.management.commands.write_docs import default_parts, written
from frontend import documents
from frontend.senders.form import HTTPS
from tests import settings
from tests.places import ROOT

SLUGS = sorted(documents.slugs())
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(slug.split("/")[1][:4]) for slug in SLUGS if slug.startswith("decisions/")]
    assert numbers == list(range(1, len(numbers) + 1))


@cache
def anchors(slug: str) -> set[str]:
    return set(re.findall(r'<h\d id="([^"]+)"', documents.document(slug).html))


def test_the_computed_parts_of_pages_are_current() -> None:
    assert settings.LOGGING_CONFIG  # the settings have been read
    parts = default_parts()
    stale = [slug for slug in (documents.CONTENTS, *SLUGS) if documents.source(slug) != written(slug, parts)]
    assert stale == [], "run: .venv/bin/python manage.py write_docs"


def test_every_page_is_listed_once_and_by_its_title() -> None:
    entries = [entry for section in documents.contents() for entry in section.entries]
    assert sorted(entry.slug for entry in entries) == SLUGS, (
        "list it in README.md, or run manage.py write_docs"
    )
    titles = {entry.slug: entry.title for entry in entries}
    assert {slug: documents.document(slug).title for slug in SLUGS} == titles


def test_every_link_of_a_page_leads_somewhere() -> None:
    broken = []
    for slug in (documents.CONTENTS, *SLUGS):
        text = FENCE.sub("", (documents.ROOT / f"{slug}.md").read_text())
        broken += [(slug, target) for target in LINK.findall(text) if not leads_somewhere(target, slug)]
    assert broken == []


def leads_somewhere(target: str, slug: str) -> bool:
    address = documents.href(target, slug, HTTPS)
    if urlsplit(address).scheme:
        return True
    path, _, anchor = address.partition("#")
    if path == "/docs":
        return True
    page = path.removeprefix("/docs/") if path.startswith("/docs/") else None
    if page is None and path:
        try:
            resolve(path)
        except Resolver404:
            return False
        return True
    page = page or slug
    return page in SLUGS and (not anchor or anchor in anchors(page))


def test_every_console_link_to_the_docs_leads_to_a_page() -> None:
    text = "".join(path.read_text() for path in (ROOT / "frontend/templates").rglob("*.html"))
    found = re.findall(r"{% url 'document' '([\w/-]+)' %}(?:#([\w-]+))?", text)
    assert len(found) > 10
    assert [
        (slug, anchor)
        for slug, anchor in found
        if slug not in SLUGS or (anchor and anchor not in anchors(slug))
    ] == []


SIZES = {
    "ARCHITECTURE.md": 15_360,
    "BENCHMARKS.md": 8_192,
    "CHANGELOG.md": 3_072,
    "CONTRIBUTING.md": 9_216,
    "README.md": 6_144,
}


@pytest.mark.parametrize("name", SIZES)
def test_a_document_of_the_root_is_short(name: str) -> None:
    assert len((ROOT / name).read_bytes()) <= SIZES[name]


@pytest.mark.parametrize("name", SIZES)
def test_every_link_of_a_document_of_the_root_leads_to_a_file(name: str) -> None:
    targets = LINK.findall(FENCE.sub("", (ROOT / name).read_text()))
    paths = [target.partition("#")[0] for target in targets if "://" not in target]
    assert [path for path in paths if path and not (ROOT / path).exists()] == []


RECIPE = re.compile(r"^\| (?!change|---)([^|]+) \| (.+) \|$", re.MULTILINE)
PLACE = re.compile(r"`((?:deploy|frontend|incidents|analyzers|ingest)/[\w/.]+)`")
TIERS = ("incidents/domain", "incidents/api", "frontend/views", "frontend/templates", "frontend/docs")


def recipes() -> dict[str, set[str]]:
    """The packages of each change of the table, NAME being one of its own choice."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Recipes")[2]
    return {
        change: {package_of(place.partition("NAME")[0].rstrip("/")) for place in PLACE.findall(where)}
        for change, where in RECIPE.findall(table)
    }


def package_of(place: str) -> str:
    path = ROOT / place
    assert path.exists(), f"CONTRIBUTING.md names {place}"
    return place if path.is_dir() else place.rpartition("/")[0]


def tier_of(package: str) -> str:
    return next((tier for tier in TIERS if package.startswith(tier)), package.partition("/")[0])


def test_a_change_needs_two_packages_of_a_tier_at_most() -> None:
    found = recipes()
    assert {
        "flap detection",
        "a filter of the list of incidents",
        "a telemetry field",
        "a permission",
    } <= set(found)
    wide = {
        (change, tier): packages
        for change, all_of_it in found.items()
        for tier in {tier_of(one) for one in all_of_it}
        if len(packages := {one for one in all_of_it if tier_of(one) == tier}) > 2
    }
    assert wide == {}
