"""Ratio of failures of far placements to those of near ones."""

from __future__ import annotations

from analyzers.builtin.colocation.analysis import per_thousand, ratio_sentence
from analyzers.builtin.stats.rate_ratio import RateRatio, TooFewCountsError, what_if_colocation
from analyzers.builtin.text import figure
from analyzers.calculators.form import Answer, Calculator, Figure, Range, Rows, Values, place

_MOST = 1_000_000_000.0
_TIMES = (0.25, 1.0, 4.0, 16.0)

INPUTS = (
    Figure(
        "near_failures", "Failures of near units", "failures", 10_000, 0, _MOST,
        "Failures of units placed near their dependencies.", 1, 1_000_000, log=True, whole=True,
    ),
    Figure(
        "near_unit_days", "Near units were up", "unit-days", 1_000_000, 0.001, _MOST,
        "Units times days: a thousand units for a month are 30,000.", 100, 100_000_000, log=True,
    ),
    Figure(
        "far_failures", "Failures of far units", "failures", 11_140, 0, _MOST,
        "The same of those placed farther away.", 1, 1_000_000, log=True, whole=True,
    ),
    Figure(
        "far_unit_days", "Far units were up", "unit-days", 1_000_000, 0.001, _MOST, "Only time up is time at risk.",
        100, 100_000_000, log=True,
    ),
)  # fmt: skip


def work(values: Values) -> Answer:
    found = _ratio(values, 1.0)
    near, far = (
        per_thousand(values[f"{side}_failures"], values[f"{side}_unit_days"]) for side in ("near", "far")
    )
    rates = f"Near: {near:,.4g} failures in 1,000 unit-days; far: {far:,.4g}."
    return Answer(
        shown=_signed(found.ratio),
        verdict="Distance makes a difference" if found.differs else "These figures do not decide",
        good=None,
        sentences=(ratio_sentence(found), rates),
        measures={
            "ratio": found.ratio,
            "low": found.low,
            "high": found.high,
            "differs": found.differs,
            "near_per_1000_unit_days": near,
            "far_per_1000_unit_days": far,
        },
        drawings=(_range(found),),
        tables=(_with_more(values),),
    )


def _ratio(values: Values, times: float) -> RateRatio:
    try:
        return what_if_colocation(
            values["near_failures"] * times,
            values["near_unit_days"] * times,
            values["far_failures"] * times,
            values["far_unit_days"] * times,
        )
    except TooFewCountsError as error:
        raise ValueError(str(error)) from error


def _signed(ratio: float) -> str:
    return f"{'+' if ratio >= 0 else '−'}{figure(abs(100 * ratio), 3)} %"


def _range(found: RateRatio) -> Range:
    """On an axis around no difference that holds the whole interval."""
    reach = max(abs(found.low), abs(found.high)) * 1.1
    low, high = max(-1.0, -reach), reach
    return Range(
        title="Far against near, with the 95 % interval",
        low=place(found.low, low, high),
        middle=place(found.ratio, low, high),
        high=place(found.high, low, high),
        zero=place(0.0, low, high),
        ends=(_signed(low), _signed(high)),
        words=f"{_signed(found.ratio)}, from {_signed(found.low)} to {_signed(found.high)}.",
    )


def _with_more(values: Values) -> Rows:
    """The same rates seen for shorter and longer: how much has to be watched before it shows."""
    rows = []
    for times in _TIMES:
        found = _ratio(values, times)
        days = (values["near_unit_days"] + values["far_unit_days"]) * times
        rows.append(
            (
                f"{figure(days, 4)}",
                f"{_signed(found.low)} to {_signed(found.high)}",
                "yes" if found.differs else "no",
            )
        )
    columns = ("Unit-days in all", "95 % interval", "Shows a difference")
    return Rows("The same rates, watched for longer or shorter", columns, tuple(rows), here=1)


COLOCATION = Calculator(
    slug="colocation",
    title="Co-location",
    question="Do units fail more often when what they depend on is placed farther away, and can the figures show it?",
    formula="(far failures ÷ far unit-days) ÷ (near failures ÷ near unit-days) − 1",
    analyzer="colocation",
    inputs=INPUTS,
    work=work,
)
