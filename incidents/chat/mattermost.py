"""Requests to Mattermost's REST API (https://developers.mattermost.com/api-documentation), and the secrets of buttons.

Mattermost signs no request of a button. Each button carries a secret of ours instead, which the server keeps from its
clients: signed, of one workspace, incident and action, for BUTTON_LASTS, and good for one use.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

from django.conf import settings
from django.core import signing

from incidents.chat.errors import ChatError, Meaning
from incidents.chat.models import ChatWorkspace
from incidents.domain import mattermost
from incidents.domain.incident.state import Incident
from incidents.security import outbound
from incidents.security.outbound import AddressRefusedError, UnreachableError
from incidents.teams.models import Team

TIMEOUT: Final = 8.0
"""Seconds."""
LARGEST: Final = 512 * 1024
"""Bytes of an answer, which repeats the message."""
BUTTON_LASTS: Final = timedelta(days=7)
_SALT: Final = "incidents.chat_button"
MARKUP: Final = mattermost.MARKUP


class MattermostError(ChatError):
    """A request to Mattermost that failed."""

    cures: ClassVar[Mapping[Meaning, str]] = {
        "token": "create an access token of the bot account and enter it",
        "channel": "add the bot to the team and the channel, or correct the channel",
    }


# Messages
# ----------------------------------------------------------------------------------------------------------
def content(it: Incident, url: str) -> Any:
    """The attachment of an incident, without what makes its buttons work."""
    return mattermost.attachment(it, url, list(Team.objects.order_by("name").values_list("slug", "name")))


def post(workspace: ChatWorkspace, channel: str, incident: str, content: Any) -> str:
    """The id of the new post. Raises MattermostError."""
    props = {"attachments": [_signed(workspace, incident, content)]}
    answer = _call(workspace, "POST", "/posts", {"channel_id": channel, "message": "", "props": props})
    return str(answer["id"])


def update(workspace: ChatWorkspace, channel: str, ts: str, incident: str, content: Any) -> None:
    """Raises MattermostError."""
    del channel
    props = {"attachments": [_signed(workspace, incident, content)]}
    _call(workspace, "PUT", f"/posts/{ts}/patch", {"message": "", "props": props}, refused="message")


def say(workspace: ChatWorkspace, channel: str, text: str, thread: str = "") -> str:
    """The id of the channel. Raises MattermostError."""
    body = {"channel_id": channel, "message": text, "root_id": thread}
    return str(_call(workspace, "POST", "/posts", body).get("channel_id", ""))


def _call(
    workspace: ChatWorkspace, method: str, path: str, body: Mapping[str, Any], refused: Meaning = "channel"
) -> dict[str, Any]:
    """The answer of the API. `refused`: meaning of 403 and 404, which Mattermost gives for what is not there or may
    not be seen. Raises MattermostError."""
    if not workspace.readable:
        raise MattermostError("token", "its token cannot be decrypted with this DOSSIER_SECRET_KEY")
    headers = {"Authorization": f"Bearer {workspace.token}", "Content-Type": "application/json"}
    url = f"{workspace.url}/api/v4{path}"
    sent = json.dumps(body).encode()
    try:
        reply = outbound.post(url, sent, headers, timeout=TIMEOUT, most=LARGEST, method=method)
    except (AddressRefusedError, UnreachableError) as error:
        raise MattermostError("later", str(error)[:300]) from None
    found = _object(reply.body)
    if not reply.taken:
        raise _meant(reply, found, refused)
    if "id" not in found:
        raise MattermostError("later", f"the answer of {workspace.url} is not one of Mattermost")
    return found


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _meant(reply: outbound.Reply, found: Mapping[str, Any], refused: Meaning) -> MattermostError:
    why = str(found.get("message") or f"response {reply.status}")[:200].rstrip(".")
    if reply.passing:
        seconds = reply.headers.get("retry-after", "")
        return MattermostError("later", why, float(seconds) if seconds.isdigit() else None)
    if reply.status == 401:
        return MattermostError("token", why)
    if reply.status in (403, 404) or (refused == "message" and reply.status == 400):
        return MattermostError(refused, why)
    return MattermostError("refused", why)


# Buttons
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Button:
    """Rights of the secret of a button; `use` differs for each button of each message."""

    workspace: int
    incident: str
    action: str
    use: str


def address_of(workspace: ChatWorkspace) -> str:
    """The address that the server sends buttons and commands to."""
    return f"{settings.PUBLIC_URL}/chat/mattermost/{workspace.name}"


def _signed(workspace: ChatWorkspace, incident: str, content: Mapping[str, Any]) -> dict[str, Any]:
    made = {
        one["id"]: signing.dumps([workspace.pk, incident, one["id"], secrets.token_urlsafe(12)], salt=_SALT)
        for one in content["actions"]
    }
    return mattermost.with_integrations(content, address_of(workspace), made)


def read_button(text: str) -> Button:
    """Raises SignatureExpired, BadSignature of django.core.signing."""
    return Button(*signing.loads(text, salt=_SALT, max_age=BUTTON_LASTS))
