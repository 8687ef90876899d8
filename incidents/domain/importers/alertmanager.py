"""The configuration of an Alertmanager: routes, receivers, inhibition and mute times.

Its route tree is tried as ours is, so it becomes one rule a route. A receiver becomes a channel for each of its
integrations and an escalation policy that tells them at once, and again each `repeat_interval` until somebody
acknowledges. Times at which a route mutes become maintenance in which incidents are opened and page no one.
(prometheus.io/docs/alerting/latest/configuration)
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from incidents.domain.config.yaml import InvalidConfigurationError, Path, values, written
from incidents.domain.escalation.policy import LONGEST, MOST_REPEATS, SHORTEST_WAIT
from incidents.domain.importers.draft import (
    DAY,
    WEEK,
    Draft,
    InvalidImportError,
    clock,
    minutes,
)
from incidents.domain.routing.rules import DEEPEST, read_matchers
from incidents.domain.suppression.rules import Matcher, matchers_from
from incidents.domain.values import InvalidValueError, read_zone

SAME: Final = {
    "email_configs": ("email", "to", ""),
    "webhook_configs": ("webhook", "url", ""),
    "slack_configs": ("apprise", "api_url", "slack://TOKEN_A/TOKEN_B/TOKEN_C/#channel"),
    "discord_configs": ("apprise", "webhook_url", "discord://WEBHOOK_ID/WEBHOOK_TOKEN"),
    "msteams_configs": ("apprise", "webhook_url", "workflows://HOST/WORKFLOW/SIGNATURE"),
    "msteamsv2_configs": ("apprise", "webhook_url", "workflows://HOST/WORKFLOW/SIGNATURE"),
    "mattermost_configs": ("apprise", "", "mmosts://HOST/TOKEN"),
    "rocketchat_configs": ("apprise", "", "rockets://USER:PASSWORD@HOST/#channel"),
    "telegram_configs": ("apprise", "", "tgram://TOKEN/CHAT"),
    "pagerduty_configs": ("apprise", "", "pagerduty://INTEGRATION_KEY@API_KEY"),
    "opsgenie_configs": ("apprise", "", "opsgenie://API_KEY"),
    "pushover_configs": ("apprise", "", "pover://USER@TOKEN"),
    "victorops_configs": ("apprise", "", "victorops://API_KEY/ROUTING_KEY"),
    "webex_configs": ("apprise", "", "webex://WEBHOOK_TOKEN"),
    "sns_configs": ("apprise", "", "sns://ACCESS_KEY/SECRET_KEY/REGION/TOPIC"),
    "wechat_configs": ("apprise", "", "wecom://CORP_ID/SECRET/AGENT"),
    "jira_configs": ("apprise", "", "jira://API_KEY"),
}
"""Kind of channel by integration, which field of it is the address, and the address's form where none is."""
TAKEN_OVER: Final = frozenset(("api_url", "webhook_url", "url", "to", "channel", "send_resolved"))
_VALUE: Final = re.compile(r"\.(?:Common|Group)?(Annotation|Label)s\.([A-Za-z_][A-Za-z0-9_]*)")
_DEFINED: Final = re.compile(r"\{\{-?\s*template\s+\"([^\"]+)\"")
IN_MESSAGES: Final[Mapping[str, str]] = {
    "summary": "title",
    "message": "title",
    "alertname": "title",
    "description": "description",
    "severity": "severity",
    "instance": "component",
    "runbook": "link",
    "runbook_url": "link",
    "dashboard": "link",
    "dashboard_url": "link",
}
"""Part of a message by label or annotation."""
OF_GROUPS: Final[Mapping[str, str]] = {
    ".GeneratorURL": "link",
    ".ExternalURL": "link",
    ".Alerts": "count of alerts",
    ".Status": "state",
    ".StartsAt": "time of the opening",
}
USUAL_REPEAT: Final = "4h"
_UNITS: Final = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_LENGTH: Final = re.compile(r"([0-9]+)(ms|[ywdhms])")
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EPOCH: Final = datetime(2026, 1, 5)  # noqa: DTZ001  # a Monday: the first week of what recurs, in local time
NO_PAGE: Final = (
    "it has no integration, so Alertmanager drops its alerts; Dossier would open incidents: drop them at"
)


@dataclass(slots=True)
class _Reader:
    """One import: what is read, the lines of it, and what it becomes."""

    config: Mapping[str, Any]
    lines: Mapping[Path, int]
    integration: str
    draft: Draft = field(default_factory=Draft)
    policies: dict[tuple[str, int], str] = field(default_factory=dict)
    channels: dict[str, list[str]] = field(default_factory=dict)
    muted: dict[tuple[str, ...], list[tuple[Matcher, ...]]] = field(default_factory=dict)

    def at(self, path: Path) -> str:
        known = path
        while known not in self.lines:
            known = known[:-1]
        return f"line {self.lines[known]}: {written(path)}"

    def leave(self, path: Path, reason: str) -> None:
        self.draft.leave(self.at(path), reason)

    def objects(
        self, holder: Mapping[str, Any], name: str, path: Path
    ) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for place, one in enumerate(self.list(holder, name, path)):
            here = (*path, name, place)
            if not isinstance(one, Mapping):
                raise InvalidImportError(f"{self.at(here)}: must be a mapping")
            yield here, one

    def list(self, holder: Mapping[str, Any], name: str, path: Path) -> Sequence[Any]:
        value = holder.get(name)
        if value is not None and not isinstance(value, list):
            raise InvalidImportError(f"{self.at((*path, name))}: must be a list")
        return value or []


def alertmanager(text: str, integration: str = "") -> Draft:
    """`alertmanager.yml` as a configuration file of Dossier's; with `integration`, the routes concern only what comes
    with this key. Raises InvalidImportError."""
    try:
        config, lines = values(text)
    except InvalidConfigurationError as error:
        raise InvalidImportError(str(error)) from None
    if not isinstance(config, Mapping) or not isinstance(config.get("route"), Mapping):
        raise InvalidImportError("line 1: is no configuration of an Alertmanager: it has no `route`")
    reader = _Reader(config, lines, integration)
    _receivers(reader)
    _route(reader, config["route"], ("route",), _Above())
    _mutes(reader)
    _inhibitions(reader)
    for name, reason in (
        (
            "templates",
            "texts are Dossier's own: title, description, severity, component, labels, links; "
            "webhooks carry every label and annotation",
        ),
        (
            "global",
            "mail is sent by the server in DOSSIER_EMAIL_URL; addresses of services stand in each channel",
        ),
    ):
        if config.get(name):
            reader.leave((name,), reason)
    return reader.draft


# Receivers
# ----------------------------------------------------------------------------------------------------------
def _receivers(reader: _Reader) -> None:
    for path, receiver in reader.objects(reader.config, "receivers", ()):
        name = receiver.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidImportError(f"{reader.at((*path, 'name'))}: must be the name of the receiver")
        names = [
            _channel(reader, name, kind, place, one)
            for kind in receiver
            if kind != "name"
            for place, one in reader.objects(receiver, kind, path)
        ]
        reader.channels[name] = [one for one in names if one]


def _channel(reader: _Reader, receiver: str, kind: str, path: Path, config: Mapping[str, Any]) -> str:
    if kind not in SAME:
        reader.leave(path, f"no channel type for {kind}; add a channel under Settings, Channels")
        return ""
    channel, address, form = SAME[kind]
    name = reader.draft.name("channels", f"{receiver}-{kind.removesuffix('_configs')}")
    given = str(config.get(address) or "") if address else ""
    if channel == "apprise" and config.get("channel") and given.startswith("https://hooks.slack.com/"):
        given += f"?to={quote(str(config['channel']), safe='')}"
    reader.draft.add(
        "channels",
        {
            "name": name,
            "kind": channel,
            "address": reader.draft.secret("CHANNEL_ADDRESS", given, name),
        },
    )
    if not given:
        what = (
            f"{address} is in a file or in `global`"
            if address
            else "the service has an address of its own form"
        )
        expected = f", such as {form}" if form else ""
        reader.leave(path, f"{what}: set {_variable(name)}{expected}")
    own = {option: _templated(str(config[option])) for option in sorted(set(config) - TAKEN_OVER)}
    for option, templated in own.items():
        if templated:
            reader.leave((*path, option), templated)
    if plain := [option for option, templated in own.items() if not templated]:
        reader.leave(path, f"not translated: {', '.join(plain)}")
    if kind == "webhook_configs":
        reader.leave(path, "its body is Dossier's (docs: notifications), not Alertmanager's")
    return name


def _templated(text: str) -> str:
    """Parts of a message that have a template's values; empty for a text that is no template."""
    if "{{" not in text:
        return ""
    known = {where for _, name in _VALUE.findall(text) if (where := IN_MESSAGES.get(name))}
    others = {f"{kind.lower()} {name}" for kind, name in _VALUE.findall(text) if name not in IN_MESSAGES}
    known |= {where for name, where in OF_GROUPS.items() if name in text}
    parts = [f"in messages as {', '.join(sorted(known))}"] if known else []
    if others:
        parts.append(f"{', '.join(sorted(others))}: in messages with labels and description")
    if defined := sorted(set(_DEFINED.findall(text))):
        parts.append(f"template {', '.join(defined)} is not read")
    return f"text is Dossier's own; {'; '.join(parts) or 'it uses no value of alerts'}"


def _variable(channel: str) -> str:
    return Draft().secret("CHANNEL_ADDRESS", "", channel)[2:-1]


def _policy(reader: _Reader, receiver: str, repeat: int, path: Path) -> str | None:
    """The policy that tells a receiver; None where the receiver tells nobody."""
    if receiver not in reader.channels:
        raise InvalidImportError(f"{reader.at((*path, 'receiver'))}: no receiver {receiver!r}")
    if not (channels := reader.channels[receiver]):
        return None
    key = (receiver, repeat)
    if key not in reader.policies:
        slug = reader.draft.name("escalation_policies", receiver)
        reader.policies[key] = slug
        reader.draft.add(
            "escalation_policies",
            {
                "slug": slug,
                "name": receiver[:120],
                "steps": [{"after": 0, "actions": [{"channel": one} for one in channels]}],
                "repeats": MOST_REPEATS,
                "repeat_after": min(max(repeat, SHORTEST_WAIT), LONGEST),
            },
        )
    return reader.policies[key]


# Routes
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Above:
    """Settings that a route inherits."""

    parent: str | None = None
    receiver: str = ""
    group_by: tuple[str, ...] = ()
    repeat: int = 0
    matchers: tuple[Matcher, ...] = ()
    depth: int = 1


def _route(
    reader: _Reader, route: Mapping[str, Any], path: Path, above: _Above, order: int | None = None
) -> None:
    own = _matchers(reader, route, path, ("match", "match_re", "matchers"))
    receiver = str(route.get("receiver") or above.receiver)
    repeat = _seconds(reader, route, "repeat_interval", path) or above.repeat or _length(USUAL_REPEAT)
    policy = _policy(reader, receiver, repeat, path)
    group = route.get("group_by")
    group_by = above.group_by if group is None else tuple(map(str, reader.list(route, "group_by", path)))
    if policy is None:
        reader.leave(path, f"receiver `{receiver}`: {NO_PAGE} the sender or silence {_text(own) or 'them'}")
    if route.get("continue") and own:
        reader.leave(
            (*path, "continue"),
            "an incident has one route, so alerts go here and not on to the next; name both channels in one policy",
        )
    for name in ("group_wait", "group_interval"):
        if name in route:
            reader.leave((*path, name), "an incident pages when it opens, and bundles are set by each person")
    name = reader.draft.name("routes", "-".join(one.value for one in own) or receiver or "alertmanager")
    when: dict[str, Any] = {"labels": [str(one) for one in own]} if own else {}
    if above.parent is None and reader.integration:
        when["integration"] = reader.integration
    reader.draft.add(
        "routes",
        {
            "name": name,
            "parent": above.parent,
            "order": order,
            "pattern": "",
            "when": when,
            "policy": policy,
            "grouping": {"by": list(group_by)} if group_by and group_by != above.group_by else None,
        },
    )
    every = (*above.matchers, *own)
    _note_mutes(reader, route, path, every)
    inner = list(reader.objects(route, "routes", path))
    if inner and above.depth >= DEEPEST:
        reader.leave((*path, "routes"), f"routes are at most {DEEPEST} deep")
        return
    below = _Above(name, receiver, group_by, repeat, every, above.depth + 1)
    for place, (here, one) in enumerate(inner):
        _route(reader, one, here, below, place + 1)


def _matchers(
    reader: _Reader, holder: Mapping[str, Any], path: Path, names: Sequence[str]
) -> tuple[Matcher, ...]:
    found: list[dict[str, Any]] = []
    for name in names:
        value, here = holder.get(name), (*path, name)
        if value is None:
            continue
        if isinstance(value, Mapping):
            found += [
                {"name": label, "value": str(text), "isRegex": name.endswith("_re"), "isEqual": True}
                for label, text in value.items()
            ]
        elif isinstance(value, list):
            found += [one for text in value for one in _read(reader, here, str(text))]
        else:
            raise InvalidImportError(f"{reader.at(here)}: must be a list or a mapping")
    if not found:
        return ()
    try:
        return matchers_from(found)
    except InvalidValueError as error:
        raise InvalidImportError(f"{reader.at(path)}: {error}") from None


def _read(reader: _Reader, path: Path, text: str) -> list[dict[str, Any]]:
    try:
        return read_matchers(text)
    except InvalidValueError as error:
        raise InvalidImportError(f"{reader.at(path)}: {error}") from None


def _text(matchers: Sequence[Matcher]) -> str:
    return ", ".join(map(str, matchers))


def _seconds(reader: _Reader, holder: Mapping[str, Any], name: str, path: Path) -> int:
    if name not in holder:
        return 0
    try:
        return _length(str(holder[name]))
    except ValueError:
        raise InvalidImportError(
            f"{reader.at((*path, name))}: must be a length such as 4h or 1h30m"
        ) from None


def _length(text: str) -> int:
    """Seconds of a length as Prometheus writes it. Raises ValueError."""
    if "".join(found[0] for found in _LENGTH.finditer(text)) != text or not text:
        raise ValueError(text)
    return int(sum(int(found[1]) * _UNITS[found[2]] for found in _LENGTH.finditer(text)))


# Mute times
# ----------------------------------------------------------------------------------------------------------
def _note_mutes(reader: _Reader, route: Mapping[str, Any], path: Path, matchers: tuple[Matcher, ...]) -> None:
    for name in ("mute_time_intervals", "active_time_intervals"):
        intervals = tuple(map(str, reader.list(route, name, path)))
        if not intervals:
            continue
        if not matchers:
            reader.leave(
                (*path, name), "it would mute every alert; plan maintenance of the affected components"
            )
            continue
        reader.muted.setdefault((name, *intervals), []).append(matchers)


def _mutes(reader: _Reader) -> None:
    """Maintenance for the times at which routes mute, and for those at which they are not active."""
    named: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for section in ("time_intervals", "mute_time_intervals"):
        for path, one in reader.objects(reader.config, section, ()):
            named[str(one.get("name"))] = (path, one)
    for (kind, *intervals), users in reader.muted.items():
        missing = [one for one in intervals if one not in named]
        if missing:
            raise InvalidImportError(f"line 1: {kind}: no time interval {missing[0]!r}")
        try:
            weeks = [week for one in intervals for week in _weeks(reader, *named[one])]
        except _NotWeeklyError as error:
            reader.leave(error.path, f"{error.reason}; plan maintenance for it")
            continue
        by_zone: dict[str, list[tuple[int, int]]] = {}
        for zone, spans in weeks:
            by_zone.setdefault(zone, []).extend(spans)
        if kind == "active_time_intervals" and len(by_zone) > 1:
            reader.leave(
                named[intervals[0]][0], "active times of several zones; plan maintenance for the rest"
            )
            continue
        for zone, spans in by_zone.items():
            muted = joined(spans) if kind == "mute_time_intervals" else outside(joined(spans))
            for matchers in users:
                _maintain(reader, "-".join(intervals), zone, muted, matchers)


class _NotWeeklyError(ValueError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = path, reason


def _weeks(
    reader: _Reader, path: Path, named: Mapping[str, Any]
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Zone and minutes of the week of each span of a time interval."""
    for here, one in reader.objects(named, "time_intervals", path):
        if other := sorted(set(one) - {"times", "weekdays", "location"}):
            raise _NotWeeklyError(
                here, f"{', '.join(other)} cannot be translated: only weekdays and times can"
            )
        zone = str(one.get("location") or "UTC")
        try:
            read_zone("location", zone)
        except InvalidValueError as error:
            raise InvalidImportError(f"{reader.at((*here, 'location'))}: {error.reason}") from None
        days = [day for text in reader.list(one, "weekdays", here) for day in _days(reader, here, str(text))]
        parts = [
            (
                minutes(str(part.get("start_time")), reader.at((*place, "start_time"))),
                minutes(str(part.get("end_time")), reader.at((*place, "end_time"))),
            )
            for place, part in reader.objects(one, "times", here)
        ]
        yield (
            zone,
            [
                (day * DAY + start, day * DAY + end)
                for day in days or range(7)
                for start, end in parts or [(0, DAY)]
            ],
        )


def _days(reader: _Reader, path: Path, text: str) -> list[int]:
    """Days from Monday (0); a range is within a week that begins on Sunday."""
    first, _, last = (part.strip() for part in text.lower().partition(":"))
    try:
        begin, end = (_DAYS.index(part) for part in (first, last or first))
    except ValueError:
        begin, end = 1, 0
    if (end + 1) % 7 < (begin + 1) % 7:
        raise InvalidImportError(
            f"{reader.at((*path, 'weekdays'))}: must be such as monday:friday, not {text!r}"
        )
    return [(begin + more) % 7 for more in range((end + 1) % 7 - (begin + 1) % 7 + 1)]


def joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of minutes of the week in order, those that touch as one.

    >>> joined([(60, 120), (0, 60), (300, 360)])
    [(0, 120), (300, 360)]
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def outside(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The rest of the week; one span where it goes on from its end to its beginning.

    >>> outside([(540, 1020)])
    [(1020, 10620)]
    """
    if not spans:
        return [(0, WEEK)]
    gaps = [(end, start) for (_, end), (start, _) in itertools.pairwise(spans)]
    last = (spans[-1][1], WEEK + spans[0][0])
    return [*gaps, last] if last[1] > last[0] else gaps


def _maintain(
    reader: _Reader, name: str, zone: str, spans: Sequence[tuple[int, int]], matchers: tuple[Matcher, ...]
) -> None:
    """A window for each length and time of day, on all days that have it."""
    same: dict[tuple[int, int], list[int]] = {}
    for start, end in spans:
        same.setdefault((start % DAY, end - start), []).append(start // DAY)
    for (start, length), days in same.items():
        first = EPOCH + timedelta(days=days[0], minutes=start)
        where = ZoneInfo(zone)
        reader.draft.add(
            "maintenance",
            {
                "slug": reader.draft.name("maintenance", f"{name}-{clock(start)}"),
                "reason": f"Time interval {name} of Alertmanager",
                "matchers": [str(one) for one in matchers],
                "starts_at": first.replace(tzinfo=where).isoformat(),
                "ends_at": (first + timedelta(minutes=length)).replace(tzinfo=where).isoformat(),
                "rule": f"FREQ=WEEKLY;BYDAY={','.join(_DAYS[day % 7][:2].upper() for day in days)}",
                "time_zone": zone,
                "mode": "quiet",
            },
        )


# Inhibition
# ----------------------------------------------------------------------------------------------------------
def _inhibitions(reader: _Reader) -> None:
    for path, rule in reader.objects(reader.config, "inhibit_rules", ()):
        sides = [
            _matchers(reader, rule, path, (f"{side}_match", f"{side}_match_re", f"{side}_matchers"))
            for side in ("source", "target")
        ]
        if not all(sides):
            reader.leave(path, "a side without a matcher would mute everything")
            continue
        text = "-".join(one.value for one in (*sides[0][:2], *sides[1][:2]))
        reader.draft.add(
            "inhibitions",
            {
                "slug": reader.draft.name("inhibitions", text),
                "source_matchers": [str(one) for one in sides[0]],
                "target_matchers": [str(one) for one in sides[1]],
                "equal": list(map(str, reader.list(rule, "equal", path))),
            },
        )
