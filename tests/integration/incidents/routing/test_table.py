"""The routing table is parsed once for each version of its rows."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from incidents.domain.routing import schema
from incidents.domain.routing.rules import Conditions
from incidents.teams import models
from incidents.teams.models import Route, Service, Team, routing_table

pytestmark = pytest.mark.django_db


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The patterns that were parsed."""
    parsed: list[str] = []
    parse = schema.conditions_from

    def counted(pattern: object, when: object) -> Conditions:
        parsed.append(str(pattern))
        return parse(pattern, when)

    monkeypatch.setattr(schema, "conditions_from", counted)
    monkeypatch.setattr(models, "_last", [])
    Route.objects.update(parent=None)
    Route.objects.all().delete()
    Route.objects.create(name="racks", order=1, pattern="rack/*", team=Team.objects.first())
    return parsed


def test_the_same_rows_are_parsed_once(parses: list[str]) -> None:
    assert routing_table() is routing_table()
    assert parses == ["rack/*"]


@pytest.mark.parametrize("change", ["rule", "team", "service", "default"])
def test_a_change_of_what_it_holds_is_seen_at_once(change: str, parses: list[str]) -> None:
    before = routing_table()
    if change == "rule":
        Route.objects.update(pattern="host/*")
    elif change == "team":
        Team.objects.update(name="Renamed")
    elif change == "service":
        Service.objects.create(slug="disks", name="Disks", patterns=["disk/*"])
    else:
        old = Team.objects.get(is_default=True)
        other = Team.objects.exclude(pk=old.pk)[0]
        Team.objects.filter(pk=old.pk).update(is_default=False)
        Team.objects.filter(pk=other.pk).update(is_default=True)
    assert routing_table() != before
    assert len(parses) == 2


@pytest.mark.usefixtures("parses")
def test_a_change_that_is_rolled_back_leaves_nothing() -> None:
    before = routing_table()
    with transaction.atomic():
        Route.objects.update(pattern="host/*")
        assert routing_table() != before
        transaction.set_rollback(True)
    assert routing_table() == before


def test_it_takes_four_queries_whatever_the_number_of_rules(parses: list[str]) -> None:
    team = Team.objects.first()
    Route.objects.bulk_create(
        Route(name=f"rule-{i}", order=i, pattern=f"rack/{i}", team=team) for i in range(30)
    )
    with CaptureQueriesContext(connection) as asked:
        routing_table()
    assert len(asked) == 4
    assert len(parses) == 31
