"""Runs in a report."""

from datetime import UTC, datetime, timedelta

from analyzers.queries import Run
from incidents.reports.runs import blamed

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def run(hour: int, component: str, score: float | None, region: str = "default") -> Run:
    end = NOON + hour * HOUR
    found = [{"component": component, "score": score}]
    return Run(region=region, window_start=end - HOUR, window_end=end, blamed=found)


def test_a_component_that_several_runs_blame_is_one_line_with_its_best_score() -> None:
    (line,) = blamed([run(0, "tor/t1", 0.6), run(1, "tor/t1", 0.9)])
    assert (line["runs"], line["score"]) == (2, 0.9)
    assert (line["first"], line["last"]) == ("2026-05-04T11:00:00Z", "2026-05-04T13:00:00Z")


def test_the_component_blamed_most_often_stands_first() -> None:
    lines = blamed([run(0, "tor/a", 0.9), run(0, "tor/b", 0.2), run(1, "tor/b", 0.2)])
    assert [line["component"] for line in lines] == ["tor/b", "tor/a"]


def test_the_same_name_in_two_regions_is_two_components() -> None:
    assert len(blamed([run(0, "tor/t1", 0.6, "east"), run(0, "tor/t1", 0.6, "west")])) == 2


def test_a_score_that_a_method_does_not_give_stays_unknown() -> None:
    assert blamed([run(0, "tor/t1", None)])[0]["score"] is None
