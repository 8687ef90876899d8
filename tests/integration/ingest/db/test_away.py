"""The database is away: pages, their scripts and programs each hear it in their way, and never as a mistake of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from ingest.db import disk

GIB, MIB = 2**30, 2**20
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def alice(log_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Signed in, and then no server is where the database is looked for."""
    del log_database
    client = Client(raise_request_exception=False)
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", str(tmp_path))
    return client


def later(answer: Any, kind: str) -> str:
    """The text of an answer that says to come again."""
    told = (answer.status_code, answer["Retry-After"], answer["Content-Type"].partition(";")[0])
    assert told == (503, "5", kind)
    return str(answer.content.decode())


@pytest.mark.parametrize(
    "path", ["/", "/incidents/1", "/settings/teams", "/accounts/login/", "/no-such-page"]
)
def test_a_page_asks_again_by_itself(alice: Client, path: str) -> None:
    text = later(alice.get(path, headers=BROWSER), "text/html")
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in text


def test_a_form_is_kept_on_the_page(alice: Client) -> None:
    sent = {"matchers": 'rack="<12>"', "comment": "new cables", "team": ["one", "two"]}
    text = later(alice.post("/silences", sent, headers=BROWSER), "text/html")
    assert "refresh" not in text
    for name, value in (("matchers", "rack=&quot;&lt;12&gt;&quot;"), ("team", "one"), ("team", "two")):
        assert f'<input type="hidden" name="{name}" value="{value}">' in text


@pytest.mark.parametrize("name", ["password", "secret"])  # of a person, and of a webhook
def test_what_is_secret_stands_on_no_page(name: str, alice: Client) -> None:
    text = later(
        alice.post("/silences", {"login": "bob", name: "correct horse"}, headers=BROWSER), "text/html"
    )
    assert "correct horse" not in text
    assert "Go back" in text


@pytest.mark.parametrize("path", ["/live", "/", "/palette?q=rack"])
def test_scripts_of_a_page_go_on_as_they_are(alice: Client, path: str) -> None:
    assert later(alice.get(path, headers={"Accept": "*/*"}), "text/plain") == "the database does not answer"


@pytest.mark.parametrize("path", ["/api/v1/incidents", "/api/v1/runs"])
def test_programs_get_a_problem(alice: Client, path: str) -> None:
    later(alice.get(path, headers=BROWSER), "application/problem+json")


def test_another_mistake_stays_one(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.observability.health.broker.ping", lambda: 1 / 0)
    assert alice.get("/readyz", headers=BROWSER).status_code == 500


PATHS_OF_SENDERS = (
    "/api/v2/alerts",
    "/api/v1/telemetry/unit_failure",
    "/api/v1/write",
    "/v1/metrics",
    "/api/v1/incidents",
)


@pytest.mark.parametrize("path", PATHS_OF_SENDERS)
@pytest.mark.parametrize(
    ("free", "says"),
    [
        (0, "The disk of Dossier is full"),
        (
            20 * MIB,
            "The database does not answer; nothing was stored.",
        ),  # too little for telemetry, and not full
        (50 * GIB, "The database does not answer; nothing was stored."),
    ],
)
def test_senders_are_told_of_a_full_disk(
    alice: Client, monkeypatch: pytest.MonkeyPatch, path: str, free: int, says: str
) -> None:
    monkeypatch.setattr(disk, "measure", lambda _: disk.Space(free, 100 * GIB))
    monkeypatch.setattr(disk, "_last", {})
    answer = alice.post(path, b"[]", content_type="application/json", HTTP_AUTHORIZATION="Bearer dsr_x")
    assert answer.status_code == 503
    assert says in answer.content.decode()
    assert "nothing was stored" in answer.content.decode()


def test_a_page_tells_people_of_a_full_disk(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_last", {})
    for free, shown in ((0, True), (20 * MIB, False)):
        disk._last.clear()
        monkeypatch.setattr(disk, "measure", lambda _, free=free: disk.Space(free, 100 * GIB))
        text = later(alice.get("/", headers=BROWSER), "text/html")
        assert ("The disk of this Dossier is full" in text) == shown
