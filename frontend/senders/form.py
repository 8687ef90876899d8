"""Form of an endpoint's description, and sentences that several of them share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

KEY = "KEY"
HTTPS, HOST = "https://dossier.example.com", "dossier.example.com"


def placed(text: str, address: str) -> str:
    """Text with the address of this Dossier in place of the one that stands for it in files."""
    if address == HTTPS:
        return text
    parts = urlsplit(address)
    # A host with a port in the text has another one than the pages.
    text = re.sub(rf"{re.escape(HOST)}(?=:\d)", re.sub(r":\d+$", "", parts.netloc), text)
    text = text.replace(HTTPS, address).replace(HOST, parts.netloc)
    return text.replace("scheme: https", f"scheme: {parts.scheme}")


@dataclass(frozen=True, slots=True)
class Sender:
    """An endpoint and one kind of sender. `views` are the names of the addresses that it describes."""

    slug: str
    title: str
    scope: str
    views: tuple[str, ...]
    endpoint: str
    """As a key's `endpoints` name it; empty where keys are bound to kinds of telemetry instead."""
    summary: str
    configuration: tuple[tuple[str, str], ...]
    """Configuration to paste and its place; with HTTPS for the address and KEY for the key."""
    success: str
    limits: str
    overload: str
    life: str
    """Rule by which repeats differ from new alerts, and an alert ends; effect of a repeated request."""
    mapping: Mapping[str, object] | None = None

    def configured(self, address: str, key: str = KEY) -> list[tuple[str, str]]:
        """The configuration with the address of this Dossier and a key."""

        def filled(text: str) -> str:
            return re.sub(rf"(?<![A-Za-z]){KEY}(?![A-Za-z])", key, placed(text, address))

        return [(where, filled(text)) for where, text in self.configuration]


COMMITTED = "Every alert of the request is committed to disk. The header `Dossier-Receipt` has the receipt."
BODY = (
    "64 MiB per body, also after decompression (gzip, zstd); set by `DOSSIER_ALERT_MAX_BODY`. Larger bodies "
    "get 413 and "
    "open an incident. Long texts of an alert are shortened; the payload is stored as sent."
)
AGAIN = "503 with `Retry-After: 5`; nothing was stored."
INCIDENT = (
    "Alerts of an integration with the same key are one alert; repeats are counted on "
    "the incident. An incident is resolved when all its alerts have ended."
)
