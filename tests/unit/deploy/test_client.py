"""The command line client: where its account comes from, what fits a terminal, and errors in one line."""

from __future__ import annotations

import json
import shlex
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import deploy.client
from deploy.client import actions, completion, main, settings, tail, text
from deploy.client.errors import UNREACHABLE, ClientError
from deploy.client.server import messages, problem_text
from deploy.client.settings import Account
from deploy.client.tail import change_line
from deploy.client.text import Screen
from deploy.version import VERSION

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
URL = "https://dossier.example.com"


def test_the_client_has_the_version_of_the_server() -> None:
    assert deploy.client.__version__ == VERSION


def test_an_account_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    settings.save_account(Account(URL, "dsr_old"), environment)
    path = settings.save_account(Account(URL, "dsr_1", "alice"), environment)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert settings.load_account(environment) == Account(URL, "dsr_1", "alice")
    assert [one.name for one in path.parent.iterdir()] == ["client.json"]


def test_the_environment_overrides_the_stored_account(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "DOSSIER_KEY": "dsr_2", "DOSSIER_USER": "bob"}
    settings.save_account(Account(URL, "dsr_1", "alice"), environment)
    assert settings.load_account(environment) == Account(URL, "dsr_2", "bob")


def test_a_stored_key_goes_to_its_own_server_only(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "DOSSIER_URL": "https://elsewhere.example.com"}
    settings.save_account(Account(URL, "dsr_1"), environment)
    with pytest.raises(ClientError, match=r"no key for https://elsewhere\.example\.com"):
        settings.load_account(environment)


@pytest.mark.parametrize("stored", ["", "[]", '{"url": 7}'])
def test_a_damaged_account_is_one_clear_error(tmp_path: Path, stored: str) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    settings.save_account(Account(URL, "dsr_1"), environment).write_text(stored)
    with pytest.raises(ClientError, match="run `dossier login` again"):
        settings.load_account(environment)


@pytest.mark.parametrize("wrong", ["", "dossier.example.com", "ftp://a", "https://", "https://a/?b=1"])
def test_an_address_that_is_none_is_rejected(wrong: str) -> None:
    with pytest.raises(ClientError, match="is not the address of a server"):
        settings.address(wrong)


def test_a_key_over_plain_http_is_noticed_except_on_this_machine() -> None:
    plain = [Account(one, "k").is_plain() for one in ("http://a.example.com", "http://localhost:8000", URL)]
    assert plain == [True, False, False]


def test_a_table_leaves_out_columns_before_it_cuts_the_last_one() -> None:
    heads, rows = ("#", "TEAM", "TITLE"), [("#1", "a-team-with-a-long-name", "x" * 60)]
    optional = ("TEAM",)
    narrow = text.table(heads, rows, Screen(NOW, 40), optional)
    assert narrow == ["#   TITLE", "#1  " + "x" * 35 + "…"]
    assert text.table(heads, rows, Screen(NOW, 200), optional)[1].count("a-team-with") == 1
    assert text.table(heads, rows, Screen(NOW), optional)[1].endswith("x" * 60)


def test_texts_of_others_cannot_steer_the_terminal() -> None:
    assert text.clean("a\x1b]0;title\x07b\nc\u202ed") == "a ]0;title b c d"
    assert text.clean("a\r\nb", lines=True) == "a\nb"


def test_times_are_shown_in_one_unit() -> None:
    shown = [
        text.ago(f"2026-11-{day}Z", NOW)
        for day in ("21T11:59:30", "21T11:15:00", "21T09:00:00", "10T00:00:00")
    ]
    assert shown == ["30 s", "45 min", "3 h", "11 d"]


def test_the_end_of_a_duration_or_a_time_is_sent_in_utc() -> None:
    assert actions.end_of("90m", NOW) == "2026-11-21T13:30:00Z"
    assert actions.end_of("2026-11-21T14:00:00+02:00", NOW) == "2026-11-21T12:00:00+00:00"
    for wrong in ("soon", "2 hours", "2026-11-21T14:00:00"):
        with pytest.raises(ClientError, match="is not a time"):
            actions.end_of(wrong, NOW)


def test_parameters_are_json_or_text() -> None:
    assert [actions.parameter(one) for one in ("a=1", "b=tor", "c=[1]")] == [
        ("a", 1),
        ("b", "tor"),
        ("c", [1]),
    ]
    with pytest.raises(ClientError, match="NAME=VALUE"):
        actions.parameter("a")


def test_me_needs_a_login() -> None:
    assert actions.person("me", Account(URL, "k", "alice")) == "alice"
    with pytest.raises(ClientError, match="--user"):
        actions.person("me", Account(URL, "k"))


def test_a_problem_is_one_line_and_other_bodies_are_none() -> None:
    fields = {"detail": "Wrong.", "errors": {"severity": ["must be one of a, b"], "team": ["is required"]}}
    assert problem_text(json.dumps(fields).encode()) == "severity: must be one of a, b; team: is required"
    assert problem_text(b'{"detail": "The key lacks the scope incidents:write."}').endswith(
        "incidents:write."
    )
    assert [problem_text(one) for one in (b"<html>", b"[]", b"")] == ["", "", ""]


@pytest.mark.parametrize(
    "given",
    [[], ["bogus"], ["show"], ["list", "--order", "none"], ["list", "--limit", "0"], ["ack", "1", "--no"]],
)
def test_wrong_arguments_are_one_line_and_exit_with_2(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(given)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dossier: ")
    assert line.endswith(" --help")
    assert len(line) < 160


def test_messages_of_a_stream_are_read_past_comments() -> None:
    lines = [
        "retry: 3000",
        ": listening",
        "",
        "event: change",
        "id: 7",
        'data: {"id": "a"}',
        "",
        ": still here",
        "",
    ]
    assert list(messages([*lines, "event: bye", "data: {}", ""])) == [
        ("change", "7", {"id": "a"}),
        ("bye", "7", {}),
    ]


def test_a_change_of_another_day_has_its_date() -> None:
    incident = {"number": 12, "severity": "critical", "team": "fabric", "title": "Rack 12"}
    at = NOW.astimezone()
    today, earlier = (
        {"last_at": one.isoformat(), "text": "bob resolved it"} for one in (at, at.replace(day=10))
    )
    line = change_line(incident, today, Screen(NOW))
    assert line == f"{at:%H:%M:%S}  #12  critical  fabric  Rack 12: bob resolved it"
    assert change_line(incident, earlier, Screen(NOW)).startswith("2026-11-10 ")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_command_is_completed(shell: str) -> None:
    script = completion.completion(main.parser(), shell)
    commands = completion.options(main.parser())
    assert {"list", "show", "ack", "hand-over", "tail"} <= commands.keys()
    assert all(name in script for name in commands)


def test_every_example_of_the_help_is_accepted() -> None:
    top = main.parser()
    epilogs = [top.epilog or "", *(one.epilog or "" for one in completion.subparsers(top).values())]
    lines = [line.strip() for text in epilogs for line in text.splitlines()]
    examples = [line.partition("   ")[0].partition(" < ")[0] for line in lines if line.startswith("dossier ")]
    assert len(examples) > 20
    for example in examples:
        top.parse_args(shlex.split(example)[1:])


def test_without_a_server_the_first_step_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DOSSIER_URL", raising=False)
    assert main.main(["list"]) == 4
    assert (
        capsys.readouterr().err == "dossier: no server yet; run: dossier login https://dossier.example.com\n"
    )


class RestartedServer:
    """Away once, then there, and quiet."""

    def __init__(self) -> None:
        self.tries = 0

    def incidents(self, *_: object) -> tuple[list[Any], bool]:
        return [], False

    def live(self, _: str) -> Iterator[tuple[str, str, Any]]:
        self.tries += 1
        if self.tries == 1:
            raise ClientError("cannot reach it", UNREACHABLE)
        yield "open", "", {}
        raise KeyboardInterrupt


def test_a_connection_that_is_back_is_noted_before_anything_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tail, "sleep", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        list(tail.changes(RestartedServer()))  # type: ignore[arg-type]
    assert capsys.readouterr().err == "cannot reach it; trying again\nconnected again\n"
