"""The map in ARCHITECTURE.md is the checkout's: prose that nobody checks rots."""

import re

from tests.places import ROOT

LAYERS = ["deploy", "frontend", "incidents", "analyzers", "ingest", "tests"]


def mapped() -> set[str]:
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("### The map")[2].partition("###")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))


def test_every_place_on_the_map_is_there() -> None:
    assert [place for place in sorted(mapped()) if not (ROOT / place).exists()] == []


def test_every_package_is_on_the_map() -> None:
    packages = {
        f"{layer}/{path.name}"
        for layer in LAYERS
        for path in (ROOT / layer).iterdir()
        if path.is_dir() and (path / "__init__.py").exists()
    }
    known = {"deploy/management", "frontend/templatetags"}  # Django's own names
    assert packages - known - mapped() == set()
