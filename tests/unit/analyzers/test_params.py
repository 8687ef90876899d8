"""Parameters as people write them."""

from dataclasses import replace

import pytest

from analyzers.builtin.deepview import ANALYZER
from analyzers.contract import InvalidParameterError, Param, check_params
from analyzers.runs.management.line_command import parse_params

PROBE = replace(
    ANALYZER,
    params=(
        Param("method", "fast", "which", choices=("fast", "slow")),
        Param("bar", 0.5, "a share", low=0, high=1),
        Param("folds", 5, "how many", low=2),
        Param("loud", False, "whether"),
        Param("label", "x", "any text"),
    ),
)


def test_defaults_fill_what_is_not_given() -> None:
    assert parse_params(PROBE, ["bar=0.25"]) == {
        "method": "fast",
        "bar": 0.25,
        "folds": 5,
        "loud": False,
        "label": "x",
    }


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("folds=7", 7),
        ("bar=1e-1", 0.1),
        ("bar=1", 1.0),
        ("loud=yes", True),
        ("label=a=b", "a=b"),
        ("loud=0", False),
    ],
)
def test_texts_become_values_of_the_right_type(pair: str, value: object) -> None:
    found = parse_params(PROBE, [pair])[pair.partition("=")[0]]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        ("bar", "not of the form NAME=VALUE"),
        ("=3", "not of the form NAME=VALUE"),
        ("bar=2", 'parameter bar="2": must be a number from 0 to 1'),
        ("bar=nan", "must be a number from 0 to 1"),
        ("bar=much", "must be a number from 0 to 1"),
        ("folds=2.5", 'parameter folds="2.5": must be a whole number of at least 2'),
        ("method=medium", 'must be one of "fast", "slow"'),
        ("loud=maybe", "must be true or false"),
        ("metod=fast", "did you mean method"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_what_would_be_right(pair: str, reason: str) -> None:
    with pytest.raises(InvalidParameterError, match=reason):
        parse_params(PROBE, [pair])


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="bar is given twice"):
        parse_params(PROBE, ["bar=0.1", "bar=0.2"])


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}])
def test_json_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameterError, match="parameter folds"):
        check_params(PROBE, {"folds": value})
