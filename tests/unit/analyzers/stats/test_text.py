"""Figures in the sentences of analyzers."""

import pytest

from analyzers.builtin.text import figure


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (252_180.0, "252,200"),
        (999.96, "1,000"),
        (23.47, "23.47"),
        (0.005845, "0.005845"),
        (3.0, "3"),
        (-1834.0, "-1,834"),
    ],
)
def test_a_figure_is_no_power_of_ten(value: float, said: str) -> None:
    assert figure(value) == said
