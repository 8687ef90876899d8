"""Every template can be read, every reference leads to one, and the folders are the areas of the views."""

from __future__ import annotations

import re

from django.template.loader import get_template

from tests.places import ROOT

TEMPLATES = ROOT / "frontend" / "templates"
SHARED = {"docs", "installed", "layout", "onboarding", "shared"}
"""Folders that belong to no package of `frontend/views`: parts of several areas, and areas of one module."""


def test_every_template_can_be_read() -> None:
    names = [str(one.relative_to(TEMPLATES)) for one in TEMPLATES.rglob("*.html")]
    assert len(names) > 50
    for name in names:
        get_template(name)


def test_every_reference_leads_to_a_template_and_every_template_is_referenced() -> None:
    sources = [
        *(ROOT / "deploy").rglob("*.py"),
        *(ROOT / "frontend").rglob("*.py"),
        *TEMPLATES.rglob("*.html"),
    ]
    named = {name for one in sources for name in re.findall(r"\bfrontend/[\w/]+\.html", one.read_text())}
    there = {str(one.relative_to(TEMPLATES)) for one in (TEMPLATES / "frontend").rglob("*.html")}
    drawings = {
        name for name in there if "/drawings/" in name
    }  # named by `templatetags/drawings.py` in parts
    assert (named - there, there - named - drawings) == (set(), set())


def test_templates_are_filed_by_the_areas_of_the_views() -> None:
    areas = {one.parent.name for one in (ROOT / "frontend" / "views").glob("*/__init__.py")}
    folders = {one.name for one in (TEMPLATES / "frontend").iterdir()}
    assert folders == areas | SHARED
