"""What an answer to a message means: taken, not now, or never.

SMTP: RFC 5321, 4.2.1 (4yz passes, 5yz is for good). HTTP: RFC 9110 (408, 421, 425, 429 and 5xx may pass; `Retry-After`
says when), other 4xx and redirects are for good. No answer at all may always pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, Literal

Kind = Literal["taken", "passing", "refused", "unreadable"]
"""`unreadable`: not sent, because this installation cannot decrypt the address or secret; the right key restores it."""
WHY_LIMIT: Final = 300
LONGEST_WAIT: Final = timedelta(minutes=15)
"""What a receiver may ask for at most: a page that waits longer is none."""
_PASSING: Final = frozenset({408, 421, 423, 425, 429})


@dataclass(frozen=True, slots=True)
class Reply:
    """`why` is what people read; `retry_after` what the receiver asked for."""

    kind: Kind
    why: str = ""
    retry_after: timedelta | None = None


def smtp(code: int, text: str) -> Reply:
    """An answer of a mail server."""
    why = shortened(f"the mail server responded {code} {text}".strip())
    if 200 <= code < 400:
        return Reply("taken", why)
    return Reply("refused" if 500 <= code < 600 else "passing", why)


def http(status: int, headers: Mapping[str, str], text: str, now: datetime) -> Reply:
    """An answer of a web server; names of headers in lower case."""
    told = f"response {status}" + (f": {text}" if text.strip() else "")
    if 200 <= status < 300:
        return Reply("taken", f"response {status}")
    if status >= 500 or status in _PASSING:
        return Reply("passing", shortened(told), retry_after(headers.get("retry-after", ""), now))
    return Reply("refused", shortened(told))


def no_answer(why: str) -> Reply:
    """No name, no connection, no end in time."""
    return Reply("passing", shortened(why))


def refused(why: str) -> Reply:
    """What we will not or cannot send, however often."""
    return Reply("refused", shortened(why))


def unreadable(why: str) -> Reply:
    """What cannot be decrypted under the present key."""
    return Reply("unreadable", shortened(why))


def retry_after(text: str, now: datetime) -> timedelta | None:
    """Seconds, or a date (RFC 9110, 10.2.3); None for nonsense. At most `LONGEST_WAIT`."""
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max(moment - now, timedelta(0)), LONGEST_WAIT)


def shortened(text: str) -> str:
    """On one line and fit for an event: what foreign servers say holds anything."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * WHY_LIMIT]).split())
    return line if len(line) <= WHY_LIMIT else line[: WHY_LIMIT - 1] + "…"
