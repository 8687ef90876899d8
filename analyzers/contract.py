"""The contract between Dossier and an analyzer. Stable: plugins import it.

An analyzer is data and one pure function: `Analyzer(name, version, title, inputs, params, analyze)` where
`analyze(window, params) -> Verdict`. It reads no clock, no database and no unseeded randomness, and does not
write to what it is given. The shell around it (`analyzers.runner`) checks parameters, bounds time, catches
what is raised, and adds analyzer, version, parameters, window and seconds to the verdict. A crash is never a
verdict; doubt is `inconclusive`. Importing this module imports neither Django nor numpy.
"""

from __future__ import annotations

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
    "inconclusive",
    "quiet",
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
    incident is one of severity `info`, and it is no witness that the component is at fault.

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
    says: str = ""
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
    """What one analyzer concluded about one window. `suspects` holds the blamed only, best first; `assumptions` those
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
    preference. `history` is how many preceding windows it would like.
    """

    name: str
    version: str
    title: str
    inputs: tuple[Input, ...]
    params: tuple[Param, ...]
    analyze: Callable[[Window, Params], Verdict]
    history: int = 0
