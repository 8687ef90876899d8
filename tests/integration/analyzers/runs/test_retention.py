"""Data that runs keep goes some time after its last use; what they concluded stays."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from analyzers.commands import RunNotRepeatableError, RunRequest, request_rerun, request_run
from analyzers.queries import verdict
from analyzers.runs import tasks
from analyzers.runs.models import Run, StoredVerdict, StoredWindow
from analyzers.runs.windows import drop_unused
from incidents import queries
from incidents.follower import follower
from ingest.api import keys
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, TOP, Door, healthy, work

pytestmark = pytest.mark.usefixtures("log_database", "tally")
NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=91)


@pytest.fixture
def door() -> Door:
    return Door()


def by_hand(**changes: Any) -> Run:
    request_run(
        RunRequest(**{"analyzer": "tally", "start": TOP, "end": TOP + HOUR, **changes}), "user:alice", NOW
    )
    return work()[-1]


def again(run: Run) -> Run:
    request_rerun(run.pk, "user:alice", NOW)
    return work()[-1]


def kept() -> tuple[int, int]:
    return StoredWindow.objects.count(), StoredVerdict.objects.count()


def test_what_was_used_within_the_retention_stays(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand()
    assert drop_unused(NOW + timedelta(days=89)) == 0
    assert again(run).identical is True


def test_what_nobody_used_goes(door: Door) -> None:
    door.post(healthy(a=9))
    by_hand()
    assert drop_unused(LATER) == 2
    assert kept() == (0, 0)


def test_a_verdict_is_read_from_the_log_whole_once_it_is_no_longer_kept(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand()
    before = verdict(run)
    drop_unused(LATER)
    assert before is not None
    assert json.dumps(verdict(run), sort_keys=True) == json.dumps(before, sort_keys=True)


def test_the_verdict_of_a_repetition_is_that_of_the_run_it_repeated(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand()
    repetition = again(run)
    drop_unused(LATER)
    first, second = verdict(run), verdict(repetition)
    assert first is not None
    assert second is not None
    assert second["suspects"] == first["suspects"] != []


def test_a_repetition_that_differed_has_no_verdict_left(door: Door) -> None:
    door.post(healthy(a=9))
    repetition = again(by_hand())
    Run.objects.filter(pk=repetition.pk).update(identical=False)
    drop_unused(LATER)
    assert verdict(Run.objects.get(pk=repetition.pk)) is None


def test_a_re_run_says_plainly_that_the_window_is_gone(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand()
    drop_unused(LATER)
    with pytest.raises(
        RunNotRepeatableError, match=r"no longer stored: windows are stored for 90d .*DOSSIER_RUN_RETENTION"
    ):
        request_rerun(run.pk, "user:alice", NOW)


def test_a_re_run_whose_history_is_gone_is_refused(door: Door) -> None:
    door.post(healthy(length=2 * HOUR))
    run = by_hand(start=TOP + HOUR, end=TOP + 2 * HOUR)
    StoredWindow.objects.filter(hash=run.history[0]["hash"]).delete()
    with pytest.raises(RunNotRepeatableError, match="no longer stored"):
        request_rerun(run.pk, "user:alice", NOW)


def test_a_re_run_is_a_use(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand()
    StoredWindow.objects.update(used_at=NOW - timedelta(days=100))
    StoredVerdict.objects.update(used_at=NOW - timedelta(days=100))
    again(run)
    assert drop_unused(NOW) == 0


def test_to_be_the_history_of_another_run_is_a_use(door: Door) -> None:
    door.post(healthy(length=2 * HOUR))
    by_hand()
    StoredWindow.objects.update(used_at=NOW - timedelta(days=100))
    by_hand(start=TOP + HOUR, end=TOP + 2 * HOUR)
    assert not StoredWindow.objects.filter(used_at__lt=NOW - timedelta(days=1)).exists()


def test_history_that_is_gone_is_read_anew(door: Door) -> None:
    door.post(healthy(length=2 * HOUR))
    first = by_hand()
    drop_unused(LATER)
    second = by_hand(start=TOP + HOUR, end=TOP + 2 * HOUR)
    assert (second.state, second.history[0]["hash"]) == ("done", first.window_hash)


def test_more_than_one_statement_deletes_goes_too(door: Door) -> None:
    door.post(healthy())
    old = NOW - timedelta(days=100)
    StoredWindow.objects.bulk_create(StoredWindow(hash=f"{n:064}", body=b"") for n in range(450))
    StoredWindow.objects.update(used_at=old)
    by_hand()
    assert (drop_unused(NOW), kept()) == (450, (1, 1))


def test_the_task_that_drops_partitions_drops_this_too(door: Door) -> None:
    door.post(healthy())
    by_hand()
    StoredWindow.objects.update(used_at=NOW - timedelta(days=100))
    tasks.maintain()
    assert kept() == (0, 1)


def test_the_log_moves_where_telemetry_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[datetime] = []

    def fail(_: datetime) -> None:
        raise OSError("no room")

    monkeypatch.setattr(tasks, "move_old_telemetry", fail)
    monkeypatch.setattr(tasks, "move_old_log", moved.append)
    with pytest.raises(OSError, match="no room"):
        tasks.maintain()
    assert len(moved) == 1


def test_a_ticket_shows_what_it_showed(door: Door) -> None:
    door.post(healthy(a=9))
    by_hand()
    follow_to_the_end(follower())
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))

    def shown() -> tuple[object, str]:
        page = client.get(reverse("incident", args=[1])).content.decode()
        body = re.sub(r'csrfmiddlewaretoken" value="\w+"', "", page)  # another one with every page
        return queries.evidence("1"), body.partition('data-part="evidence"')[2].partition("</section>")[0]

    before = shown()
    drop_unused(LATER)
    assert shown() == before
    assert before[1]


def test_the_page_of_a_run_says_that_it_cannot_be_repeated_and_shows_its_verdict(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand()
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    assert "<button>Run again" in client.get(reverse("run", args=[run.pk])).content.decode()
    drop_unused(LATER)
    body = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "<button disabled>Run again" in body
    assert "so the run cannot be repeated" in body
    assert "fails often" in body


def test_the_page_of_a_run_says_that_another_version_is_installed_now(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand()
    Run.objects.filter(pk=run.pk).update(version="0.9.0")
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    body = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "<button disabled>Run again" in body
    assert "Analyzer tally 0.9.0; 1.0.0 is installed now" in body


def test_the_api_says_that_it_cannot_be_repeated_and_why(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand()
    api = Client(headers={"Authorization": f"Bearer {keys.create('script', ['admin'])}"})
    assert api.get(f"/api/v1/runs/{run.pk}").json()["repeatable"] is True
    drop_unused(LATER)
    told = api.get(f"/api/v1/runs/{run.pk}").json()
    assert (told["repeatable"], told["verdict"]["suspects"][0]["component"]) == (False, "tor/a")
    refusal = api.post(f"/api/v1/runs/{run.pk}/rerun")
    assert refusal.status_code == 409
    assert "DOSSIER_RUN_RETENTION" in refusal.json()["detail"]
