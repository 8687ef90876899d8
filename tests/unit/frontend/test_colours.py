"""Text is readable: WCAG 2.1 contrast (4.5:1) of every text colour on its surfaces, in both themes."""

import re
from pathlib import Path

import pytest

import frontend

TOKENS = (Path(frontend.__file__).parent / "static" / "dossier" / "tokens.css").read_text()
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", TOKENS
    )
}
SURFACES = ("paper", "surface", "raised", "sunken")
SOFT = ("critical", "error", "warning", "info", "good")
PAIRS = [
    *((text, surface) for text in ("ink", "ink-2", "accent") for surface in SURFACES),
    *((name, surface) for name in SOFT for surface in ("paper", "surface", f"{name}-soft")),
    *(("ink", f"{name}-soft") for name in SOFT),
    ("ink", "accent-soft"),
    ("ink-2", "accent-soft"),
    ("accent", "accent-soft"),
    ("ink", "arrived"),
    ("ink-2", "arrived"),
]


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("text", "surface"), PAIRS)
def test_text_is_readable_on_its_surface_in_both_themes(text: str, surface: str) -> None:
    for theme in (0, 1):
        assert contrast(COLOURS[text][theme], COLOURS[surface][theme]) >= 4.5


def test_white_is_readable_on_the_main_button_in_both_themes() -> None:
    assert min(contrast("#ffffff", colour) for colour in COLOURS["accent-fill"]) >= 4.5
