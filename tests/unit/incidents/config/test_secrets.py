"""A file of configuration names the variable that holds a secret, never the secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.config.secrets import MissingVariableError, reference, resolved


def test_a_secret_is_named_by_what_it_belongs_to() -> None:
    assert reference("CHANNEL_ADDRESS", "ops-room") == "${CHANNEL_ADDRESS_OPS_ROOM}"


@pytest.mark.parametrize(
    ("one", "other"), [("ops-room", "ops_room"), ("ops", "Ops"), ("a--b", "a-b"), ("a_-b", "a-_b")]
)
def test_names_that_a_variable_cannot_tell_apart_have_variables_of_their_own(one: str, other: str) -> None:
    assert reference("X", one) != reference("X", other)


def test_a_persons_name_and_that_of_their_method_do_not_run_into_each_other() -> None:
    assert reference("X", "al", "i-ce") == "${X_AL__I_CE}"
    assert reference("X", "al-i", "ce") != reference("X", "al", "i-ce")


@given(st.from_regex(r"[-a-zA-Z0-9_]{1,60}", fullmatch=True), st.text(min_size=1))
def test_what_is_written_for_any_name_is_read_from_the_environment(name: str, secret: str) -> None:
    written = reference("CHANNEL_ADDRESS", name)
    assert resolved(written, {written[2:-1]: secret}) == secret


def test_a_text_that_names_no_variable_is_meant_as_it_stands() -> None:
    assert resolved("ntfy://ntfy.sh/${ROOM}", {"ROOM": "secret"}) == "ntfy://ntfy.sh/${ROOM}"


@pytest.mark.parametrize("environment", [{}, {"ROOM": ""}])
def test_a_variable_that_is_not_given_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(MissingVariableError, match=r"^ROOM$"):
        resolved("${ROOM}", environment)
