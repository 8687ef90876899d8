"""Teams whose incident it probably is, as far as analyzers can say."""

from __future__ import annotations

import pytest

from incidents.domain.similarity.team_odds import Claim, Learned, TeamView, claims_about, team_views
from tests.unit.incidents.incident.cases import after, blamed, finding

OWNERS = {"disk/d1": "storage", "tor/t1": "network", "tor/t2": "network"}
TEAMS = ("compute", "network", "storage")


def views(*claims: Claim, learned: Learned | None = None) -> dict[str, TeamView]:
    named = {name for claim in claims for name in claim.components}
    owners = {name: team for name, team in OWNERS.items() if name in named}
    return {view.team: view for view in team_views(claims, owners, TEAMS, learned)}


DISK = Claim(("disk/d1",), 0.97, ("deepview",))
SWITCH = Claim(("tor/t1",), 0.87, ("netbouncer",))


def test_one_claim_alone_keeps_its_probability() -> None:
    assert views(DISK)["storage"].probability == pytest.approx(0.97)


def test_a_team_that_owns_nothing_blamed_has_at_most_what_is_left() -> None:
    view = views(DISK)["compute"]
    assert (view.at_most, view.words) == (True, "probably not: at most 3 %")


def test_claims_of_two_teams_share_by_their_odds() -> None:
    found = views(DISK, SWITCH)
    shares = [found[team].probability or 0 for team in ("storage", "network")]
    assert shares == pytest.approx([32.333 / 40.026, 6.692 / 40.026], abs=1e-3)


def test_the_shares_and_what_is_left_are_one_whole() -> None:
    found = views(DISK, SWITCH)
    assert sum(view.probability or 0 for view in found.values()) == pytest.approx(1)


def test_what_cannot_be_told_apart_shares_a_claim_evenly() -> None:
    found = views(Claim(("disk/d1", "tor/t1"), 0.9, ("deepview",)))
    assert found["storage"].probability == found["network"].probability == pytest.approx(0.45)
    assert "indistinguishable from 1 of other teams" in found["storage"].why


def test_the_likeliest_team_comes_first() -> None:
    assert list(views(SWITCH, DISK)) == ["storage", "network", "compute"]


def test_blame_without_a_probability_gives_nobody_one() -> None:
    found = views(DISK, Claim(("tor/t1",), None, ("selector",)))
    assert {view.probability for view in found.values()} == {None}
    assert found["network"].why.endswith("without a probability")
    assert list(found)[-1] == "compute"


def test_without_claims_it_abstains() -> None:
    view = views()["storage"]
    assert (view.words, view.why) == ("no estimate", "no analyzer suspects a component here")


def test_without_claims_the_team_that_such_tickets_went_to_comes_first() -> None:
    found = views(learned=Learned("storage", 0.9))
    assert (next(iter(found)), found["storage"].learned) == ("storage", 0.9)


def test_a_certainty_leaves_the_others_next_to_nothing_and_never_fails() -> None:
    found = views(Claim(("disk/d1",), 1.0, ("deepview",)), SWITCH)
    assert found["network"].words == "probably not: under 0.1 %"


def test_a_ticket_of_a_finding_claims_its_component() -> None:
    (claim,) = claims_about(after(blamed(finding("storage_cluster/s7"))))
    assert (claim.components, claim.by) == (("storage_cluster/s7",), ("deepview",))


def test_a_component_of_a_team_that_is_not_listed_still_has_a_view() -> None:
    found = team_views([DISK], {"disk/d1": "gone"}, TEAMS)
    assert found[0].team == "gone"
