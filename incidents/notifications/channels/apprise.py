"""Messages by Apprise: chat, SMS, voice, push, through accounts of the user's own.

Apprise says only whether it worked; why it did not it writes into its log, where its plugins name the status that the
service answered. What is read there is that number: the rest may hold secrets.
"""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from incidents.domain.notifications import delivery
from incidents.domain.notifications.delivery import Reply
from incidents.domain.notifications.message import Message
from incidents.domain.values import InvalidValueError
from incidents.notifications.channels.connection_guard import guarded

if TYPE_CHECKING:
    from apprise import NotifyType
    from apprise.plugins.base import NotifyBase

    from incidents.notifications.queue import Outgoing

TIMEOUT = 10.0
"""Seconds for a connection, and again for an answer; some services are asked several times for one message."""
SERVICES: Final = frozenset(
    """
    46elks atalk azure bark barks betterstack brevo bulksms bulkvs chanify clickatell clicksend cliq cm d7sms
    dingtalk discord elks exotel feishu firehydrant flock form forms freemobile gchat goalert goalerts gorush
    gorushs gotify gotifys groupme guilded gupshup hassio hassios httpsms humhub humhubs ifttt ilert
    incidentio infobip jira join json jsons kaleyra kavenegar klr kook kudosity lark line mailersend mailgun
    mailto mailtos mastodon mastodons matrix matrixs misskey misskeys mmost mmosts mobilemsg msg91 msgbird
    ncloud nclouds nctalk nctalks nexmo notica noticas notifiarr notifyre ntfy ntfys o365 octopush onesignal
    opsgenie pagerduty pagertree pbul plivo postmark pover prowl psafer psafers push pushdeer pushdeers pushed
    pushme pushplus pushy resend revolt ringc rocket rockets ryver schan sendgrid sendpulse ses seven signal
    signals signl4 simplepush sinch slack smseagle smseagles smsmanager smtp2go sns sparkpost spike splunk
    spugpush spush squadcast synology synologys telesign telnyx tgram threema toot toots twilio twist viber
    victorops voipms vonage webex wechat wecom wecombot whapi whatsapp workflow workflows wxpusher wxteams
    xmatters xml xmls zcliq zohocliq zoom zulip
    """.split()  # noqa: SIM905  a list would be a screen long
)
"""Schemes of services that are reached over HTTPS or SMTP. Left out: those that show something on the server's own
screen, start a program, read a file, or speak a protocol that never says whether a message arrived."""
_FILES = re.compile(r"[?&](keyfile|pgpkey|pgp|template|attach|cert|key_file|pem)=", re.IGNORECASE)
_STATUS = re.compile(r"\berror[=: ]+(\d{3})\b")
_SHORT = 250
"""Characters of a body beyond which a service gets the short form."""


def check_service(address: str) -> str:
    """The name of the service that an address is for. Raises InvalidValueError, without the address in it."""
    scheme = address.partition("://")[0].lower()
    if "://" not in address:
        raise InvalidValueError(
            "address", "must be an Apprise URL such as slack://…, tgram://… or twilio://…"
        )
    if scheme not in SERVICES:
        raise InvalidValueError(
            "address", f"{scheme[:30]} is no supported service; the documentation lists the supported ones"
        )
    if _FILES.search(unquote(address)):
        raise InvalidValueError("address", "must not refer to a file of the server")
    plugin = _plugin(address)
    if plugin is None:
        raise InvalidValueError(
            "address",
            f"is not a valid Apprise URL for {scheme[:30]}; see the Apprise documentation of the service",
        )
    return str(plugin.service_name)


def _plugin(address: str) -> NotifyBase | None:
    from apprise import Apprise, AppriseAsset, PersistentStoreMode
    from apprise.plugins.base import NotifyBase

    _load()
    asset = AppriseAsset(
        app_id="Dossier", app_desc="Dossier", secure_logging=True, storage_mode=PersistentStoreMode.MEMORY
    )
    with guarded(), _captured_errors():
        try:
            plugin = Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
        except (OSError, ValueError, TypeError, AttributeError):
            return None
    return plugin if isinstance(plugin, NotifyBase) else None


@cache
def _load() -> None:
    """All plugins: most of a second, which only those who send wait for; not guarded, so that Python may import."""
    from apprise.manager_plugins import NotificationManager

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some of their imports are old
        NotificationManager().load_modules()  # type: ignore[no-untyped-call]


def send_service(outgoing: Outgoing) -> Reply:
    try:
        check_service(outgoing.address)
    except InvalidValueError as error:
        return delivery.refused(f"the address {error.reason}")
    plugin = _plugin(outgoing.address)
    if plugin is None:
        return delivery.refused("the address is invalid")
    plugin.redirects = False
    plugin.socket_connect_timeout = plugin.socket_read_timeout = TIMEOUT
    message = outgoing.message
    short = plugin.body_maxlen < _SHORT * 4 or not plugin.title_maxlen
    body, title = (message.short, "") if short else (message.text, message.subject)
    _set_priority(plugin, outgoing.address, message)
    with guarded() as stopped, _captured_errors() as errors:
        try:
            taken = bool(plugin.notify(body=body, title=title, notify_type=_type(message)))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            taken = False
            errors.append(f"{type(error).__name__}")
    if taken:
        return Reply("taken", f"accepted by {plugin.service_name}")
    return _judged(str(plugin.service_name), errors, stopped)


_PRIORITIES: Final[Mapping[str, Mapping[str | None, int | str]]] = MappingProxyType(
    {
        "gotify": {"critical": 10, "error": 8, "warning": 5, "info": 3, None: 3},
        "ntfy": {"critical": "max", "error": "high", "warning": "default", "info": "low", None: "low"},
        "pover": {"critical": 1, "error": 1, "warning": 0, "info": -1, None: -1},
    }
)
"""Loudness of a message, by scheme and severity, for the services whose priority is not that of the type."""


def _set_priority(plugin: NotifyBase, address: str, message: Message) -> None:
    """Unless the address says one itself, for everything."""
    scheme = address.partition("://")[0].lower()
    known = _PRIORITIES.get("ntfy" if scheme == "ntfys" else "gotify" if scheme == "gotifys" else scheme)
    if known is not None and "priority=" not in address:
        plugin.priority = known[message.severity]  # type: ignore[attr-defined]


def _type(message: Message) -> NotifyType:
    """Services show it as a colour, a sign or a priority."""
    from apprise import NotifyType

    if message.severity is None:
        return NotifyType.INFO if message.body["type"] == "test" else NotifyType.SUCCESS
    return NotifyType(
        {"critical": "failure", "error": "failure", "warning": "warning"}.get(message.severity, "info")
    )


def _judged(service: str, errors: list[str], stopped: list[str]) -> Reply:
    if stopped:
        return delivery.refused(f"not sent to {service}: {stopped[0]}")
    status = next((int(found[1]) for line in reversed(errors) if (found := _STATUS.search(line))), None)
    if status is None:
        return delivery.no_answer(f"no response from {service}")
    reply = delivery.http(status, {}, "", datetime.now(UTC))
    return (
        Reply(reply.kind, f"{service} responded {status}")
        if reply.kind != "taken"
        else delivery.refused(f"{service} responded {status} but rejected the message")
    )


class _Listener(logging.Handler):
    """Lines that one thread writes, while the others write theirs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.thread, self.lines = threading.get_ident(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self.thread:
            self.lines.append(record.getMessage())


@contextmanager
def _captured_errors() -> Iterator[list[str]]:
    log = logging.getLogger("apprise")
    # What it says may hold secrets, and below warnings does: whole addresses.
    log.propagate = False
    log.setLevel(logging.WARNING)
    listener = _Listener()
    log.addHandler(listener)
    try:
        yield listener.lines
    finally:
        log.removeHandler(listener)
