"""A service that fails and often does not say so: its callers end otherwise and must not be blamed in its place."""

from __future__ import annotations

import numpy as np
import pytest

from analyzers.builtin.trace_blame.analyzer import ANALYZER
from analyzers.contract import Window
from analyzers.runner import judge
from analyzers.simulators.trace_rows import window
from analyzers.simulators.traces import COLUMNS, MINUTE_US, SpanColumns
from tests.worlds.trace_blame import make
from tests.worlds.trace_blame_logs import make as make_logged

TRACES = 60
PAGES = ("home", "play", "search")
HISTORY = 4


def minute(
    rng: np.random.Generator,
    number: int,
    failing: float = 0.0,
    stopping: float = 0.0,
    harmless: float = 0.0,
    slow: float = 1.0,
    slow_stock: float = 1.0,
    shops: int = 1,
) -> SpanColumns:
    """A shop asks `users`, then `stock`, for each of three pages. `users` fails for a share of `failing` and says so in
    half of them; the shop leaves out `stock` then, and for a share of `stopping` besides. Errors of `users`
    for a share of `harmless` have no effect. The shop takes `slow` times as long, where `users` fails sometimes
    only then: it waits before it tries again. `stock` takes `slow_stock` times as long. The shop has so many instances.
    """
    own = np.array([[900.0], [700.0], [1000.0]]) * np.exp(rng.normal(0, 0.3, (3, TRACES)))
    own[2] *= slow_stock
    trace = np.arange(TRACES) + 1 + 1000 * number
    start = np.sort(rng.uniform(0, MINUTE_US, TRACES)) + number * MINUTE_US
    failed, stopped = rng.random(TRACES) < failing, rng.random(TRACES) < stopping
    own[0] *= np.where(failed | (failing == 0), slow, 1.0)
    error = (failed & (rng.random(TRACES) < 0.5)) | (rng.random(TRACES) < harmless)
    asks_stock = ~(failed | stopped)
    page = np.array([f"GET {name}" for name in PAGES])[rng.integers(0, len(PAGES), TRACES)]
    whole = own[0] + own[1] + np.where(asks_stock, own[2], 0.0)
    never, every = np.zeros(TRACES, dtype=np.bool_), np.ones(TRACES, dtype=np.bool_)
    parts = []
    for place, (name, operation, begins, duration, bad, made) in enumerate(
        (
            ("shop", page, start, whole, error, every),
            ("users", np.full(TRACES, "check"), start + own[0] / 2, own[1], error, every),
            ("stock", np.full(TRACES, "list"), start + own[0] / 2 + own[1], own[2], never, asks_stock),
        )
    ):
        part = {
            "trace": trace,
            "span": trace * 10 + place,
            "parent": np.zeros(TRACES, dtype=np.int64) if place == 0 else trace * 10,
            "service": np.full(TRACES, name),
            "pod": np.array(
                [f"{name}-{'abc'[one % (shops if name == 'shop' else 1)]}" for one in range(TRACES)]
            ),
            "operation": operation,
            "time": begins,
            "duration_us": duration,
            "error": bad,
        }
        parts.append({name: column[made] for name, column in part.items()})
    return SpanColumns({name: np.concatenate([part[name] for part in parts]) for name in COLUMNS})


def last(
    failing: float, stopping: float, before: float, slow: float = 1.0, slow_stock: float = 1.0, shops: int = 1
) -> Window:
    """`before` is the share of harmless errors in the history."""
    rng = np.random.default_rng(11)
    past = tuple(
        window(minute(rng, number, harmless=before, shops=shops), number) for number in range(HISTORY)
    )
    now = minute(rng, HISTORY, failing, stopping, slow=slow, slow_stock=slow_stock, shops=shops)
    return window(now, HISTORY, past)


@pytest.mark.parametrize(
    ("failing", "stopping", "before", "named"),
    [
        (0.6, 0.0, 0.0, ["service/users"]),  # the shop's three changed pages follow from it
        (0.6, 0.0, 0.02, ["service/users"]),  # its errors are known, and now there are more
        (0.0, 0.6, 0.0, ["service/shop"]),  # nobody below shows anything
    ],
)
def test_a_caller_that_ends_otherwise_is_blamed_only_where_no_called_service_fails(
    failing: float, stopping: float, before: float, named: list[str]
) -> None:
    verdict = judge(ANALYZER, last(failing, stopping, before))
    assert [one["component"] for one in verdict["suspects"]] == named


@pytest.mark.parametrize(("failing", "named"), [(0.6, ["service/users"]), (0.0, ["service/shop"])])
def test_a_caller_that_waits_before_it_tries_again_is_not_blamed_for_its_time(
    failing: float, named: list[str]
) -> None:
    verdict = judge(ANALYZER, last(failing, 0.0, 0.02, slow=6.0))
    assert [one["component"] for one in verdict["suspects"]] == named


@pytest.mark.simulated
@pytest.mark.parametrize("slow", [1.0, 6.0])
@pytest.mark.parametrize("shops", [2, 3])
def test_no_instance_of_a_caller_is_named_beside_a_called_service_that_fails(shops: int, slow: float) -> None:
    verdict = judge(ANALYZER, last(0.6, 0.0, 0.0, slow=slow, shops=shops))
    assert [one["component"] for one in verdict["suspects"]] == ["service/users"]


def test_a_caller_that_leaves_out_calls_is_one_entry_with_the_service_that_it_asked_before() -> None:
    (suspect,) = judge(ANALYZER, last(0.0, 0.6, 0.0))["suspects"]
    assert set(suspect["ambiguous_with"]) == {"instance/shop-a", "service/users", "instance/users-a"}
    assert "Either users answers otherwise, or shop leaves out calls" in suspect["summary"]


def test_where_spans_show_too_little_the_verdict_asks_for_logs_and_names_nobody() -> None:
    verdict = judge(ANALYZER, last(0.0, 0.15, 0.0))
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
    assert "Needed: counts of its log records (kind log_count)" in verdict["reason"]


@pytest.mark.simulated
def test_a_service_that_answers_otherwise_is_named_where_records_of_its_caller_name_it() -> None:
    world = make_logged(750, "return")
    window = next(one for one in world.windows(ANALYZER) if world.faults_between(one.start, one.end))
    (suspect,) = judge(ANALYZER, window, {})["suspects"]
    assert (suspect["component"], suspect["ambiguous_with"]) == ("service/query", ["service/front"])


@pytest.mark.parametrize("slow", [1.0, 6.0])
def test_a_common_caller_of_two_faulty_services_is_not_named_beside_or_before_them(slow: float) -> None:
    verdict = judge(ANALYZER, last(0.6, 0.0, 0.0, slow=slow, slow_stock=30.0))
    assert {one["component"] for one in verdict["suspects"]} == {"service/users", "service/stock"}


@pytest.mark.simulated
def test_a_gateway_that_retries_requests_is_not_named_in_place_of_the_service_that_fails_them() -> None:
    world = make(601, "exception_sparse")
    window = next(one for one in world.windows(ANALYZER) if world.faults_between(one.start, one.end))
    named = {one["component"] for one in judge(ANALYZER, window, {})["suspects"]}
    assert named == {fault.component for fault in world.faults_between(window.start, window.end)}
