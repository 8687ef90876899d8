"""Every template of the console can be read: each tag and filter that it names is there."""

from __future__ import annotations

from pathlib import Path

from django.template.loader import get_template

TEMPLATES = Path(__file__).resolve().parents[2] / "frontend" / "templates"


def test_every_template_can_be_read() -> None:
    names = [str(one.relative_to(TEMPLATES)) for one in TEMPLATES.rglob("*.html")]
    assert len(names) > 50
    for name in names:
        get_template(name)
