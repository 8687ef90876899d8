"""Recognition of a payload that came without a mapping, and a mapping to propose for an unknown one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from ingest.integrations.generic import apply as generic
from ingest.integrations.generic.apply import Preview
from ingest.integrations.generic.default import DEFAULT
from ingest.integrations.generic.presets import READY, Preset
from ingest.integrations.generic.schema import Mapping as Checked
from ingest.integrations.generic.schema import mapping
from ingest.integrations.generic.templates import Path, path
from ingest.integrations.json_body import leaves
from ingest.integrations.normalized import LONGEST_ADDRESS

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "title": (
        "title",
        "summary",
        "subject",
        "headline",
        "name",
        "message",
        "msg",
        "text",
        "content",
        "description",
    ),
    "key": (
        "dedup_key",
        "fingerprint",
        "key",
        "alias",
        "incident_id",
        "alert_id",
        "alertid",
        "uuid",
        "guid",
        "id",
    ),
    "status": ("status", "state", "condition", "transition", "action", "event_type", "event", "type"),
    "severity": ("severity", "priority", "level", "impact", "urgency"),
    "description": ("description", "details", "detail", "body", "message", "output", "reason"),
}
"""Names by the last part of a path, the likeliest first."""
_DEFAULTS: Final = {"severity": "warning"}


def recognised(payload: Any) -> Preset | None:
    """The sender whose webhooks have the fields of this payload; None for one that is not known."""
    if not isinstance(payload, dict):
        return None
    for ready in READY.values():
        for fields in ready.recognised_by:
            if all(_path(field).find(payload, payload) not in (None, "") for field in fields):
                return ready
    return None


@cache
def _path(text: str) -> Path:
    return path(text)


def reads(payload: Any) -> Checked:
    """The mapping that reads a payload of an integration without one of its own."""
    ready = recognised(payload)
    return DEFAULT if ready is None else _mapping_of(ready.name)


def apply(how: Checked | None, payload: Any) -> Preview:
    """Result of the generic endpoint for a payload: through the integration's mapping, None for one without. Raises
    InvalidPayloadError."""
    return generic.apply(reads(payload) if how is None else how, payload)


@cache
def _mapping_of(name: str) -> Checked:
    return mapping(READY[name].mapping)


def proposed(payload: Any) -> dict[str, Any]:
    """A mapping to try on a payload: its sender's, else one of the fields whose names are the likeliest.

    Titles say the status where no field does: a recovery must not fire.
    """
    if (ready := recognised(payload)) is not None:
        return dict(ready.mapping)
    fields: dict[str, Any] = {}
    item = payload[0] if _is_array(payload) else payload
    if isinstance(item, dict):
        arrays = [name for name in item if _is_array(item[name])]
        if len(arrays) == 1 and not item.keys() & set(_PARTS["title"]):
            fields["items"] = f"$.{arrays[0]}"
            item = item[arrays[0]][0]
    found = leaves(item) if isinstance(item, dict) else {}
    for field, names in _PARTS.items():
        if paths := _likely(found, names):
            fields[field] = {"from": [f"$.{one}" for one in paths[:3]], "default": _DEFAULTS.get(field, "")}
    first = next(iter(found), "title")
    fields.setdefault("title", {"from": [f"$.{first}"]})
    fields.setdefault("key", {"from": fields["title"]["from"]})
    fields["reads_titles"] = True
    return fields


def _is_array(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _likely(found: Mapping[str, str], names: tuple[str, ...]) -> list[str]:
    """Paths that end in one of the names, in the order of the names; the shallow ones first."""
    last = {one: one.rpartition(".")[2].lower() for one in found if " " not in one}
    rank = {one: (names.index(name), one.count(".")) for one, name in last.items() if name in names}
    return sorted(rank, key=rank.__getitem__)


# Amazon SNS
# ----------------------------------------------------------------------------------------------------------
def confirmation(payload: Any) -> str | None:
    """The address that confirms a subscription of Amazon SNS; None for anything else, and for an address elsewhere.

    https://docs.aws.amazon.com/sns/latest/dg/http-subscription-confirmation-json.html
    """
    if not isinstance(payload, dict) or payload.get("Type") != "SubscriptionConfirmation":
        return None
    address = payload.get("SubscribeURL")
    if not isinstance(address, str) or len(address) > LONGEST_ADDRESS:
        return None
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    is_amazon = host.startswith("sns.") and host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
    return address if parts.scheme == "https" and is_amazon and port in (None, 443) else None
