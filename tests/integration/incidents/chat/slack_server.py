"""A local server that speaks Slack's Web API as far as Dossier uses it, and signs what it sends as Slack does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.test import Client
from slack_sdk.signature import SignatureVerifier

from tests.integration.sinks import Got, http_sink

TOKEN = "xoxb-1111-2222-abcdefgh"
SECRET = "0123456789abcdef0123456789abcdef"
ROOM = "C0000000001"


@dataclass(slots=True)
class SlackServer:
    """Messages by channel and ts, replies by thread, and dialogs; `errors` are the next answers of a method."""

    url: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    messages: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    replies: list[tuple[str, str]] = field(default_factory=list)
    private: list[str] = field(default_factory=list)
    dialogs: list[dict[str, Any]] = field(default_factory=list)
    errors: dict[str, list[tuple[int, dict[str, str], str]]] = field(default_factory=dict)

    def answer(self, got: Got) -> tuple[int, dict[str, str], bytes]:
        method = got.path.rpartition("/")[2]
        body = json.loads(got.body or b"{}")
        self.calls.append((method, body))
        if got.headers.get("authorization") != f"Bearer {TOKEN}":
            return _json(200, {"ok": False, "error": "invalid_auth"})
        if waiting := self.errors.get(method):
            status, headers, error = waiting.pop(0)
            return _json(status, {"ok": False, "error": error}, headers)
        return _json(200, {"ok": True, **self._done(method, body)})

    def _done(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "chat.postMessage" if "thread_ts" in body:
                self.replies.append((body["thread_ts"], body["text"]))
            case "chat.postMessage":
                ts = f"1700000000.{len(self.messages):06d}"
                self.messages[body["channel"], ts] = body
                return {"channel": body["channel"], "ts": ts}
            case "chat.update":
                if (body["channel"], body["ts"]) not in self.messages:
                    return {"ok": False, "error": "message_not_found"}
                self.messages[body["channel"], body["ts"]] = body
            case "chat.postEphemeral":
                self.private.append(body["text"])
            case "views.open":
                self.dialogs.append(body["view"])
        return {}

    def text(self, index: int = 0) -> str:
        """All that a message shows."""
        return json.dumps(list(self.messages.values())[index]["blocks"], ensure_ascii=False)

    def buttons(self, index: int = 0) -> list[str]:
        blocks = list(self.messages.values())[index]["blocks"]
        return [
            one["action_id"] for block in blocks if block["type"] == "actions" for one in block["elements"]
        ]


def _json(
    status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(body).encode()


@contextmanager
def slack_server() -> Iterator[SlackServer]:
    server = SlackServer()
    with http_sink(server.answer) as sink:
        server.url = f"http://127.0.0.1:{sink.port}/api/"
        yield server


def send(
    body: bytes,
    content_type: str,
    name: str = "acme",
    secret: str = SECRET,
    age: float = 0.0,
    now: float | None = None,
    **headers: str,
) -> HttpResponse:
    """A request as Slack sends it, signed `age` seconds before `now`."""
    at = str(int((time.time() if now is None else now) - age))
    signed = {
        "x-slack-request-timestamp": at,
        "x-slack-signature": SignatureVerifier(secret).generate_signature(timestamp=at, body=body) or "",
    }
    return Client().post(  # type: ignore[return-value]
        f"/chat/slack/{name}", body, content_type=content_type, headers={**signed, **headers}
    )


def typed(text: str, user: str = "U1", **kwargs: Any) -> str:
    """Answer to `/dossier TEXT` of a chat account."""
    fields = {
        "command": "/dossier",
        "text": text,
        "user_id": user,
        "user_name": "alice.in.chat",
        "trigger_id": str(time.time_ns()),
    }
    answer = send(urlencode(fields).encode(), "application/x-www-form-urlencoded", **kwargs)
    assert answer.status_code == 200, answer.content
    return str(json.loads(answer.content)["text"])


def pressed(action: str, ts: str, user: str = "U1", **fields: Any) -> HttpResponse:
    """A button of the message `ts`."""
    return _interaction(
        {
            "type": "block_actions",
            "user": {"id": user},
            "trigger_id": f"t{time.time_ns()}",
            "channel": {"id": ROOM},
            "message": {"ts": ts},
            "actions": [{"action_id": action, **fields}],
        }
    )


def submitted(dialog: dict[str, Any], user: str = "U1", **values: str) -> HttpResponse:
    """A dialog that a person fills in and sends."""
    state = {}
    for block in dialog["blocks"]:
        if block["type"] == "input":
            text = values.get(block["block_id"], "")
            is_menu = block["element"]["type"] == "static_select"
            state[block["block_id"]] = {
                block["element"]["action_id"]: {"selected_option": {"value": text}}
                if is_menu
                else {"value": text}
            }
    view = {key: dialog[key] for key in ("callback_id", "private_metadata")}
    return _interaction(
        {
            "type": "view_submission",
            "user": {"id": user},
            "view": {**view, "state": {"values": state}},
            "n": time.time_ns(),
        }
    )


def _interaction(payload: dict[str, Any]) -> HttpResponse:
    body = urlencode({"payload": json.dumps(payload)}).encode()
    return send(body, "application/x-www-form-urlencoded")


def written_in_thread(
    ts: str, text: str, user: str = "U1", event_id: str = "", **fields: Any
) -> HttpResponse:
    event = {
        "type": "message",
        "user": user,
        "text": text,
        "channel": ROOM,
        "thread_ts": ts,
        "ts": str(time.time()),
        **fields,
    }
    body = {
        "type": "event_callback",
        "event_id": event_id or f"Ev{time.time_ns()}",
        "event": event,
        "n": time.time_ns(),
    }
    return send(json.dumps(body).encode(), "application/json")
