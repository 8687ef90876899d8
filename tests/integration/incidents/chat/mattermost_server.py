"""A local server that speaks Mattermost's REST API as far as Dossier uses it; buttons and commands as it sends them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.test import Client

from tests.integration.sinks import Got, http_sink

TOKEN = "b" * 26
COMMAND_TOKEN = "c" * 26
ROOM = "r" * 26
FORM = "application/x-www-form-urlencoded"


@dataclass(slots=True)
class MattermostServer:
    """Posts by id, replies by thread; `errors` are the next answers of a method and the end of a path."""

    url: str = ""
    posts: dict[str, dict[str, Any]] = field(default_factory=dict)
    replies: list[tuple[str, str]] = field(default_factory=list)
    errors: dict[str, list[tuple[int, dict[str, str], str]]] = field(default_factory=dict)

    def answer(self, got: Got) -> tuple[int, dict[str, str], bytes]:
        body = json.loads(got.body or b"{}")
        if got.headers.get("authorization") != f"Bearer {TOKEN}":
            return _error(401, "Invalid or expired session, please login again.")
        end = got.path.rpartition("/")[2]
        if waiting := self.errors.get(end):
            status, headers, message = waiting.pop(0)
            return _error(status, message, headers)
        if got.path == "/api/v4/posts":
            id_ = f"{len(self.posts) + len(self.replies):026d}"
            if body.get("root_id"):
                self.replies.append((body["root_id"], body["message"]))
            else:
                self.posts[id_] = body
            return _json(201, {"id": id_, **body})
        id_ = got.path.split("/")[4]
        if id_ not in self.posts:  # of a post that is not there Mattermost says no more
            return _error(403, "You do not have the appropriate permissions.")
        self.posts[id_] |= body
        return _json(200, {"id": id_, **self.posts[id_]})

    def attachment(self, index: int = 0) -> dict[str, Any]:
        (found,) = list(self.posts.values())[index]["props"]["attachments"]
        return dict(found)

    def text(self, index: int = 0) -> str:
        """All that a message shows."""
        shown = {key: value for key, value in self.attachment(index).items() if key != "actions"}
        return json.dumps(shown, ensure_ascii=False)

    def buttons(self, index: int = 0) -> list[str]:
        return [one["id"] for one in self.attachment(index)["actions"]]

    def secret(self, action: str, index: int = 0) -> str:
        (found,) = [one for one in self.attachment(index)["actions"] if one["id"] == action]
        return str(found["integration"]["context"]["button"])


def _json(
    status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(body).encode()


def _error(
    status: int, message: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    return _json(status, {"id": "api.app_error", "message": message, "status_code": status}, headers)


@contextmanager
def mattermost_server() -> Iterator[MattermostServer]:
    server = MattermostServer()
    with http_sink(server.answer) as sink:
        server.url = f"http://127.0.0.1:{sink.port}"
        yield server


def trigger(user: str = "u1", age: float = 0.0) -> str:
    """A `trigger_id` as Mattermost makes it."""
    at = int((time.time() - age) * 1_000)
    signature = base64.b64encode(b"signature").decode()
    return base64.b64encode(f"{time.time_ns()}:{user}:{at}:{signature}".encode()).decode()


def command(text: str, name: str = "acme", user: str = "u1", **fields: str) -> HttpResponse:
    """The request of `/dossier TEXT`."""
    form = {
        "token": COMMAND_TOKEN,
        "command": "/dossier",
        "text": text,
        "user_id": user,
        "user_name": "alice.in.chat",
        "channel_id": ROOM,
        "response_url": "https://mattermost.example.com/hooks/commands/1",
        "trigger_id": trigger(user),
        **fields,
    }
    return Client().post(f"/chat/mattermost/{name}", urlencode(form), content_type=FORM)  # type: ignore[return-value]


def typed(text: str, user: str = "u1") -> str:
    """Answer to `/dossier TEXT` of a chat account."""
    answer = command(text, user=user)
    assert answer.status_code == 200, answer.content
    body = json.loads(answer.content)
    assert body["response_type"] == "ephemeral"
    return str(body["text"])


def press(
    secret: str, post: str, user: str = "u1", chosen: str = "", name: str = "acme", **fields: str
) -> HttpResponse:
    """The request of a button or menu of a post."""
    context = {"button": secret, **({"selected_option": chosen} if chosen else {})}
    body = {
        "user_id": user,
        "user_name": "alice.in.chat",
        "channel_id": ROOM,
        "post_id": post,
        "trigger_id": trigger(user),
        "type": "select" if chosen else "button",
        "context": context,
        **fields,
    }
    return Client().post(  # type: ignore[return-value]
        f"/chat/mattermost/{name}", json.dumps(body), content_type="application/json"
    )


def said(answer: HttpResponse) -> str:
    """The line that the person sees; empty for none."""
    assert answer.status_code == 200, answer.content
    return str(json.loads(answer.content).get("ephemeral_text", ""))
