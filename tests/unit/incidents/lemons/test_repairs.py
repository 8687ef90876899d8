from datetime import UTC, datetime, timedelta

from incidents.domain.lemons.repairs import PartIncident, repair_rates

START = datetime(2026, 5, 1, tzinfo=UTC)


def day(n: int) -> datetime:
    return START + timedelta(days=n)


def test_no_fault_found_and_what_came_back_are_counted_once_each() -> None:
    resolved = [
        PartIncident("gpu/1", day(0), day(1), found=True),  # again on day 20
        PartIncident(
            "gpu/1", day(20), day(21), found=False, unchanged=True
        ),  # again on day 25: not found counts
        PartIncident("gpu/2", day(3), day(4), found=True),  # again after 40 days: another failure
        PartIncident("gpu/3", day(5), day(6), found=True),
    ]
    opened = {"gpu/1": [day(0), day(20), day(25)], "gpu/2": [day(3), day(44)], "gpu/3": [day(5)]}
    (all_, batch) = repair_rates(resolved, opened, {"all": ["gpu/1", "gpu/2", "gpu/3"], "batch A": ["gpu/1"]})
    assert (all_.incidents, all_.no_fault_found, all_.came_back, all_.share) == (4, 1, 1, 0.5)
    assert (batch.incidents, batch.share) == (2, 1.0)
    assert (all_.returned_unchanged, batch.returned_unchanged) == (1, 1)
    assert all_.low < 0.5 < all_.high


def test_parts_without_an_incident_have_no_rate() -> None:
    assert repair_rates([], {}, {"all": ["gpu/1"]}) == []
