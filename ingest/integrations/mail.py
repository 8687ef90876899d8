"""Mails as payloads of a mapping: RFC 5322 and MIME as they come, not as they ought to be. Pure.

A mapping reads these fields: `subject`, `from` (the address), `from_name`, `to`, `date`, `message_id`, `text` (of a
mail in HTML its text), `headers` by name in lower case, `attachments` (`name`, `type`, `bytes`; never opened), and
three that are read out of the subject:

- `state`: what its first word of status means, `[RESOLVED] …`, `** RECOVERY … **`, `OK: …`, `… is DOWN`; else `firing`
- `severity`: its first word of severity
- `topic`: the subject without these words and without `Re:`, so that problem and recovery have it in common

What programs answer by themselves (RFC 3834), bounces (RFC 3464), what Dossier itself sent and what went round in
circles is refused: an alert by mail that is answered by mail would never end.
"""

from __future__ import annotations

import re
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser, BytesParser
from email.utils import parseaddr
from html import unescape
from typing import Any

from ingest.integrations.generic import apply
from ingest.integrations.generic.schema import Mapping, mapping
from ingest.integrations.normalized import WORDS_OF_SEVERITY, InvalidPayloadError, Parsed
from ingest.integrations.recovery import WORDS_OF_STATUS

OWN_HEADER = "X-Dossier"
"""Header of mails of Dossier itself."""
MOST_HOPS = 50
"""`Received` lines of a mail that still comes straight; RFC 5321, 6.3."""
MOST_PARTS = 100
MOST_HEADERS = 200
LONGEST_HEADER = 2_000
LONGEST_TEXT = 100_000

DEFAULT = mapping(
    {
        "title": {"from": ["$.subject", "$.message_id", "Mail without a subject"]},
        "key": {"from": ["$.topic", "$.subject", "$.message_id", "mail"]},
        "status": "$.state",
        "severity": {"from": "$.severity", "default": "warning"},
        "group": "$.topic",
        "description": "$.text",
        "labels": {"from": "$.from", "mailer": {"from": '$.headers["x-mailer"]', "default": ""}},
    }
)
"""The mapping of a mail where the integration has none of its own."""


def alerts(raw: bytes, how: Mapping) -> Parsed:
    """Alerts that a mapping makes of a mail. Raises InvalidPayloadError for one that is refused."""
    return apply.apply(how, read(raw)).parsed


def headers_of(raw: bytes) -> bytes:
    """The mail without its body, for keeping what is too long to be kept."""
    head, _, _ = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
    return head + b"\n\n"


def without_token(raw: bytes, token: str) -> bytes:
    """The mail as it is kept: who reads the secret part of its recipient's address there could send, too."""
    return re.sub(re.escape(token).encode(), b"...", raw, flags=re.IGNORECASE)


def read(raw: bytes) -> dict[str, Any]:
    """The fields of a mail. Raises InvalidPayloadError for one that no person or monitoring system sent."""
    try:
        message = BytesParser().parsebytes(raw)
    except RecursionError:
        message = BytesHeaderParser().parsebytes(
            raw
        )  # parts within parts without end: the headers are enough
    headers = _headers(message)
    _refuse_robots(message, headers)
    subject = headers.get("subject", "")
    name, address = parseaddr(headers.get("from", ""))
    texts, attachments = _parts(message)
    return {
        "subject": subject,
        "from": address or headers.get("from", ""),
        "from_name": name,
        "to": headers.get("to", ""),
        "date": headers.get("date", ""),
        "message_id": headers.get("message-id", ""),
        "text": texts,
        "headers": headers,
        "attachments": attachments,
        **_labels_from_subject(subject),
    }


# The subject
# ----------------------------------------------------------------------------------------------------------
_ANSWER = re.compile(r"^\s*((re|fwd?|aw|wg)\s*:\s*)+", re.IGNORECASE)
_STATES = {
    **WORDS_OF_STATUS,
    "alarm": "firing",
    "warning": "firing",
    "warn": "firing",
    "unknown": "firing",
} | {
    "unreachable": "firing",
    "degraded": "firing",
}
_WORD = "|".join(sorted({*_STATES, *WORDS_OF_SEVERITY}, key=len, reverse=True))
_STATE_WORD = re.compile(
    rf"\[\s*({_WORD})(?::\d+)?\s*\]"  # [FIRING:2] [RESOLVED]
    rf"|^\W*({_WORD})(?:\s+in\s+[\w .]{{1,30}})?\s*(?::|-|–|\s(?=\S))"  # OK: … ** PROBLEM … Resolved in 5m: …
    rf"|\bis\s+({_WORD})\b",  # … is DOWN
    re.IGNORECASE,
)


def _labels_from_subject(subject: str) -> dict[str, str]:
    """`state`, `severity` and `topic` of a subject."""
    bare = _ANSWER.sub("", subject[:LONGEST_HEADER])
    words = [next(filter(None, found)).lower() for found in _STATE_WORD.findall(bare)]
    topic = re.sub(r"\s+", " ", _STATE_WORD.sub(" ", bare)).strip(" *:-–.!")
    states = [_STATES[word] for word in words if word in _STATES]
    severities = [
        word for word in words if word in WORDS_OF_SEVERITY and WORDS_OF_STATUS.get(word) != "resolved"
    ]
    return {
        "state": states[0] if states else "firing",
        "severity": severities[0] if severities else "",
        "topic": topic or bare.strip(),
    }


# Headers
# ----------------------------------------------------------------------------------------------------------
def _headers(message: Message) -> dict[str, str]:
    """By name in lower case, decoded; of several with one name the first."""
    found: dict[str, str] = {}
    for name, value in list(message.raw_items())[:MOST_HEADERS]:
        found.setdefault(_clean(str(name)).lower(), _decoded(str(value)[:LONGEST_HEADER]))
    return found


def _decoded(value: str) -> str:
    """A header as people read it: `=?utf-8?b?…?=` decoded (RFC 2047), and bytes that are no ASCII as UTF-8."""
    plain = _clean(value)
    try:
        pieces = decode_header(plain)
    except HeaderParseError:
        return plain
    text = "".join(piece if isinstance(piece, str) else _text_of(piece, charset) for piece, charset in pieces)
    return re.sub(r"\s+", " ", _clean(text)).strip()


def _clean(text: str) -> str:
    """Bytes that the parser could not read, as UTF-8; what is none of that replaced."""
    return text.encode(errors="surrogateescape" if _is_escaped(text) else "replace").decode(errors="replace")


def _is_escaped(text: str) -> bool:
    return all("\udc80" <= c <= "\udcff" for c in text if "\ud800" <= c <= "\udfff")


def _text_of(content: bytes, charset: str | None) -> str:
    for name in (charset, "utf-8"):
        try:
            return content.decode(name or "utf-8")
        except (
            LookupError,
            ValueError,
        ):  # no such charset, or it is not in it; codecs that are none raise ValueError
            continue
    return content.decode("latin-1")


def _refuse_robots(message: Message, headers: dict[str, str]) -> None:
    automatic = headers.get("auto-submitted", "no").lower().startswith("auto-replied")
    if automatic or "x-autoreply" in headers or headers.get("precedence", "").lower() == "auto_reply":
        raise InvalidPayloadError("", "is an automatic answer; those are no alerts")
    if message.get_content_type() == "multipart/report":
        raise InvalidPayloadError("", "is a report about another mail; those are no alerts")
    if OWN_HEADER.lower() in headers:
        raise InvalidPayloadError("", "was sent by Dossier itself")
    if sum(str(name).lower() == "received" for name, _ in message.raw_items()) > MOST_HOPS:
        raise InvalidPayloadError("", f"went round in circles: it has more than {MOST_HOPS} Received lines")


# Bodies
# ----------------------------------------------------------------------------------------------------------
def _parts(message: Message) -> tuple[str, list[dict[str, Any]]]:
    """The text of a mail, and what is attached to it."""
    plain, html, attached = "", "", []
    for place, part in enumerate(message.walk()):
        if place >= MOST_PARTS:
            break
        if part.is_multipart():
            continue
        kind, content = part.get_content_type(), _content(part)
        is_body = kind in ("text/plain", "text/html") and part.get_content_disposition() != "attachment"
        if is_body and kind == "text/plain" and not plain:
            plain = _text_of(content[: 4 * LONGEST_TEXT], part.get_content_charset())[:LONGEST_TEXT]
        elif is_body and kind == "text/html" and not html:
            html = _text_of(content[: 4 * LONGEST_TEXT], part.get_content_charset())[: 4 * LONGEST_TEXT]
        else:
            name = _clean(str(part.get_filename() or ""))[:255]
            attached.append({"name": name, "type": kind, "bytes": len(content)})
    return _clean(plain.strip() or text_of_html(html)), attached


def _content(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


_BREAKS = {
    tag + name for name in ("p", "div", "tr", "ul", "table", "h1", "h2", "h3") for tag in ("", "/")
} | {
    "br",
    "hr",
    "li",
}
_HIDDEN = ("script", "style", "title")


def text_of_html(html: str) -> str:
    """Visible text of HTML. Takes it apart by its angle brackets, in time linear in its length; it is shown as text
    only, so nothing depends on reading it as a browser does."""
    first, *pieces = html.split("<")
    body_lines, hidden = [first], ""
    for piece in pieces:
        tag, end, text = piece.partition(">")
        name = (tag[:20].lower().split() or [""])[0].rstrip("/")
        if hidden:
            if name != f"/{hidden}":
                continue
            hidden = ""
        elif name in _HIDDEN:
            hidden = name
            continue
        body_lines.append(("\n" if name in _BREAKS else "") + (text if end else f"<{piece}"))
    lines = (
        re.sub(r"[ \t\r\f\v\xa0]+", " ", line).strip() for line in unescape("".join(body_lines)).split("\n")
    )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()[:LONGEST_TEXT]
