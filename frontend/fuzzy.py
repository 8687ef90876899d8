"""Match of typed text with words: whole beginnings first, then letters in order, then a slip of the finger. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from typing import Final, TypeVar

T = TypeVar("T")
_SPREAD: Final = 2.5
"""Letters of a text may be spread over so many times its length."""
_ALIKE: Final = 0.74
"""Ratio from which on a word is a misspelt one."""
_LEAST_ALIKE: Final = 4
"""Letters below which nothing is taken for misspelt."""


def rank(wanted: str, words: str) -> float | None:
    """0 is best; None where the text does not fit. Case and the order of words do not count."""
    text, target = " ".join(wanted.casefold().split()), words.casefold()
    if not text:
        return 0.0
    if target.startswith(text):
        return 0.0
    pieces, parts = text.split(), target.replace("-", " ").split()
    if all(any(part.startswith(piece) for part in parts) for piece in pieces):
        return 1.0
    if text in target:
        return 2.0
    letters = text.replace(" ", "")
    if len(letters) > 1 and "".join(part[0] for part in parts).startswith(letters):
        return 3.0
    if (span := _span(letters, target)) is not None and span <= _SPREAD * len(letters):
        return 4.0 + span / (_SPREAD * len(letters) + 1)
    if all(any(_alike(piece, part) for part in parts) for piece in pieces):
        return 6.0
    return None


def best(wanted: str, found: Iterable[T], words: Callable[[T], str]) -> list[T]:
    """Those that fit, best first, otherwise in the order given."""
    ranked = [(place, one) for one in found if (place := rank(wanted, words(one))) is not None]
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]


def _span(letters: str, target: str) -> int | None:
    """Length of the shortest part of the target, from the beginning of a word on, with all letters in order."""
    starts = [at for at in range(len(target)) if at == 0 or target[at - 1] in " -/"]
    spans = []
    for start in starts:
        if len(letters) < 3 or target[start : start + 1] != letters[0]:
            continue
        at = start
        for letter in letters:
            at = target.find(letter, at) + 1
            if at == 0:
                break
        else:
            spans.append(at - start)
    return min(spans, default=None)


def _alike(piece: str, part: str) -> bool:
    if part.startswith(piece):
        return True
    return len(piece) >= _LEAST_ALIKE and SequenceMatcher(None, piece, part).ratio() >= _ALIKE
