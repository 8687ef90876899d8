"""The book itself: pictures with their names on one page that needs nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import groupby
from pathlib import Path

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #1a1d21; background: #f6f6f3; }
section { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; margin-bottom: 2rem; }
figure { margin: 0; }
img { display: block; height: 22rem; max-width: 40rem; object-fit: cover; object-position: top; border: 1px solid; }
figcaption { font-size: .85rem; color: #565d66; }
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """A file beside the book: what it shows and how it was looked at."""

    part: str
    title: str
    look: str
    file: str


def added(directory: Path, pictures: Iterable[Picture], parts: Sequence[str]) -> list[Picture]:
    """These, and what earlier runs left in the directory, a part after the other, the looks of a screen together.

    `pictures.json` beside the book tells which pictures there are.
    """
    kept = directory / "pictures.json"
    earlier = [Picture(**one) for one in json.loads(kept.read_text())] if kept.exists() else []
    known = {one.file: one for one in [*earlier, *pictures] if (directory / one.file).exists()}
    titles = list(dict.fromkeys((one.part, one.title) for one in known.values()))
    ordered = sorted(
        (one for one in known.values() if one.part in parts),
        key=lambda one: (parts.index(one.part), titles.index((one.part, one.title))),
    )
    kept.write_text(json.dumps([asdict(one) for one in ordered], indent=1))
    return ordered


def write(directory: Path, pictures: Iterable[Picture]) -> Path:
    """`index.html` in the directory that has the pictures; one heading a part, one row a screen."""
    lines = [f'<!doctype html><meta charset="utf-8"><title>Dossier in pictures</title><style>{STYLE}</style>']
    for part, ours in groupby(pictures, key=lambda one: one.part):
        lines.append(f"<h1>{escape(part)}</h1>")
        for title, row in groupby(ours, key=lambda one: one.title):
            lines.append(f"<h2>{escape(title)}</h2><section>{''.join(map(_figure, row))}</section>")
    book = directory / "index.html"
    book.write_text("\n".join(lines))
    return book


def summary(pictures: Iterable[Picture]) -> str:
    """`30 screens in 90 pictures: 30 light, 30 dark, 30 narrow`."""
    taken = list(pictures)
    looks = ", ".join(f"{count} {look}" for look, count in Counter(one.look for one in taken).items())
    return f"{len({(one.part, one.title) for one in taken})} screens in {len(taken)} pictures: {looks}"


def _figure(one: Picture) -> str:
    words = f"{one.title}, {one.look}"
    return (
        f'<figure><a href="{escape(one.file)}"><img src="{escape(one.file)}" alt="{escape(words)}" loading="lazy"></a>'
        f"<figcaption>{escape(one.look)}</figcaption></figure>"
    )
