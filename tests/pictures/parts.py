"""The parts of the book: of which Dossier they are, what is made in it before, and which screens they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.pictures import world
from tests.pictures.screens import (
    FULL,
    LOOKS,
    MADE,
    OPEN,
    PAPER,
    PRINTED,
    STORMY,
    WRONG,
    Look,
    Screen,
    listed,
)


@dataclass(frozen=True, slots=True)
class Part:
    """`name` is what it is asked for by. Those of one Dossier are taken in this order: later ones change it."""

    name: str
    title: str
    of: Callable[[Path], AbstractContextManager[world.World]]
    screens: tuple[Screen, ...]
    looks: tuple[Look, ...] = LOOKS
    before: Callable[[world.World], None] | None = None

    def chosen(self, names: list[str], looks: list[str]) -> Iterator[tuple[Look, list[Screen]]]:
        """The screens to take a look at in turn. Empty lists choose all; a name chooses those that contain it."""
        for look in self.looks:
            ours = [one for one in self.screens if not names or any(name in one.name for name in names)]
            if ours and (not looks or look.name in looks):
                yield look, ours


PARTS: Final = (
    Part("demo", "After the demo", world.told, (*listed(), *MADE)),
    Part("open", "Panels and dialogs", world.told, OPEN),
    Part("wrong", "What goes wrong", world.told, WRONG),
    Part("paper", "On paper", world.told, PRINTED, (PAPER,)),
    Part("storm", "In a storm", world.told, STORMY, before=world.storm),
    Part("long", "Long lists", world.told, FULL, before=world.fill),
    Part("empty", "Nothing yet", world.empty, listed()),
)


def worlds(parts: list[Part]) -> Iterator[list[Part]]:
    """Parts that share a Dossier."""
    for _, ours in groupby(parts, key=lambda one: one.of):
        yield list(ours)
