"""Requests to Slack's Web API (https://docs.slack.dev/apis/web-api), and what its errors mean for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.error import URLError

from django.conf import settings
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from incidents.chat.models import ChatWorkspace
from incidents.notifications.channels.connection_guard import guarded

TIMEOUT: Final = 8
"""Seconds; a button has to be answered within three, of which opening a dialog is a part."""
Meaning = Literal["later", "token", "channel", "message", "refused"]
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
_CURES: Final[Mapping[Meaning, str]] = {
    "token": "install the app again and enter its bot token",
    "channel": "invite the bot to the channel, or correct the channel",
}


class SlackError(Exception):
    """A request that failed. `meaning`: try later, the token is wrong, the channel is, the message is gone, or it is
    refused for good. `wait`: seconds that Slack wants."""

    def __init__(self, meaning: Meaning, why: str, wait: float | None = None) -> None:
        cure = _CURES.get(meaning)
        super().__init__(f"{why}: {cure}" if cure else why)
        self.meaning: Final = meaning
        self.wait: Final = wait


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
