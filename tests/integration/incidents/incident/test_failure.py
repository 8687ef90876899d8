"""The state of the failure in the inbox, on pages, in the API and as of a moment, apart from the state of the work."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from analyzers.queries import Run
from incidents import queries
from incidents.domain.values import rfc3339
from incidents.incident.models import IncidentRow
from incidents.incident.rebuild import rebuild
from incidents.incident.view import failure_shown, failures_of
from ingest.queries import watermark
from tests.integration.frontend.test_pages import signed_in
from tests.integration.incidents.alerts.test_correlate import alert, send
from tests.integration.incidents.incident import test_opinions as analyzed
from tests.integration.incidents.incident.test_opinions import MINUTE, NOW, T1, T9

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", is_staff=True)


def suspect(component: str, first: int, last: int) -> dict[str, Any]:
    """It failed from so many minutes ago to so many minutes ago."""
    times: dict[str, Any] = {
        "first_failure": rfc3339(NOW - first * MINUTE),
        "last_failure": rfc3339(NOW - last * MINUTE),
    }
    return analyzed.suspect(component, **times)


def run(*suspects: dict[str, Any], minute: float = 0) -> None:
    done = analyzed.run("deepview", *suspects, minute=minute)
    Run.objects.filter(pk=done.pk).update(finished_at=timezone.now())


def over_and_going_on() -> None:
    """#1 goes on; #2, of the same severity and newer, has been over for half an hour in the same window."""
    run(suspect(T1, 50, 1))
    run(suspect(T1, 50, 1), suspect(T9, 40, 34))


def body(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_a_quiet_incident_stands_below_a_failing_one_of_the_same_severity(alice: Client) -> None:
    over_and_going_on()
    shown = queries.list_incidents(order="severity").items
    assert [view.incident.number for view in shown] == [1, 2]
    page = body(alice, "/")
    assert page.index('id="t1"') < page.index('id="t2"')
    assert page.count('data-failure="failing"') == page.count('data-failure="quiet"') == 1
    assert "still blamed" not in page


def test_pages_of_the_list_go_on_where_they_ended() -> None:
    over_and_going_on()
    first = queries.list_incidents(order="severity", limit=1)
    assert first.next is not None
    second = queries.list_incidents(order="severity", cursor=first.next, limit=1)
    assert [view.incident.number for view in (*first.items, *second.items)] == [1, 2]


def test_a_failure_that_is_over_is_told_in_the_past_tense_with_its_span(alice: Client) -> None:
    over_and_going_on()
    page = body(alice, "/incidents/2")
    assert 'data-failure="quiet"' in page
    assert "<strong>Stopped" in page
    assert 'data-failure="failing"' in body(alice, "/incidents/1")
    assert "<strong>Failing now</strong>" in body(alice, "/incidents/1")


def test_the_component_page_shows_it(alice: Client) -> None:
    over_and_going_on()
    assert 'data-failure="quiet"' in body(alice, f"/components/{T9}")


def test_the_api_tells_it_in_lists_and_alone(alice: Client) -> None:
    over_and_going_on()
    quiet = {"state": "quiet", "since": rfc3339(NOW - 34 * MINUTE)}
    assert alice.get("/api/v1/incidents/2").json()["failure"] == quiet
    listed = alice.get("/api/v1/incidents?order=severity").json()["results"]
    assert [one["failure"]["state"] for one in listed] == ["failing", "quiet"]


def test_as_of_a_moment_it_is_that_of_the_moment(alice: Client) -> None:
    run(suspect(T1, 50, 1))
    then = watermark()
    run(minute=1)
    assert failure_shown(queries.get("1")).state == "quiet"
    assert failure_shown(queries.get("1", then), then).state == "failing"
    assert 'data-failure="failing"' in body(alice, f"/incidents/1?as_of={then}")
    assert 'data-failure="failing"' in body(alice, f"/?as_of={then}")
    assert 'data-failure="quiet"' in body(alice, "/")


def test_an_answer_that_depends_on_the_clock_is_never_unchanged(alice: Client) -> None:
    run(suspect(T1, 50, 1))
    tag = alice.get("/api/v1/incidents/1")["ETag"]
    assert alice.get("/api/v1/incidents/1", headers={"If-None-Match": tag}).status_code == 200


def test_telemetry_that_stopped_is_no_data() -> None:
    run(suspect(T1, 50, 1), minute=-300)
    assert failure_shown(queries.get("1")).state == "no_data"


def test_a_list_asks_once_for_a_region_and_not_for_each_row(
    django_assert_max_num_queries: Any,
) -> None:
    run(*(suspect(f"tor/t{n}", 50, 1) for n in range(20)))
    views = queries.list_incidents().items
    assert len(views) == 20
    with django_assert_max_num_queries(1):
        found = failures_of(views)
    assert {one.state for one in found.values()} == {"failing"}


def test_an_alert_fires_and_rests() -> None:
    send(alert("disk"))
    assert failure_shown(queries.get("1")).state == "failing"
    send(alert("disk", status="resolved"))
    row = IncidentRow.objects.get(number=1)
    assert failure_shown(queries.get("1")).state == "quiet"
    assert row.quiet is (row.state != "resolved")


def test_the_column_that_lists_are_ordered_by_is_rebuilt() -> None:
    over_and_going_on()
    before = dict(IncidentRow.objects.values_list("number", "quiet"))
    rebuild()
    assert dict(IncidentRow.objects.values_list("number", "quiet")) == before == {1: False, 2: True}
