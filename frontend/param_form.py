"""An analyzer's parameters as fields of a form, and what was typed into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.commands import InvalidParameterError, check_params, describe
from analyzers.contract import Analyzer, Param, ParamValue

PREFIX = "param-"


@dataclass(frozen=True, slots=True)
class Field:
    """`value` is what the field shows, `problem` why it cannot be taken; `choices` are empty for what is typed. A
    `document` has lines.
    """

    name: str
    value: str
    default: str
    help: str
    takes: str
    choices: tuple[str, ...]
    number: bool
    problem: str = ""
    document: bool = False

    @property
    def changed(self) -> bool:
        return self.value != self.default


def fields(
    analyzer: Analyzer, values: Mapping[str, Any] | None = None, problems: Mapping[str, str] | None = None
) -> list[Field]:
    """The form as `values` (typed texts or JSON values, by parameter) have it, defaults elsewhere."""
    given = values or {}
    return [
        Field(
            name=one.name,
            value=text(given.get(one.name, one.default)),
            default=text(one.default),
            help=one.help,
            takes=describe(one),
            choices=_choices(one),
            number=not isinstance(one.default, str | bool),
            problem=(problems or {}).get(one.name, ""),
            document=one.check is not None,
        )
        for one in analyzer.params
    ]


def typed(analyzer: Analyzer, form: Mapping[str, Any]) -> dict[str, str]:
    """Typed text, by parameter; a field that is missing or empty is left out."""
    found = {one.name: str(form.get(f"{PREFIX}{one.name}", "")).strip() for one in analyzer.params}
    return {name: value for name, value in found.items() if value}


def read(analyzer: Analyzer, form: Mapping[str, Any]) -> tuple[dict[str, ParamValue], dict[str, str]]:
    """The parameters that differ from their defaults, and by name why one cannot be taken."""
    values: dict[str, ParamValue] = {}
    problems: dict[str, str] = {}
    for one in analyzer.params:
        given = typed(analyzer, form)
        if one.name not in given:
            continue
        try:
            value = check_params(analyzer, {one.name: given[one.name]})[one.name]
        except InvalidParameterError as error:
            problems[one.name] = str(error).partition(": ")[2]
            continue
        if value != one.default:
            values[one.name] = value
    return values, problems


def text(value: Any) -> str:
    """As a field shows it, and reads it again."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _choices(param: Param) -> tuple[str, ...]:
    if isinstance(param.default, bool):
        return ("no", "yes")
    return tuple(text(one) for one in param.choices)
