"""The contract between Dossier and an analyzer. Stable: plugins import it.

An analyzer is data and one pure function: `Analyzer(name, version, title, inputs, params, analyze)` where
`analyze(window, params) -> Verdict`. It reads no clock, no database and no unseeded randomness, and does not
write to what it is given. The shell around it (`analyzers.runner`) checks parameters, bounds time, catches
what is raised, and adds analyzer, version, parameters, window and seconds to the verdict. A crash is never a
verdict; doubt is `inconclusive`. Importing this module imports neither Django nor numpy.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, Literal

from ingest.telemetry.windows.reductions import (
    STILL_GOING,
    AsOf,
    Count,
    CountDistinct,
    CountWitnesses,
    Each,
    Input,
    Paths,
    Reduction,
    Sum,
    Sums,
)

__all__ = [
    "ASSUMPTIONS",
    "FAILS",
    "STILL_GOING",
    "Analyzer",
    "AsOf",
    "Assumption",
    "Count",
    "CountDistinct",
    "CountWitnesses",
    "Deferred",
    "Each",
    "Estimate",
    "Evidence",
    "Input",
    "InvalidParameterError",
    "Param",
    "ParamValue",
    "Params",
    "Paths",
    "Reduction",
    "Status",
    "Sum",
    "Sums",
    "Suspect",
    "Verdict",
    "Window",
    "chart",
    "check_params",
    "describe",
    "inconclusive",
    "quiet",
    "refusal",
    "table",
    "text",
]

ParamValue = bool | int | float | str
Params = Mapping[str, ParamValue]
Status = Literal["named", "quiet", "inconclusive"]
Json = Any  # a value that json.dumps accepts


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The telemetry of a span of time `[start, end)` in one region, summed as the analyzer's input declares.

    `input` names the `Input` that was used and `sums` holds its reductions by name. `history` are the windows
    of the same length before this one, oldest first, without history of their own; it may be empty or have
    gaps.
    """

    start: datetime
    end: datetime
    region: str
    input: str
    sums: Mapping[str, Sums]
    history: tuple[Window, ...] = ()

    @property
    def length(self) -> timedelta:
        return self.end - self.start


FAILS = "fails {} of what depends on it"

INVENTORY = "fleet"
"""A reduction of this name says what there is and nothing of how it fares: who is only in it was not looked at, and no
analyzer missed it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A failure rate (share of units, attempts or time) with the ends of its 95 % confidence interval, all in
    [0, 1].

    `phrase` says what the share is of, as the end of a sentence that begins with the component; `{}` is the share.
    """

    failure_rate: float
    low: float
    high: float
    phrase: str = FAILS


@dataclass(frozen=True, slots=True)
class Evidence:
    """A table, a Vega-Lite chart with its data inline, or a text. Made by `table`, `chart` and `text`."""

    kind: Literal["table", "chart", "text"]
    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Json, ...], ...] = ()
    chart: Mapping[str, Json] = field(default_factory=dict)
    text: str = ""


def table(
    title: str, columns: tuple[str, ...], rows: tuple[tuple[Json, ...], ...], note: str = ""
) -> Evidence:
    """A table; `note` is a sentence shown under it."""
    return Evidence("table", title, columns=columns, rows=rows, text=note)


def chart(title: str, spec: Mapping[str, Json], note: str = "") -> Evidence:
    """A Vega-Lite specification with its data inline; `note` is a sentence shown under it."""
    return Evidence("chart", title, chart=spec, text=note)


def text(title: str, body: str) -> Evidence:
    return Evidence("text", title, text=body)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A blamed component.

    `score` is the calibrated probability that the component is at fault, in [0, 1], or None where the method
    cannot calibrate. `ambiguous_with` names the components that the data cannot tell apart from it, sorted.
    `sure` is the analyzer's own statement that one window is enough to act on. `last_failure` is the end of
    the last slice in which what the component carries failed beyond what is usual, if known: what comes after it
    does not open a resolved incident again.

    `says` is what is wrong in words, for titles: the end of a sentence that begins with the component, without the
    full stop, at most 200 characters. `forecast` says that nothing has failed yet and something is expected to: its
    incident is one of severity `info`, and it is no witness that the component is at fault. A forecast that is `sure`
    opens one after a single window; others, as other suspects, after two of three windows of a schedule.

    `indicator` names the signal that shows the fault, such as `all_reduce duration`, at most 100 characters. `path`
    are the components from the cause to the symptom: the suspect first, each once, at least two.
    """

    component: str
    score: float | None
    summary: str
    p_value: float | None = None
    q_value: float | None = None
    estimate: Estimate | None = None
    ambiguous_with: tuple[str, ...] = ()
    sure: bool = False
    first_failure: datetime | None = None
    last_failure: datetime | None = None
    phrase: str = ""
    forecast: bool = False
    indicator: str = ""
    path: tuple[str, ...] = ()


ASSUMPTIONS = {
    "history": "the windows before show what is normal",
    "sampling": "the rows are a fair sample of what happened",
    "noise": "failures without a fault scatter as learnt",
    "topology": "the rows pass the components that they name",
}
"""The assumptions that methods share, by name, each as the statement that was checked. A method may have others."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption of the method that was checked on this window, and whether it holds.

    `name` is one of `ASSUMPTIONS` or a name of the method's own (lower case letters, digits, underscores). `detail` is
    one sentence with the figure that was checked. Where an assumption does not hold, the method lowers its
    probabilities or abstains, and `detail` says which.
    """

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Conclusion of one analyzer about one window. `suspects` holds the blamed only, best first; `assumptions` those
    that were checked, each name once."""

    status: Status
    suspects: tuple[Suspect, ...] = ()
    reason: str | None = None
    measures: Mapping[str, Json] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    assumptions: tuple[Assumption, ...] = ()


def quiet(
    measures: Mapping[str, Json] | None = None,
    evidence: tuple[Evidence, ...] = (),
    assumptions: tuple[Assumption, ...] = (),
) -> Verdict:
    return Verdict("quiet", measures=measures or {}, evidence=evidence, assumptions=assumptions)


def inconclusive(
    reason: str, measures: Mapping[str, Json] | None = None, assumptions: tuple[Assumption, ...] = ()
) -> Verdict:
    return Verdict("inconclusive", reason=reason, measures=measures or {}, assumptions=assumptions)


@dataclass(frozen=True, slots=True)
class Deferred:
    """A function by its address, `package.module:function`; the first call imports the module.

    `Analyzer(analyze=Deferred("my_package.method:analyze"))` keeps numpy and the method out of processes that only list
    analyzers. It is a convenience: a plain function works as well.
    """

    address: str

    def load(self) -> Callable[..., Any]:
        """The function. Raises ImportError or AttributeError where the address leads nowhere."""
        module, _, name = self.address.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found

    def __call__(self, *arguments: Any) -> Any:
        return self.load()(*arguments)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: its default fixes its type; `choices`, `low` and `high` (inclusive) bound it.

    `check` is for a text that is a document of its own, such as a rule file: it returns why a text cannot be taken, or
    None. An empty text is none and is not checked.
    """

    name: str
    default: ParamValue
    help: str
    choices: tuple[ParamValue, ...] = ()
    low: float | None = None
    high: float | None = None
    check: Callable[[str], str | None] | None = None


@dataclass(frozen=True, slots=True)
class Analyzer:
    """An analyzer, as found under the entry-point group `dossier.analyzers`.

    `name` is lower case letters, digits and underscores and never changes; `version` is major.minor.patch and
    changes whenever the same window could give another verdict. `inputs` are alternatives, in order of
    preference. `history` is how many preceding windows it would like, `length` the usual length of a window: forms
    begin with it.
    """

    name: str
    version: str
    title: str
    inputs: tuple[Input, ...]
    params: tuple[Param, ...]
    analyze: Callable[[Window, Params], Verdict]
    history: int = 0
    length: timedelta = timedelta(hours=1)


# Parameters as users give them, made into the values that an analyzer declared
# ----------------------------------------------------------------------------------------------------------
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


class InvalidParameterError(ValueError):
    """A parameter that the analyzer does not have or cannot take; the message says what would be right."""


def check_params(analyzer: Analyzer, given: Mapping[str, object]) -> dict[str, ParamValue]:
    """The complete parameters from JSON values (or strings); raises InvalidParameterError naming name, value and what
    is right.
    """
    known = {param.name: param for param in analyzer.params}
    for name in given:
        if name not in known:
            raise InvalidParameterError(_unknown(analyzer, name, list(known)))
    return {
        name: _checked(param, given[name]) if name in given else param.default
        for name, param in known.items()
    }


def describe(param: Param) -> str:
    """Values that the parameter takes, in words: `one of "a", "b"` or `a number from 0 to 1`."""
    if param.choices:
        return "one of " + ", ".join(_shown(choice) for choice in param.choices)
    if isinstance(param.default, bool):
        return "true or false"
    if isinstance(param.default, str):
        return "a text" if param.check is None else "a document; on a command line @FILE reads one"
    noun = "a whole number" if isinstance(param.default, int) else "a number"
    if param.low is not None and param.high is not None:
        return f"{noun} from {param.low:g} to {param.high:g}"
    if param.low is not None:
        return f"{noun} of at least {param.low:g}"
    if param.high is not None:
        return f"{noun} of at most {param.high:g}"
    return noun


def refusal(param: Param, value: ParamValue) -> str | None:
    """Reason why a value of the right type is out of bounds, or None."""
    if param.choices and value not in param.choices:
        return f"must be {describe(param)}"
    if param.check is not None and isinstance(value, str) and value:
        return param.check(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        too_low = param.low is not None and value < param.low
        too_high = param.high is not None and value > param.high
        if too_low or too_high or not math.isfinite(value):
            return f"must be {describe(param)}"
    return None


def _checked(param: Param, raw: object) -> ParamValue:
    value = _typed(param, raw)
    reason = f"must be {describe(param)}" if value is None else refusal(param, value)
    if value is None or reason is not None:
        named = param.name if param.check is not None else f"{param.name}={_shown(raw)}"
        raise InvalidParameterError(f"parameter {named}: {reason}")
    return value


def _typed(param: Param, raw: object) -> ParamValue | None:
    """The raw value in the type of the default, or None if it cannot be one."""
    if isinstance(param.default, bool):
        return _as_bool(raw)
    if isinstance(param.default, str):
        return raw if isinstance(raw, str) else None
    number = _as_number(raw)
    if number is None:
        return None
    if isinstance(param.default, int):
        return int(number) if number == int(number) else None
    return number


def _as_bool(raw: object) -> bool | None:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in _TRUE | _FALSE:
        return raw.lower() in _TRUE
    return None


def _as_number(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        return None
    try:
        number = float(raw)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _unknown(analyzer: Analyzer, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    have = ", ".join(known) if known else "none"
    return f"{analyzer.name} has no parameter {name!r}: {hint}it has {have}"


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
