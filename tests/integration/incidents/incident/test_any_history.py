"""No sequence of commands, duplicates, reorderings or crashes leaves an incident unroutable, un-notified without a
recorded reason, or different after a rebuild."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.integration.incidents.incident.history import STEPS, World, happens, people_and_policies
from tests.integration.incidents.notifications.cases import HookSink

History = list[tuple[str, int, str]]
pytestmark = pytest.mark.usefixtures("log_database")
histories = st.lists(
    st.tuples(
        st.sampled_from(STEPS),
        st.integers(0, 41),
        st.sampled_from(["once", "once", "once", "twice", "killed", "lost"]),
    ),
    min_size=1,
    max_size=25,
)
ANY = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture
def sink(hooks: HookSink) -> HookSink:
    people_and_policies(hooks.url)
    return hooks


@settings(ANY, max_examples=6, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(histories)
def test_whatever_happens_nobody_is_forgotten_without_a_reason(sink: HookSink, history: History) -> None:
    happens(World(sink), history)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(10))
@settings(ANY, max_examples=40)
@given(history=histories)
def test_whatever_happens_for_long_nobody_is_forgotten(
    sink: HookSink,
    part: int,  # noqa: ARG001
    history: History,
) -> None:
    """400 histories in ten parts, each with a database of its own: one can be run alone, or again."""
    happens(World(sink), history)
