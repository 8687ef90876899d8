"""Removal of secrets from texts that people or logs get to see. Imports nothing of Django."""

from __future__ import annotations

import re

PREFIX = "dsr_"
"""Beginning of every key."""
_SECRETS = re.compile(
    rf"(?P<key>{PREFIX})[\w-]{{20,}}"
    r"|(?P<mail>(?<![a-z0-9])[a-z2-7]{32}(?=[@=]))"  # in front of a mail address, or of one in an envelope's (VERP)
    r"|(?P<address>/on_call/feeds/|/reports/unsubscribe/)[^/\s\"'?]+",
    re.ASCII | re.IGNORECASE,
)


def masked(text: str) -> str:
    """The text without keys, without the addresses at which integrations take mail, without secret links."""
    return _SECRETS.sub(lambda found: f"{found['key'] or found['address'] or ''}…", text)
