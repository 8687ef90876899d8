"""Commands for workspaces and accounts of a chat. Each change is recorded; tokens and secrets never are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import signing
from django.db import transaction

from incidents.chat.models import ChatAccount, ChatWorkspace
from incidents.chat.services import service_of
from incidents.domain.values import InvalidValueError
from incidents.teams.models import Team
from incidents.teams.references import hold_names
from ingest.commands import record_configuration
from ingest.queries import Context, watermark

KIND: Final = "chat_workspace"
ACCOUNT: Final = "chat_account"
MOST: Final = 20
LINK_LASTS: Final = timedelta(minutes=15)
_SALT: Final = "incidents.chat_link"


class TooManyWorkspacesError(ValueError):
    """Each workspace has a place of its own in the log."""


def workspace_as_json(row: ChatWorkspace) -> dict[str, Any]:
    """A workspace as the log has it."""
    return {
        "name": row.name,
        "platform": row.platform,
        "url": row.url,
        "channel": row.channel,
        "rooms": dict(row.rooms),
        "least": row.least,
        "active": row.active,
        "token": "set",
        "signing_secret": "set",
    }


@transaction.atomic
def create(fields: Mapping[str, Any], context: Context) -> ChatWorkspace:
    """A workspace that has messages of what happens from now on. Raises TooManyWorkspacesError, InvalidValueError."""
    _hold_teams(fields)
    if ChatWorkspace.objects.count() >= MOST:
        raise TooManyWorkspacesError(f"limit of {MOST} workspaces reached")
    row = ChatWorkspace.objects.create(**fields, position=str(watermark()))
    record_configuration(KIND, row.name, None, workspace_as_json(row), context)
    return row


@transaction.atomic
def change(workspace: ChatWorkspace, fields: Mapping[str, Any], context: Context) -> ChatWorkspace:
    """Changed and tried again at once. Switched on again, it begins at the present. Raises InvalidValueError."""
    _hold_teams(fields)
    row = ChatWorkspace.objects.select_for_update().get(pk=workspace.pk)
    before = workspace_as_json(row)
    if fields.get("active") and not row.active:
        row.position = str(watermark())
    for name, value in fields.items():
        setattr(row, name, value)
    row.failures, row.retry_at, row.error = 0, None, ""
    row.save()
    after = workspace_as_json(row)
    for secret in ("token", "signing_secret"):
        if secret in fields:
            after[secret] = "changed"
    record_configuration(KIND, row.name, before, after, context)
    return row


@transaction.atomic
def remove(workspace: ChatWorkspace, context: Context) -> None:
    row = ChatWorkspace.objects.select_for_update().get(pk=workspace.pk)
    record_configuration(KIND, row.name, workspace_as_json(row), None, context)
    row.delete()


def test(workspace: ChatWorkspace, actor: str) -> str:
    """Post a test message to the default channel; the channel's id as the service has it. Raises ChatError."""
    service = service_of(workspace)
    sender = service.MARKUP.escaped(actor.removeprefix("user:"))
    text = f"Test message of Dossier, sent by {sender}. Incidents appear here: {settings.PUBLIC_URL}"
    return service.say(workspace, workspace.channel, text)


def _hold_teams(fields: Mapping[str, Any]) -> None:
    """Keeps the teams that it names from being removed until the transaction ends."""
    hold_names()
    named = set(fields.get("rooms", ()))
    if unknown := named - set(Team.objects.filter(slug__in=named).values_list("slug", flat=True)):
        raise InvalidValueError("rooms", f"name no team: {min(unknown)[:60]}")


# Accounts
# ----------------------------------------------------------------------------------------------------------
def link_url(workspace: ChatWorkspace, chat_user: str, shown: str) -> str:
    """The address at which a signed-in person takes a chat account as theirs; `shown` is its name in the chat."""
    token = signing.dumps([workspace.pk, chat_user, shown], salt=_SALT)
    return f"{settings.PUBLIC_URL}/chat/link/{token}"


def read_link(token: str) -> tuple[ChatWorkspace, str, str]:
    """Workspace, chat account and its name. Raises InvalidValueError for a link that is expired or not ours."""
    try:
        key, chat_user, shown = signing.loads(token, salt=_SALT, max_age=LINK_LASTS)
    except signing.SignatureExpired:
        minutes = int(LINK_LASTS.total_seconds() // 60)
        raise InvalidValueError(
            "link", f"has expired after {minutes} minutes; type `/dossier link` again"
        ) from None
    except signing.BadSignature:
        raise InvalidValueError(
            "link", "is incomplete or from another Dossier; type `/dossier link` again"
        ) from None
    row = ChatWorkspace.objects.filter(pk=key, active=True).first()
    if row is None:
        raise InvalidValueError("link", "is of a workspace that was removed or is switched off")
    return row, chat_user, shown


@transaction.atomic
def link(workspace: ChatWorkspace, chat_user: str, username: str, context: Context) -> ChatAccount:
    """Let a chat account act for a person; it ends what it acted for before."""
    users = get_user_model()
    user = users.objects.get(**{users.USERNAME_FIELD: username})
    known = ChatAccount.objects.select_for_update().filter(workspace=workspace, chat_user=chat_user).first()
    before = None if known is None else _account_as_json(known)
    row, _ = ChatAccount.objects.update_or_create(
        workspace=workspace, chat_user=chat_user, defaults={"user": user}
    )
    record_configuration(ACCOUNT, f"{workspace.name}/{chat_user}", before, _account_as_json(row), context)
    return row


@transaction.atomic
def unlink(row: ChatAccount, context: Context) -> None:
    key = f"{row.workspace.name}/{row.chat_user}"
    record_configuration(ACCOUNT, key, _account_as_json(row), None, context)
    row.delete()


def _account_as_json(row: ChatAccount) -> dict[str, Any]:
    return {"workspace": row.workspace.name, "chat_user": row.chat_user, "person": row.user.get_username()}
