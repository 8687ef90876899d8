"""Failures of a chat service, and what they mean for the next request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

Meaning = Literal["later", "token", "channel", "message", "refused"]


class ChatError(Exception):
    """A request to a chat service that failed. `meaning`: try later, the token is wrong, the channel is, the message is
    gone, or it is refused for good. `wait`: seconds that the service wants."""

    cures: ClassVar[Mapping[Meaning, str]] = {}

    def __init__(self, meaning: Meaning, why: str, wait: float | None = None) -> None:
        cure = self.cures.get(meaning)
        super().__init__(f"{why}: {cure}" if cure else why)
        self.meaning: Final = meaning
        self.wait: Final = wait
