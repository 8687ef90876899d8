"""Probable teams of an incident, as far as analyzers can say: the blamed components, and the teams that own them.
Pure.

The claims about one incident are taken to exclude each other, with "none of them" beside them: each weighs its odds,
p / (1 - p), and "none" weighs 1. One claim alone keeps its probability; a claim of 99.9 % leaves little to one of 87 %.
What the data cannot tell apart shares its claim evenly. A team that owns nothing blamed gets no number of its own: it
has at most what is left for "none of them". Where somebody blames without a probability, nobody is given one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from incidents.domain.incident.finding import percent
from incidents.domain.incident.state import Incident

LIKELY: Final = 0.5
UNLIKELY: Final = 0.2
"""Below this it is probably not."""
SUREST: Final = 1 - 1e-6
"""Odds stay finite."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One of `components` is at fault, which the data cannot tell apart: so say the analyzers `by`, with `probability`
    or, where their method gives none, without."""

    components: tuple[str, ...]
    probability: float | None
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Learned:
    """Teams that resolved incidents with the same words; None of either where nothing is suggested."""

    team: str | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class TeamView:
    """Probability that an incident is a team's.

    `probability` is None where that cannot be said; with `at_most` it is a bound. `why` is a sentence without its end.
    """

    team: str
    probability: float | None
    at_most: bool
    why: str
    learned: float | None = None

    @property
    def words(self) -> str:
        """`probably theirs: 97 %`, `probably not: at most 3 %`, `no estimate`."""
        if self.probability is None:
            return "no estimate"
        likely = "probably" if self.probability >= LIKELY else "possibly"
        theirs = "probably not" if self.probability < UNLIKELY else f"{likely} theirs"
        whole = 0.01 <= self.probability <= 0.99
        share = f"{round(100 * self.probability)} %" if whole else percent(self.probability)
        return f"{theirs}: {'at most ' if self.at_most and not share.startswith('under') else ''}{share}"


def claims_about(state: Incident) -> list[Claim]:
    """Present claims of analyzers: of the incident's own cause together, of each other cause alone. Forecasts blame
    nobody.
    """
    opinions = [one for one in state.opinions.values() if not one.forecast and one.component is not None]
    agreeing = tuple(sorted(one.analyzer for one in opinions if one.stance == "blames"))
    claims: list[Claim] = []
    if agreeing and state.component is not None:
        claims.append(Claim((state.component, *state.ambiguous_with), state.confidence, agreeing))
    others: dict[tuple[str, ...], list[tuple[str, float | None]]] = {}
    for one in opinions:
        if one.stance == "blames_other":
            others.setdefault(tuple(sorted(one.cause)), []).append((one.analyzer, one.score))
    for components, entry in sorted(others.items()):
        scores = [score for _, score in entry]
        # Of several that name the same the highest counts; together they are no more sure than that.
        best = None if None in scores else max(score for score in scores if score is not None)
        claims.append(Claim(components, best, tuple(sorted(name for name, _ in entry))))
    return claims


def team_views(
    claims: Sequence[Claim],
    owners: Mapping[str, str],
    teams: Iterable[str],
    learned: Learned | None = None,
) -> list[TeamView]:
    """A view of each team, the likeliest first. `owners` tells the team of each component that is claimed."""
    known = list(dict.fromkeys([*teams, *owners.values()]))
    shares, none = _shares(claims, owners)
    views = [_view(team, claims, owners, shares, none, learned) for team in known]
    blamed = set(owners.values())

    def place(view: TeamView) -> tuple[float, float, bool, str]:
        sure = -1.0 if view.at_most or view.probability is None else view.probability
        return -sure, -(view.learned or 0.0), view.team not in blamed, view.team

    return sorted(views, key=place)


def _shares(claims: Sequence[Claim], owners: Mapping[str, str]) -> tuple[dict[str, float], float | None]:
    """By team its probability, and what is left for none of the claims; None where that cannot be said."""
    if not claims or any(one.probability is None for one in claims):
        return {}, None
    odds = [_odds(one.probability or 0.0) for one in claims]
    whole = 1.0 + sum(odds)
    shares: dict[str, float] = {}
    for claim, weight in zip(claims, odds, strict=True):
        for name in claim.components:
            team = owners[name]
            shares[team] = shares.get(team, 0.0) + weight / whole / len(claim.components)
    return shares, 1.0 / whole


def _odds(probability: float) -> float:
    bounded = min(max(probability, 0.0), SUREST)
    return bounded / (1 - bounded)


def _view(
    team: str,
    claims: Sequence[Claim],
    owners: Mapping[str, str],
    shares: Mapping[str, float],
    none: float | None,
    learned: Learned | None,
) -> TeamView:
    theirs = [one for one in claims if any(owners[name] == team for name in one.components)]
    probability = learned.probability if learned is not None and learned.team == team else None
    if not claims:
        return TeamView(team, None, False, "no analyzer suspects a component here", probability)
    if not theirs:
        return TeamView(team, none, True, "no analyzer suspects their components", probability)
    why = "; ".join(_claim_sentence(one, team, owners) for one in theirs)
    return TeamView(team, shares.get(team), False, why, probability)


def _claim_sentence(claim: Claim, team: str, owners: Mapping[str, str]) -> str:
    names = [name for name in claim.components if owners[name] == team]
    actor = " and ".join(claim.by)
    blames = f"{actor} blame{'s' if len(claim.by) == 1 else ''} {names[0]}"
    more = f" and {len(names) - 1} more of theirs" if len(names) > 1 else ""
    rest = len(claim.components) - len(names)
    apart = f", indistinguishable from {rest} of other teams" if rest else ""
    sure = ", without a probability" if claim.probability is None else ""
    return f"{blames}{more}{apart}{sure}"
