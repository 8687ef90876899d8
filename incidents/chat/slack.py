"""Requests to Slack's Web API (https://docs.slack.dev/apis/web-api), and what its errors mean for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.error import URLError

from django.conf import settings
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from incidents.chat.errors import ChatError, Meaning
from incidents.chat.models import ChatWorkspace
from incidents.domain import chat
from incidents.domain.incident.state import Incident
from incidents.notifications.channels.connection_guard import guarded

TIMEOUT: Final = 8
"""Seconds; a button has to be answered within three, of which opening a dialog is a part."""
_MEANINGS: Final[Mapping[str, Meaning]] = {
    **dict.fromkeys(("ratelimited", "internal_error", "fatal_error", "service_unavailable"), "later"),
    **dict.fromkeys(
        ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "no_permission",
         "missing_scope", "not_allowed_token_type", "org_login_required", "access_denied"), "token",
    ),
    **dict.fromkeys(
        ("channel_not_found", "not_in_channel", "is_archived", "restricted_action", "restricted_action_thread_locked",
         "restricted_action_read_only_channel", "is_inactive"), "channel",
    ),
    **dict.fromkeys(("message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"), "message"),
}  # fmt: skip
MARKUP: Final = chat.SLACK_MARKUP


class SlackError(ChatError):
    """A request to Slack that failed."""

    cures: ClassVar[Mapping[Meaning, str]] = {
        "token": "install the app again and enter its bot token",
        "channel": "invite the bot to the channel, or correct the channel",
    }


def content(it: Incident, url: str) -> Any:
    """Blocks of an incident, and the line for clients that show none."""
    return [chat.message(it, url), chat.fallback(it)]


def post(workspace: ChatWorkspace, channel: str, incident: str, content: Any) -> str:
    """The `ts` of the new message. Raises SlackError."""
    del incident
    blocks, text = content
    answer = call(
        workspace, "chat.postMessage", channel=channel, blocks=blocks, text=text, unfurl_links=False
    )
    return str(answer["ts"])


def update(workspace: ChatWorkspace, channel: str, ts: str, incident: str, content: Any) -> None:
    """Raises SlackError."""
    del incident
    blocks, text = content
    call(workspace, "chat.update", channel=channel, ts=ts, blocks=blocks, text=text)


def say(workspace: ChatWorkspace, channel: str, text: str, thread: str = "") -> str:
    """The id of the channel. Raises SlackError."""
    place = {"thread_ts": thread} if thread else {}
    return str(call(workspace, "chat.postMessage", channel=channel, text=text, **place).get("channel", ""))


def call(workspace: ChatWorkspace, method: str, **payload: Any) -> Mapping[str, Any]:
    """The answer to a method of the API, such as `chat.postMessage`. Raises SlackError."""
    if not workspace.readable:
        raise SlackError("token", "its token cannot be decrypted with this DOSSIER_SECRET_KEY")
    client = WebClient(workspace.token, settings.SLACK_API_URL, timeout=TIMEOUT, retry_handlers=[])
    try:
        with guarded() as blocked:
            answer = client.api_call(method, json=payload)
    except SlackApiError as error:
        raise _meant(error) from None
    except (SlackClientError, URLError, OSError, ValueError) as error:
        raise SlackError("later", blocked[0] if blocked else f"no answer from Slack: {error}"[:300]) from None
    return answer.data if isinstance(answer.data, dict) else {}


def _meant(error: SlackApiError) -> SlackError:
    response = error.response
    code = str(response.get("error") or f"response {response.status_code}")[:100]
    if response.status_code == 429 or response.status_code >= 500:
        seconds = str(response.headers.get("Retry-After") or response.headers.get("retry-after") or "")
        return SlackError("later", code, float(seconds) if seconds.isdigit() else None)
    return SlackError(_MEANINGS.get(code, "refused"), code)
