"""Opinions of other analyzers about an incident, from runs in the log to opinions, misses and score-cards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone

from analyzers.contract import Sums
from analyzers.runner import verdict_json
from analyzers.runs.models import Run, State, StoredVerdict, StoredWindow
from analyzers.simulators.tables import paths_of
from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.incident.state import UNKNOWN
from incidents.domain.values import rfc3339
from incidents.follower import follower
from incidents.incident.models import AnalyzerOutcomeRow, IncidentRow
from incidents.incident.rebuild import rebuild
from incidents.scorecards.queries import disputed_blames, scorecard, scorecards
from ingest.api import keys
from ingest.commands import append
from ingest.queries import Context, Head, NewEvent, dump_sums
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")
MINUTE = timedelta(minutes=1)
NOW = datetime.now(UTC).replace(microsecond=0)
T1, T9, LINK = "tor/t1", "tor/t9", "link/a"
PATHS = paths_of([(LINK, T1), ("link/b", T1), ("link/c", "tor/t2")])


def suspect(component: str, score: float = 0.9, **more: Any) -> dict[str, Any]:
    times = {"first_failure": None, "last_failure": None}
    given = {"component": component, "score": score, "ambiguous_with": [], "estimate": None, "sure": True}
    return {**given, **times, "summary": "It fails.", "rank": 1, **more}


def kept() -> str:
    """The hash of a window over three paths, which name link/a, link/b, link/c, tor/t1 and tor/t2."""
    body = dump_sums({"paths": Sums({"hops": PATHS}, {"lost": np.zeros(3, np.int64)}, 3)})
    digest = sha256(body).hexdigest()
    StoredWindow.objects.get_or_create(hash=digest, defaults={"body": body})
    return digest


def run(
    analyzer: str,
    *suspects: dict[str, Any],
    minute: float = 0,
    schedule: str | None = "5m",
    by_hand: bool = False,
) -> Run:
    """A finished run over the hour that ends so many minutes from now, as a worker records it."""
    end, digest = NOW + minute * MINUTE, kept()
    key = None if by_hand else f"{analyzer}-{schedule}"
    verdict: dict[str, Any] = {
        "status": "named" if suspects else "quiet",
        "suspects": list(suspects),
        "measures": {},
    }
    body = verdict_json(verdict)
    verdict_hash = sha256(body).hexdigest()
    StoredVerdict.objects.get_or_create(hash=verdict_hash, defaults={"body": body})
    done = Run.objects.create(
        id=uuid4(),
        requested_by="system:schedule",
        schedule_key=key,
        analyzer=analyzer,
        version="1.0.0",
        region="default",
        window_start=end - 60 * MINUTE,
        window_end=end,
        state=State.DONE,
        status=verdict["status"],
        window_hash=digest,
        verdict_hash=verdict_hash,
        created_at=end,
    )
    common = {
        "run": str(done.pk),
        "schedule": key,
        "analyzer": analyzer,
        "version": "1.0.0",
        "params": {},
        "region": "default",
        "window": {"start": rfc3339(end - 60 * MINUTE), "end": rfc3339(end)},
        "window_hash": digest,
    }
    said = [NewEvent("analysis.recorded", {**common, **verdict}, end)]
    said += [
        NewEvent("finding.reported", {**common, "suspect": one, "evidence": []}, end) for one in suspects
    ]
    append(done.stream, said, Head.NEW, Context("system:runs"))
    follow_to_the_end(follower())
    return done


def says(number: int = 1) -> dict[str, tuple[str, str | None]]:
    opinions = queries.get(str(number)).incident.opinions
    return {name: (one.stance, one.component) for name, one in opinions.items()}


def resolve(cause: str, number: int = 1) -> None:
    commands.resolve(queries.get(str(number)).incident.id, cause, "", ALICE)
    follow_to_the_end(follower())


def test_an_analyzer_that_looked_and_saw_nothing_is_shown() -> None:
    run("deepview", suspect(T1))
    run("voting")
    assert says() == {"deepview": ("blames", T1), "voting": ("saw_nothing", None)}


def test_one_that_never_looked_there_says_nothing() -> None:
    run("deepview", suspect(T9))
    run("voting")
    assert says() == {"deepview": ("blames", T9)}


def test_one_that_names_something_on_the_same_path_blames_it_instead() -> None:
    run("deepview", suspect(T1))
    run("voting", suspect(LINK))
    assert says() == {"deepview": ("blames", T1), "voting": ("blames_other", LINK)}


def test_one_that_names_something_elsewhere_saw_nothing_here() -> None:
    run("deepview", suspect(T1))
    run("voting", suspect("link/c"))
    assert says()["voting"] == ("saw_nothing", None)


def test_a_run_by_hand_contradicts_nobody() -> None:
    run("deepview", suspect(T1))
    run("voting", by_hand=True)
    assert "voting" not in says()


def test_a_window_after_the_failures_contradicts_nobody() -> None:
    run("deepview", suspect(T1))
    run("voting", minute=200)
    assert "voting" not in says()


def test_what_fails_after_the_failures_ended_explains_nothing_of_them() -> None:
    run("deepview", suspect(T1, last_failure=rfc3339(NOW - 30 * MINUTE)))
    run("deepview", suspect(LINK), minute=40)
    run("voting", suspect(LINK), minute=40)
    assert says() == {"deepview": ("no_longer_blames", T1)}


@pytest.mark.parametrize(
    ("began", "said"),
    [(-20, ("blames_other", LINK)), (20, ("no_longer_blames", T1))],
    ids=["before", "after"],
)
def test_what_began_to_fail_after_the_blame_explains_nothing_of_it(began: int, said: tuple[str, str]) -> None:
    run("deepview", suspect(T1))
    run("deepview", suspect(LINK, first_failure=rfc3339(timezone.now() + began * MINUTE)), minute=40)
    assert says()["deepview"] == said


def test_a_ticket_that_no_analyzer_blames_hears_no_silence() -> None:
    commands.open_incident(Report("Slow", component=T1), ALICE)
    run("voting")
    assert says() == {}


def test_a_silence_that_goes_on_is_one_line() -> None:
    run("deepview", suspect(T1))
    for minute in (0, 5, 10):
        run("voting", minute=minute)
    assert [e.count for e in queries.timeline("1") if e.type == "incident.opinion_changed"] == [1]


def test_two_analyzers_on_one_ticket_raise_its_confidence_each_with_its_own_score() -> None:
    run("deepview", suspect(T1))
    run("voting", suspect(T1, 0.8))
    view = queries.get("1").as_json(UNKNOWN)
    assert [(one["analyzer"], one["score"]) for one in view["opinions"]] == [
        ("deepview", 0.9),
        ("voting", 0.8),
    ]
    assert view["confidence"] == pytest.approx(18 / 19)  # odds 9 * 4 ** 0.5


def test_a_row_from_before_opinions_is_folded_from_the_log() -> None:
    """Rows as the migration leaves them: version 0, nothing in the new columns."""
    run("deepview", suspect(T1))
    IncidentRow.objects.update(version=0, opinions={}, reported_at=None, missed_by={})
    run("voting", suspect(T1, 0.8))
    assert set(says()) == {"deepview", "voting"}
    assert rebuild().differed == ()


def test_indicator_and_path_of_a_suspect_stay_with_the_opinion() -> None:
    run("c4d", suspect(T1, indicator="all_reduce duration", path=[T1, "job/j"]))
    run("voting", suspect(T1, 0.8))
    run("c4d", minute=5)
    view = queries.get("1").as_json(UNKNOWN)
    shown = {one["analyzer"]: (one["indicator"], one["path"]) for one in view["opinions"]}
    assert shown == {"c4d": ("all_reduce duration", [T1, "job/j"]), "voting": ("", [])}
    assert rebuild().differed == ()


def test_the_record_of_disputed_blames_says_what_a_dissent_is_worth() -> None:
    for number in range(1, 7):
        run("deepview", suspect(T1), minute=200 * number)
        run("voting", minute=200 * number)
        assert queries.get(str(number)).as_json(UNKNOWN)["opinions"][1]["dissent"]["one"] >= 0
        resolve("none", number)
    assert [(one.kind, one.dissenters, one.right) for one in disputed_blames()] == [
        ("tor", ("voting",), False)
    ] * 6
    run("deepview", suspect(T1), minute=2000)
    assert queries.get("7").incident.confidence == 0.9
    run("voting", minute=2000)
    view = queries.get("7").as_json(UNKNOWN)
    assert view["confidence"] < 0.5 < view["opinions"][1]["dissent"]["one"]
    assert "lowered because voting judged it" in view["verdict"]
    assert rebuild().differed == ()


def test_a_later_quiet_window_takes_the_agreement_back() -> None:
    run("deepview", suspect(T1))
    run("voting", suspect(T1, 0.8))
    run("voting", minute=5)
    assert (says()["voting"], queries.get("1").incident.confidence) == (("no_longer_blames", T1), 0.9)


def test_a_resolution_makes_the_score_cards() -> None:
    run("deepview", suspect(T1))
    run("voting")
    resolve(T1)
    assert scorecard("deepview").sentence == "right in 1 of 1 resolved incident"
    assert (scorecard("voting").missed, scorecard("voting").resolved) == (1, 0)


def test_a_ticket_of_a_person_counts_as_missed_by_whoever_looked() -> None:
    run("deepview", suspect(T9))
    commands.open_incident(Report("Slow", component=T1), ALICE)
    run("voting", minute=30)
    resolve(T1, number=2)
    assert {name: card.missed for name, card in scorecards().items()} == {"voting": 1}


def test_who_named_the_confirmed_cause_on_another_ticket_did_not_miss_it() -> None:
    run("deepview", suspect(T1))
    run("voting", suspect(LINK))
    resolve(LINK)
    assert (scorecard("deepview").wrong, scorecard("voting").missed) == (1, 0)


def test_a_cause_that_nobody_looked_at_is_missed_by_nobody() -> None:
    run("deepview", suspect(T1))
    run("voting")
    resolve(T9)
    assert scorecard("voting").missed == 0


def test_a_changed_resolution_counts_instead_of_the_first() -> None:
    run("deepview", suspect(T1))
    resolve(T1)
    commands.reopen(queries.get("1").incident.id, "", ALICE)
    assert (scorecard("deepview").resolved, scorecard("deepview").waiting) == (0, 1)
    resolve("none")
    assert (scorecard("deepview").right, scorecard("deepview").wrong) == (0, 1)


def test_score_cards_are_rebuilt_from_the_log_and_come_out_identical() -> None:
    run("deepview", suspect(T1))
    run("voting")
    resolve(T1)
    before = list(
        AnalyzerOutcomeRow.objects.order_by("analyzer").values("analyzer", "outcome", "first", "version")
    )
    assert rebuild().differed == ()
    AnalyzerOutcomeRow.objects.all().delete()
    assert len(rebuild().differed) == 1
    after = list(
        AnalyzerOutcomeRow.objects.order_by("analyzer").values("analyzer", "outcome", "first", "version")
    )
    assert after == before


def test_as_of_shows_the_opinions_of_that_moment() -> None:
    run("deepview", suspect(T1))
    position = queries.parse_moment(queries.get("1").position)
    run("voting")
    assert set(queries.get("1", position).incident.opinions) == {"deepview"}


@pytest.fixture
def api() -> Client:
    return Client(headers={"Authorization": f"Bearer {keys.create('reader', ['incidents:read'])}"})


def test_the_api_gives_the_card_of_an_analyzer_and_of_each_version(api: Client) -> None:
    run("deepview", suspect(T1))
    resolve(T1)
    card = api.get("/api/v1/analyzers/deepview/scorecard").json()
    assert (card["right"], card["found_alone"], card["precision"]["value"]) == (1, 1, 1.0)
    assert [one["version"] for one in card["versions"]] == ["1.0.0"]


def test_an_analyzer_without_a_record_says_so(api: Client) -> None:
    card = api.get("/api/v1/analyzers/deepview/scorecard").json()
    assert (card["sentence"], card["precision"]["value"]) == ("no resolved incident yet", None)


def test_cards_of_a_span_leave_out_what_was_resolved_before(api: Client) -> None:
    run("deepview", suspect(T1))
    resolve(T1)
    later = rfc3339(NOW + timedelta(days=1))
    cards = {
        one["analyzer"]: one for one in api.get("/api/v1/scorecards", {"since": later}).json()["results"]
    }
    assert cards["deepview"]["resolved"] == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("analyzers/nothing/scorecard", 404),
        ("scorecards?since=yesterday", 400),
        ("scorecards?from=now", 400),
        ("scorecards?team=%00", 400),
        ("analyzers/deepview/scorecard?since=2026-11-21T10:00:00Z", 400),
    ],
)
def test_what_makes_no_sense_is_refused(api: Client, path: str, status: int) -> None:
    assert api.get(f"/api/v1/{path}").status_code == status


def test_a_key_without_the_scope_sees_no_card() -> None:
    stranger = Client(headers={"Authorization": f"Bearer {keys.create('feeder', ['telemetry'])}"})
    assert stranger.get("/api/v1/scorecards").status_code == 403
