"""Status of an alert by its title, where its sender has no field for it: `[Recovered on {host:a}] CPU`. Pure.

A recovery that is taken for a firing opens a second incident and leaves the first one open, so the words that senders
put before or behind a title are read. A title that denies something ("could not be resolved") says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

Status = Literal["firing", "acknowledged", "resolved"]

_WORDS: Mapping[Status, str] = {
    "firing": "firing alerting problem open opened reopened new trigger triggered re-triggered retriggered renotify"
    " active activated alarm alert down failing failed failure critical warn warning re-warn error no-data re-no-data"
    " created started start fired unhealthy degraded unresolved unreachable fatal breached incident regressed raised",
    "acknowledged": "acknowledged acknowledge acknowledgement ack acked",
    "resolved": "resolved resolve recovery recovered ok up closed close cleared clear normal inactive deactivated"
    " solved fixed healthy success successful succeeded passing passed ended end good green online completed restored",
}
WORDS_OF_STATUS: Final[Mapping[str, Status]] = {
    word: status for status, words in _WORDS.items() for word in words.split()
}
"""The words that mean a status without a mapping saying so, in lower case, `-` for spaces and underscores."""

_BEFORE = re.compile(
    r"^[^\w\[]{0,6}(?:\[[^\w\]]{0,4}(?P<in>[^\]]{1,200})\]|(?P<word>[A-Za-z]{2,20})(?::|\s[-–—]))\s*(?P<rest>\S.*)$",
    re.S,
)
_SCOPE = re.compile(r"\s+(?:on|for|from|at|in)\s+|:\d+$|\s*[,;(]")
_BEHIND = re.compile(
    r"^(?P<rest>.+?)[\s,:–—-]+(?:(?:has|have|is|are|was|were|now|been)\s+)*"
    r"(?:recovered|resolved|cleared|restored|ok|(?:back\s+)?(?:up|online|to\s+normal)(?:\s+again)?|back)[.!)\]]*$",
    re.I | re.S,
)
_BEHIND_STRICT = re.compile(
    r"(?:recovered|resolved|cleared|restored|ok|back\W+(?:up|online|to\s+normal)|again)[.!)\]]*$", re.I
)
_DENIED = re.compile(r"\b(?:not|never|cannot|unable|no longer|fail\w*|without)\b|n't\b", re.I)


def status_of(word: str) -> Status | None:
    """The status that a sender's word means; None for one that nobody knows. `alert.resolved` is its last part."""
    plain = re.sub(r"[\s_]+", "-", word.strip().lower())
    return WORDS_OF_STATUS.get(plain) or WORDS_OF_STATUS.get(re.split(r"[.:/]", plain)[-1])


def read_title(title: str) -> tuple[Status | None, str]:
    """The status that a title says, and the title without it; (None, the title) where it says none."""
    text = title.strip()
    if (found := _BEFORE.match(text)) is not None:
        word = found["in"] or found["word"]
        if (status := status_of(_SCOPE.split(word, maxsplit=1)[0])) is not None:
            return status, found["rest"].strip()
    if _DENIED.search(text) is None and _BEHIND_STRICT.search(text) and (found := _BEHIND.match(text)):
        return "resolved", found["rest"].strip()
    return None, text


def key_of_title(title: str) -> str:
    """Constant part of a title from its firing to its recovery: without the word, with what it is about."""
    text = title.strip()
    found = _BEFORE.match(text)
    if found is not None and (place := found["in"]):
        word, *_ = _SCOPE.split(place, maxsplit=1)
        if status_of(word) is not None:
            scope = re.sub(r":\d+$", "", place[len(word) :]).strip()
            return f"{found['rest'].strip()} {scope}".strip()
    return read_title(text)[1]
