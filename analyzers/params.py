"""Parameters as users write them (`K=V`, or JSON values) made into the values that an analyzer declared."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from analyzers.contract import Analyzer, Param, Params, ParamValue

_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


class InvalidParameterError(ValueError):
    """A parameter that the analyzer does not have or cannot take; the message says what would be right."""


def parse_params(analyzer: Analyzer, pairs: Iterable[str]) -> dict[str, ParamValue]:
    """The complete parameters (defaults filled in) from `K=V` strings, as on a command line.

    `K=@FILE` takes the text of a file, for parameters that are documents. Raises InvalidParameterError.
    """
    documents = {param.name for param in analyzer.params if param.check is not None}
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidParameterError(f"parameter {pair!r} is not of the form NAME=VALUE")
        if name.strip() in given:
            raise InvalidParameterError(f"parameter {name.strip()} is given twice")
        value = value.strip()
        document = name.strip() in documents and value.startswith("@")
        given[name.strip()] = _text_of(name.strip(), value[1:]) if document else value
    return check_params(analyzer, given)


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
    """What the parameter takes, in words: `one of "a", "b"` or `a number from 0 to 1`."""
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
    """Why a value of the right type is out of bounds, or None."""
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


def _text_of(name: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise InvalidParameterError(f"parameter {name}: {file}: cannot be read: {reason}") from error


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


__all__ = ["InvalidParameterError", "Params", "check_params", "describe", "parse_params", "refusal"]
