"""Rotations that several tests read, and the slow, obvious way to say on call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from incidents.domain.oncall.rotations import Holidays, Override, Rotation, Schedule, TimesOfWeek
from incidents.domain.oncall.spans import Span, merged

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "America/St_Johns",
    "UTC",
)
PEOPLE = ("alice", "bob", "charlie")
DAY, WEEK = timedelta(days=1), timedelta(weeks=1)


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def weekly(*people: str, start: str = "2026-03-02T09:00", turn: timedelta = WEEK, **more: object) -> Rotation:
    named = {"name": "primary", "zone": BERLIN, **more}
    return Rotation(people=people, start=datetime.fromisoformat(start), turn=turn, **named)  # type: ignore[arg-type]


def obvious(schedule: Schedule, at: datetime) -> str | None:
    """The person on call: by trying, from the override that was made last down to the first layer."""
    for override in reversed(schedule.overrides):
        if override.start <= at < override.end and override.person not in schedule.gone:
            return override.person
    for layer in reversed(schedule.layers):
        person = _turn_of(layer, schedule, at)
        if person is not None:
            return person
    return None


def _turn_of(layer: Rotation, schedule: Schedule, at: datetime) -> str | None:
    if not _applies(layer, schedule, at):
        return None
    begun = at - timedelta(days=3)  # no clock jumps that far: turns of before have begun in any case
    low = max(0, int((begun.replace(tzinfo=None) - layer.start) / layer.turn) - 1)
    number = max((n for n in range(low, low + 40) if layer.begins(n) <= at), default=None)
    if number is None:
        return None
    for further in range(len(layer.people)):
        person = layer.people[(number + further) % len(layer.people)]
        if person not in schedule.gone and not _inside(schedule.away.get(person, ()), at):
            return person
    return None


def _applies(layer: Rotation, schedule: Schedule, at: datetime) -> bool:
    if layer.end is not None and at >= layer.end.replace(tzinfo=layer.zone).astimezone(UTC):
        return False
    if layer.holidays != "include" and _inside(schedule.holidays, at) != (layer.holidays == "only"):
        return False
    return not layer.times or any(_in_times(one, layer.zone, at) for one in layer.times)


def _in_times(times: TimesOfWeek, zone: ZoneInfo, at: datetime) -> bool:
    today = datetime.combine(at.astimezone(zone).date(), datetime.min.time())
    for days in range(-3, 3):
        day = today + timedelta(days=days)
        end = times.ends if times.ends > times.begins else times.ends + DAY
        begins, ends = ((day + t).replace(tzinfo=zone).astimezone(UTC) for t in (times.begins, end))
        if day.weekday() in times.days and begins <= at < ends:
            return True
    return False


def _inside(spans: object, at: datetime) -> bool:
    return any(start <= at < end for start, end in spans)  # type: ignore[attr-defined]


# What hypothesis makes
# ----------------------------------------------------------------------------------------------------------
YEAR = st.sampled_from([2011, 2026])
"""2011 is the year in which Samoa skipped a day."""
ZONE = st.sampled_from([ZoneInfo(name) for name in ZONES])


def moments(low: datetime, high: datetime) -> st.SearchStrategy[datetime]:
    minutes = int((high - low).total_seconds() // 60)
    return st.integers(0, minutes).map(lambda n: low + timedelta(minutes=n))


@st.composite
def stretches(draw: st.DrawFn, low: datetime, high: datetime) -> Span:
    start = draw(moments(low, high))
    return start, start + timedelta(minutes=draw(st.integers(1, 20_000)))


@st.composite
def times_of_week(draw: st.DrawFn) -> TimesOfWeek:
    clock = st.integers(0, 95).map(lambda n: timedelta(minutes=15 * n))
    return TimesOfWeek(draw(st.frozensets(st.integers(0, 6), min_size=1)), draw(clock), draw(clock))


@st.composite
def rotations(draw: st.DrawFn, year: int, name: str) -> Rotation:
    begin = datetime(year, 1, 1)  # noqa: DTZ001 on the wall
    end = draw(st.none() | st.integers(2, 500).map(lambda days: begin + timedelta(days=days)))
    kinds: st.SearchStrategy[Holidays] = st.sampled_from(["include", "only", "exclude"])
    return Rotation(
        name,
        tuple(draw(st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=4))),
        begin + timedelta(minutes=15 * draw(st.integers(0, 96))),
        draw(ZONE),
        draw(st.sampled_from([timedelta(hours=h) for h in (5, 8, 12, 24, 72, 168)])),
        tuple(draw(st.lists(times_of_week(), max_size=2))),
        draw(kinds),
        end,
    )


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Schedule, datetime, datetime]:
    """A schedule, and a span of weeks in its year to look at."""
    year = draw(YEAR)
    low, high = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC)
    people = st.sampled_from(PEOPLE)
    start = draw(moments(low, high))
    end = start + timedelta(minutes=draw(st.integers(1, 40_000)))
    span = stretches(start - timedelta(days=10), end)
    overrides = [Override(draw(people), *draw(span), id=str(n)) for n in range(draw(st.integers(0, 4)))]
    return (
        Schedule(
            tuple(draw(rotations(year, f"layer {n}")) for n in range(draw(st.integers(1, 3)))),
            tuple(overrides),
            merged(draw(st.lists(span, max_size=3))),
            {person: merged(draw(st.lists(span, max_size=2))) for person in PEOPLE[:2]},
            frozenset(draw(st.lists(people, max_size=1))),
        ),
        start,
        end,
    )
