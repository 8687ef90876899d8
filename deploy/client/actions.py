"""The commands: what each asks of the server, and the lines that it prints."""

from __future__ import annotations

import getpass
import json
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

from . import settings, text
from .errors import FAILED, USAGE, ClientError, RunNotFinishedError
from .server import Server, incident_path
from .settings import Account
from .text import Screen

UNRESOLVED = ("open", "acknowledged", "snoozed")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
POLL, SLOWEST = 0.2, 2.0  # seconds between two looks at a run


def show_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def show_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def note(line: str) -> None:
    print(line, file=sys.stderr)


# Account


def login(given: Namespace, _: Screen) -> None:
    url = settings.address(given.url)
    key = getpass.getpass(f"API key for {url}: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise ClientError("no key given", USAGE)
    account = Account(url, key.strip(), given.user or "")
    Server(account).get("incidents", [("limit", "1")])
    path = settings.save_account(account)
    print(f"Logged in to {url}; stored in {path}")
    if account.is_plain():
        note("warning: without https the key crosses the network in plain text")


def logout(_: Namespace, __: Screen) -> None:
    with suppress(FileNotFoundError):
        settings.settings_path().unlink()
    print("Logged out. The key itself stays valid: revoke it under Settings, Integrations.")


# Reading


def list_incidents(given: Namespace, screen: Screen, server: Server, account: Account) -> None:
    query = [
        (name, value)
        for name in ("severity", "team", "component", "service")
        for value in getattr(given, name)
    ]
    owners = [*given.owner, *([person("me", account)] if given.mine else [])]
    states = given.state or (() if given.all or given.as_of else UNRESOLVED)
    query += [("owner", "" if one == "-" else person(one, account)) for one in owners]
    query += [("state", one) for one in states]
    query += [("search", " ".join(given.search))] if given.search else []
    query += [("order", given.order)] if given.order else []
    query += [("as_of", given.as_of)] if given.as_of else []
    found, more = server.incidents(query, given.limit)
    if given.json:
        return show_json(found)
    if not found:
        return note("No incident fits.")
    show_lines(text.incident_table(found, screen))
    if more:
        note(f"The first {given.limit}; --limit shows more.")
    return None


def show(given: Namespace, screen: Screen, server: Server, _: Account) -> None:
    moment = [("as_of", given.as_of)] if given.as_of else []
    everything = [("all", "true")] if given.all else []
    incident = server.incident(given.incident, query=moment)
    evidence = server.incident(given.incident, "evidence", [*moment, *everything])["results"]
    events = server.incident(given.incident, "events", [*moment, *everything])["results"]
    alerts = server.incident(given.incident, "alerts", moment)
    if given.json:
        return show_json({**incident, "evidence": evidence, "events": events, "alerts": alerts["results"]})
    show_lines(text.incident_lines(incident, screen))
    show_lines(text.opinion_lines(incident["opinions"], screen))
    show_lines(text.alert_lines(alerts, screen))
    show_lines(text.evidence_lines(evidence, screen, everything=given.all))
    show_lines(text.timeline_lines(events, screen, everything=given.all))
    return None


def on_call(given: Namespace, screen: Screen, server: Server, _: Account) -> None:
    query = [("at", given.at)] if given.at else []
    if given.schedule:
        found = [server.get(f"schedules/{quote(given.schedule, safe='')}/on_call", query)]
    else:
        found = server.get("on_call", query)["results"]
    if given.json:
        return show_json(found)
    if not found:
        return note("No on-call schedule yet.")
    rows = [(one["schedule"], one["name"], ", ".join(one["people"]) or "nobody") for one in found]
    return show_lines(text.table(("SCHEDULE", "NAME", "ON CALL"), rows, screen, optional=("NAME",)))


def silences(given: Namespace, screen: Screen, server: Server, _: Account) -> None:
    found = [one for one in server.get("silences")["results"] if given.all or one["state"] != "expired"]
    if given.json:
        return show_json(found)
    if not found:
        return note("No silence in force.")
    rows = [
        (
            one["id"],
            one["state"],
            text.moment(one["ends_at"]),
            one["created_by"],
            one["holds"],
            one["comment"],
        )
        for one in found
    ]
    heads = ("ID", "STATE", "ENDS", "BY", "ALERTS", "COMMENT")
    return show_lines(text.table(heads, rows, screen, optional=("BY", "ALERTS", "STATE")))


# Commands on incidents


def act(given: Namespace, server: Server, verb: str, body: Mapping[str, Any]) -> Any:
    """Send a command and print the incident after it in one line."""
    incident = server.post(incident_path(given.incident, verb), body)
    report(incident, json_wanted=given.json)
    return incident


def report(incident: Mapping[str, Any], *, json_wanted: bool) -> None:
    if json_wanted:
        return show_json(incident)
    owner = incident["owner"] or "nobody"
    where = f"team {incident['team']}, owner {owner}"
    return print(text.clean(f"#{incident['number']} {incident['state']}, {where}: {incident['title']}"))


def acknowledge(given: Namespace, _: Screen, server: Server, account: Account) -> None:
    """The server makes the key the owner of what has none; where the person at the terminal is known, it is theirs."""
    for reference in given.incidents:
        incident = server.post(incident_path(reference, "acknowledge"))
        if account.user and (incident["owner"] or "key:").startswith("key:"):
            incident = server.post(incident_path(reference, "assign"), {"owner": account.user})
        report(incident, json_wanted=given.json)


def assign(given: Namespace, _: Screen, server: Server, account: Account) -> None:
    act(given, server, "assign", {"owner": None if given.user == "-" else person(given.user, account)})


def hand_over(given: Namespace, _: Screen, server: Server, __: Account) -> None:
    act(given, server, "hand_over", {"team": given.team, "reason": given.reason})


def snooze(given: Namespace, screen: Screen, server: Server, _: Account) -> None:
    until = None if given.until is None else end_of(given.until, screen.now)
    act(given, server, "snooze", {"until": until, "reason": given.reason})


def resolve(given: Namespace, _: Screen, server: Server, __: Account) -> None:
    body = {"confirmed_cause": given.cause} | ({"note": given.note} if given.note else {})
    act(given, server, "resolve", body)


def comment(given: Namespace, _: Screen, server: Server, __: Account) -> None:
    act(given, server, "comment", {"text": sys.stdin.read() if given.text == "-" else given.text})


def simple(verb: str, *names: str) -> Callable[[Namespace, Screen, Server, Account], None]:
    """The command of a verb whose fields have the names of its arguments."""

    def command(given: Namespace, _: Screen, server: Server, __: Account) -> None:
        act(given, server, verb, {name: getattr(given, name) for name in names if getattr(given, name)})

    return command


# Silences


def silence(given: Namespace, screen: Screen, server: Server, _: Account) -> None:
    matchers = given.what
    if re.fullmatch(r"#?\d+", matchers):
        matchers = server.incident(matchers, "matchers")["matchers"]
        if not matchers and not any(
            one["status"] != "resolved" for one in server.incident(given.what, "alerts")["results"]
        ):
            number = given.what.removeprefix("#")
            raise ClientError(
                f"#{number} has no firing alert to silence; to stop its pages: dossier snooze {number} 2h",
                USAGE,
            )
        if not matchers:
            raise ClientError(
                f"the firing alerts of {given.what} share no label; give matchers, such as 'alertname=\"DiskFull\"'",
                USAGE,
            )
    body = {"matchers": matchers, "ends_at": end_of(given.until, screen.now), "comment": given.reason}
    made = server.post("silences", body)
    if given.json:
        return show_json(made)
    shown = ", ".join(matcher_text(one) for one in made["matchers"])
    return print(
        text.clean(
            f"Silenced {shown} until {text.moment(made['ends_at'])}. Undo: dossier unsilence {made['id']}"
        )
    )


def matcher_text(one: Mapping[str, Any]) -> str:
    operator = {(True, False): "=", (False, False): "!=", (True, True): "=~", (False, True): "!~"}
    return f"{one['name']}{operator[one['isEqual'], one['isRegex']]}{json.dumps(one['value'], ensure_ascii=False)}"


def unsilence(given: Namespace, _: Screen, server: Server, __: Account) -> None:
    ended = server.delete(f"silences/{quote(given.silence, safe='')}")
    if given.json:
        return show_json(ended)
    return print(f"Ended silence {ended['id']}")


# Analysis


def analyze(given: Namespace, screen: Screen, server: Server, _: Account) -> None:
    if given.analyzer is None:
        return analyzers(given, screen, server)
    body = {
        "analyzer": given.analyzer,
        "length": given.length,
        "region": given.region,
        "params": dict(parameter(one) for one in given.param),
        "report": given.report,
    }
    run = finished_run(server, server.post("runs", body), given.timeout)
    if given.json:
        return show_json(run)
    return show_lines(text.verdict_lines(run, screen, everything=given.all))


def analyzers(given: Namespace, screen: Screen, server: Server) -> None:
    found = server.get("analyzers")["results"]
    if given.json:
        return show_json(found)
    rows = [(one["name"], one["version"], one["title"]) for one in found]
    return show_lines(text.table(("ANALYZER", "VERSION", "TITLE"), rows, screen))


def finished_run(server: Server, run: Any, patience: float) -> Any:
    """The run once it is judged. Raises ClientError where it fails, RunNotFinishedError after `patience` seconds."""
    deadline, pause = monotonic() + patience, POLL
    while run["state"] not in ("done", "failed"):
        if monotonic() > deadline:
            raise RunNotFinishedError(run, patience)
        sleep(pause)
        pause = min(pause * 1.5, SLOWEST)
        run = server.get(f"runs/{run['id']}")
    if run["state"] == "failed":
        raise ClientError(f"run {run['id']} failed: {text.clean(run['error'])}", FAILED)
    return run


# Values


def person(name: str, account: Account) -> str:
    """The login that a person means. Raises ClientError for `me` where it is not known."""
    if name != "me":
        return name
    if not account.user:
        raise ClientError("who is `me`? Log in with --user NAME, or set DOSSIER_USER", USAGE)
    return account.user


def parameter(given: str) -> tuple[str, Any]:
    """`name=value`, where value is JSON or a text."""
    name, equals, value = given.partition("=")
    if not equals:
        raise ClientError(f"--param {given}: must be NAME=VALUE", USAGE)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def end_of(given: str, now: datetime) -> str:
    """The time that `2h`, `30m`, `1d` or an RFC 3339 time means. Raises ClientError."""
    if found := re.fullmatch(r"(\d{1,6})([smhd])", given):
        return text.until(timedelta(seconds=int(found[1]) * UNITS[found[2]]), now)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ClientError(f"{given!r} is not a time; use 30m, 2h, 1d or 2026-01-31T12:00:00Z", USAGE)
    return moment.astimezone(UTC).isoformat()
