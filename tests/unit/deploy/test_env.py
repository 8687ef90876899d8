"""Readers of environment variables: working defaults, and a failure that names the variable."""

import re
from datetime import timedelta

import pytest
from django.conf import settings

from deploy import env
from incidents.domain.questions import COSTS
from tests.places import ROOT


@pytest.fixture(autouse=True)
def own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "VARIABLES", {})


def test_an_unset_variable_has_its_default() -> None:
    assert env.integer("ALICE_PORT", 8000, "a port") == 8000


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_PORT", "")
    assert env.integer("ALICE_PORT", 8000, "a port") == 8000


def test_a_set_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_HOSTS", "a.example, b.example,")
    assert env.words("ALICE_HOSTS", (), "hosts") == ["a.example", "b.example"]


@pytest.mark.parametrize("raw", ["eight", "8.5", "0", "65536"])
def test_a_malformed_number_fails_with_its_name_and_bounds(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_PORT", raw)
    with pytest.raises(env.InvalidSettingError, match=f"ALICE_PORT is set to '{raw}'.* from 1 to 65535"):
        env.integer("ALICE_PORT", 8000, "a port", low=1, high=65535)


@pytest.mark.parametrize(
    "raw",
    [
        "cache:6379",
        "http://cache:6379",
        "redis",
        "redis+socket://",
        "redis+socket://run/cache.sock",
        "redis://cache:port",
        "redis:cache",
        "redis+socket:/run/cache.sock",
    ],
)
def test_an_address_that_is_no_broker_s_is_malformed(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_CACHE", raw)
    with pytest.raises(env.InvalidSettingError, match="ALICE_CACHE"):
        env.broker("ALICE_CACHE", "a broker")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("https://dossier.example/", "https://dossier.example"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://login.example/realms/dc/", "https://login.example/realms/dc"),
    ],
)
def test_an_address_has_no_slash_at_its_end(raw: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_URL", raw)
    assert env.address("ALICE_URL", "", "an address") == value


@pytest.mark.parametrize(
    "raw", ["x", "dossier.example", "ftp://a.example", "https://", "https://a.example:b", "https://a/b"]
)
def test_what_is_no_address_is_malformed(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_URL", raw)
    with pytest.raises(env.InvalidSettingError, match="ALICE_URL"):
        env.address("ALICE_URL", "", "an address", path=False)


def test_what_is_malformed_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_CACHE", "http://alice:wonderland@cache:6379")
    with pytest.raises(env.InvalidSettingError, match="http://alice:…@cache:6379") as told:
        env.broker("ALICE_CACHE", "a broker")
    assert "wonderland" not in str(told.value)


@pytest.mark.parametrize(("raw", "value"), [("yes", True), ("1", True), ("OFF", False), ("false", False)])
def test_words_for_true_and_false_are_read(raw: str, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_DEBUG", raw)
    assert env.boolean("ALICE_DEBUG", not value, "debug") is value


def test_a_word_of_several_is_read_whatever_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_LEVEL", "info")
    assert env.choice("ALICE_LEVEL", "ERROR", ("INFO", "ERROR"), "a level") == "INFO"


def test_a_word_of_none_of_them_fails_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_LEVEL", "loud")
    with pytest.raises(
        env.InvalidSettingError, match="ALICE_LEVEL is set to 'loud'; it must be one of INFO, ERROR"
    ):
        env.choice("ALICE_LEVEL", "ERROR", ("INFO", "ERROR"), "a level")


def test_another_word_is_neither_true_nor_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_DEBUG", "maybe")
    with pytest.raises(env.InvalidSettingError, match="ALICE_DEBUG"):
        env.boolean("ALICE_DEBUG", False, "debug")


@pytest.mark.parametrize(
    ("raw", "span"),
    [("250ms", timedelta(milliseconds=250)), ("5m", timedelta(minutes=5)), ("30d", timedelta(30))],
)
def test_durations_have_units(raw: str, span: timedelta) -> None:
    assert env.parse_duration(raw) == span


@pytest.mark.parametrize("raw", ["5", "0s", "-5m", "1h30m", "5 m", ""])
def test_what_is_not_a_duration_is_refused(raw: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        env.parse_duration(raw)


def test_a_duration_below_its_bound_fails_with_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_KEEP", "23h")
    with pytest.raises(env.InvalidSettingError, match=r"ALICE_KEEP is set to '23h'.* at least 1d"):
        env.duration("ALICE_KEEP", "30d", "how long things are kept", low="1d")


def test_every_variable_read_is_declared_with_its_default_and_meaning() -> None:
    env.duration("ALICE_KEEP", "30d", "how long things are kept")
    assert {"ALICE_KEEP": env.Variable("ALICE_KEEP", "30d", "how long things are kept")} == env.VARIABLES


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("KEY_RATE", "KEY_RATE is not read: it is now DOSSIER_INGEST_RATE_PER_KEY"),
        ("DOSSIER_BIND", "DOSSIER_BIND is not read: it is now DOSSIER_BIND_ADDRESS"),
        ("DOSSIER_KEPE", "DOSSIER_KEPE is not read: no setting has that name; DOSSIER_KEEP has"),
        ("DOSSIER_ZZZZZZZZZZZZ", "DOSSIER_ZZZZZZZZZZZZ is not read: no setting has that name"),
    ],
)
def test_a_former_or_misspelt_name_is_reported(name: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env.duration("DOSSIER_KEEP", "30d", "how long things are kept")
    monkeypatch.setenv(name, "1")
    assert line in env.unread()


@pytest.mark.parametrize(
    "name", ["DOSSIER_WEB_PORT_80_TCP_ADDR", "DOSSIER_WEB_SERVICE_HOST", "DOSSIER_PROCESS"]
)
def test_variables_of_the_platform_are_not_reported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert not any(name in line for line in env.unread())


def test_every_former_name_leads_to_a_setting() -> None:
    read = {*re.findall(r'"(DOSSIER_[A-Z_]+)"', (ROOT / "deploy/settings.py").read_text())}
    assert set(env.FORMER_NAMES.values()) <= read


def test_a_database_that_vanishes_is_noticed_unless_its_address_says_otherwise() -> None:
    usual = env.database("postgresql://db/dossier")["OPTIONS"]
    told = env.database("postgresql://db/dossier?tcp_user_timeout=5000")["OPTIONS"]
    assert isinstance(usual, dict)
    assert isinstance(told, dict)
    assert (usual["tcp_user_timeout"], usual["keepalives_idle"]) == (30_000, 30)
    assert told == {**usual, "tcp_user_timeout": "5000"}


@pytest.mark.parametrize("url", ["postgresql://", "postgresql://alice@db:5432", "host=db user=alice"])
def test_an_address_without_a_database_is_malformed(url: str) -> None:
    with pytest.raises(env.InvalidSettingError, match="DATABASE_URL names no database"):
        env.database(url)


def test_costs_of_measurements_are_read_over_their_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    default = {"probe": (1.0, 0.0), "drain": (15.0, 30.0)}
    assert env.costs("DOSSIER_TEST", default, "") == default
    monkeypatch.setenv("DOSSIER_TEST", "drain=20+60.5")
    assert env.costs("DOSSIER_TEST", default, "") == {"probe": (1.0, 0.0), "drain": (20.0, 60.5)}


@pytest.mark.parametrize("raw", ["drain", "drain=20", "fly=1+1", "drain=0+3", "drain=1+-3", "drain=nan+3"])
def test_a_cost_that_cannot_be_one_names_variable_and_form(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOSSIER_TEST", raw)
    with pytest.raises(env.InvalidSettingError, match=r"DOSSIER_TEST is set to .* such as drain=20\+60"):
        env.costs("DOSSIER_TEST", {"drain": (15.0, 30.0)}, "")


def test_the_default_costs_of_measurements_are_those_of_the_ranking() -> None:
    assert {kind: (one.minutes, one.cost) for kind, one in COSTS.items()} == settings.QUESTION_COSTS
