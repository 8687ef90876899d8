"""The criteria of SuperBench's rules, as a small language of their own.

A rule file holds Python lambdas such as `lambda x: x < -0.05`, and SuperBench calls `eval` on them. Here they are
parsed and only what is listed in `ALLOWED` is taken; anything else is refused by name and position before anything
is evaluated. Nothing of the file is ever executed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ALLOWED = (
    'one lambda with one argument; numbers, True and False; + - * /; comparisons; and, or, not; "a if b else c"; '
    'argument["name"], .values(); abs, bool, len, max, min and sum'
)
LONGEST = 2_000
"""Characters of a criterion at most."""
DEEPEST = 50

Value = Any  # a number, a bool, or a mapping of stored values
Evaluate = Callable[[Value], Value]

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "bool": bool,
    "len": len,
    "max": max,
    "min": min,
    "sum": sum,
}
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class InvalidCriterionError(ValueError):
    """The text is no criterion; the message says what was found where, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A parsed criterion: `holds(value)` evaluates it, raising what Python would raise for such a value."""

    text: str
    holds: Evaluate


def parse(text: str) -> Criterion:
    """Parse `lambda x: …`; raises InvalidCriterionError."""
    if len(text) > LONGEST:
        raise InvalidCriterionError(f"has {len(text)} characters, more than {LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" at character {error.offset}" if isinstance(error, SyntaxError) else ""
        raise InvalidCriterionError(f"{text!r} is not an expression{where}; allowed are {ALLOWED}") from error
    if not isinstance(tree, ast.Lambda):
        raise _refused(tree, "is not a lambda")
    names = tree.args
    plain = len(names.args) == 1 and not (
        names.posonlyargs or names.kwonlyargs or names.vararg or names.kwarg or names.defaults
    )
    if not plain:
        raise _refused(tree, "is not a lambda with one plain argument")
    return Criterion(text, _made(tree.body, names.args[0].arg, 0))


def _made(node: ast.expr, name: str, depth: int) -> Evaluate:
    """The function that evaluates a node; raises InvalidCriterionError for what is not allowed."""
    if depth > DEEPEST:
        raise _refused(node, f"is nested more than {DEEPEST} deep")
    if isinstance(node, ast.Name):
        if node.id != name:
            raise _refused(node, f"only the argument {name!r} has a name here")
        return lambda given: given
    if isinstance(node, ast.Constant):
        return _constant(node)
    make = _MAKERS.get(type(node))
    if make is None:
        raise _refused(node, f"{type(node).__name__} is not allowed")
    return make(node, name, depth + 1)


def _constant(node: ast.Constant) -> Evaluate:
    value = node.value
    if not isinstance(value, bool | int | float):
        raise _refused(node, "is neither a number nor True nor False")
    return lambda _given: value


def _unary(node: ast.UnaryOp, name: str, depth: int) -> Evaluate:
    apply = _UNARY.get(type(node.op))
    if apply is None:
        raise _refused(node, f"operator {type(node.op).__name__} is not allowed")
    operand = _made(node.operand, name, depth)
    return lambda given: apply(operand(given))


def _binary(node: ast.BinOp, name: str, depth: int) -> Evaluate:
    apply = _BINARY.get(type(node.op))
    if apply is None:
        raise _refused(node, f"operator {type(node.op).__name__} is not allowed")
    left, right = _made(node.left, name, depth), _made(node.right, name, depth)
    return lambda given: apply(left(given), right(given))


def _boolean(node: ast.BoolOp, name: str, depth: int) -> Evaluate:
    parts = [_made(value, name, depth) for value in node.values]
    stops = isinstance(
        node.op, ast.Or
    )  # `or` ends with the first true part, `and` with the first that is not

    def evaluate(given: Value) -> Value:
        found: Value = None
        for part in parts:
            found = part(given)
            if bool(found) == stops:
                return found
        return found

    return evaluate


def _compared(node: ast.Compare, name: str, depth: int) -> Evaluate:
    first = _made(node.left, name, depth)
    links = []
    for op, right in zip(node.ops, node.comparators, strict=True):
        apply = _COMPARE.get(type(op))
        if apply is None:
            raise _refused(node, f"comparison {type(op).__name__} is not allowed")
        links.append((apply, _made(right, name, depth)))

    def evaluate(given: Value) -> Value:
        left, found = first(given), True
        for apply, make in links:
            right = make(given)
            found = apply(left, right)
            if not found:
                return found
            left = right
        return found

    return evaluate


def _chosen(node: ast.IfExp, name: str, depth: int) -> Evaluate:
    test, then, other = (_made(part, name, depth) for part in (node.test, node.body, node.orelse))
    return lambda given: then(given) if test(given) else other(given)


def _looked_up(node: ast.Subscript, name: str, depth: int) -> Evaluate:
    key = node.slice
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        raise _refused(node, 'is looked up by something else than a text such as "rule1"')
    inner, text = _made(node.value, name, depth), key.value
    return lambda given: inner(given)[text]


def _called(node: ast.Call, name: str, depth: int) -> Evaluate:
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        raise _refused(node, "is called with named or starred arguments")
    if isinstance(node.func, ast.Attribute):
        if node.func.attr != "values" or node.args:
            raise _refused(node, f"method .{node.func.attr}() is not allowed")
        inner = _made(node.func.value, name, depth)
        return lambda given: inner(given).values()
    if not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS):
        raise _refused(node, f"function {ast.unparse(node.func)!r} is not allowed")
    apply = _FUNCTIONS[node.func.id]
    arguments = [_made(argument, name, depth) for argument in node.args]
    return lambda given: apply(*(argument(given) for argument in arguments))


_MAKERS: Mapping[type[ast.expr], Callable[[Any, str, int], Evaluate]] = {
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Compare: _compared,
    ast.IfExp: _chosen,
    ast.Subscript: _looked_up,
    ast.Call: _called,
}


def _refused(node: ast.expr, reason: str) -> InvalidCriterionError:
    shown = ast.unparse(node)
    shown = shown if len(shown) <= 60 else shown[:59] + "…"
    return InvalidCriterionError(
        f"character {node.col_offset + 1}, {shown!r}: {reason}; allowed are {ALLOWED}"
    )
