"""Chat services by the platform of a workspace: each posts, updates and says in its own wire format."""

from __future__ import annotations

from typing import Any, Protocol

from incidents.chat import mattermost, slack
from incidents.chat.models import ChatWorkspace
from incidents.domain.chat import Markup
from incidents.domain.incident.state import Incident


class ChatService(Protocol):
    """Every request raises ChatError."""

    MARKUP: Markup

    def content(self, it: Incident, url: str) -> Any:
        """Content of the message of an incident as JSON; `url` is its page."""

    def post(self, workspace: ChatWorkspace, channel: str, incident: str, content: Any) -> str:
        """The id of the new message of an incident."""

    def update(self, workspace: ChatWorkspace, channel: str, ts: str, incident: str, content: Any) -> None:
        """Shows other content in the message `ts`."""

    def say(self, workspace: ChatWorkspace, channel: str, text: str, thread: str = "") -> str:
        """The id of the channel that has the text, or its thread of the message `thread`."""


def service_of(workspace: ChatWorkspace) -> ChatService:
    return mattermost if workspace.platform == ChatWorkspace.Platform.MATTERMOST else slack
