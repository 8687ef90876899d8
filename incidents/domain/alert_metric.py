"""Value, threshold and query of an alert, from what monitoring systems say of it. Pure.

- The query is the expression of Prometheus' `generatorURL` (`g0.expr`), or the annotation or label `expr`, `expression`
  or `query`.
- The threshold is the annotation or label `threshold`, else the number that the query is compared with.
- The value is the annotation `value` or `current_value`, else Grafana's `values`, else its `valueString`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

_VALUES = ("value", "current_value", "currentvalue", "metric_value")
_THRESHOLDS = ("threshold", "threshold_value")
_QUERIES = ("expr", "expression", "query", "promql")
_NUMBER = r"[-+]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_COMPARED = re.compile(
    rf"(?s)^(?P<left>.*?\S)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?:bool\s+)?(?P<right>{_NUMBER})$"
)
_GRAFANA = re.compile(rf"(?m)^Values: .*?\b[A-Za-z]\w* = (?P<value>{_NUMBER})")
_VALUE_STRING = re.compile(rf"\bvalue=(?P<value>{_NUMBER})")
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class AlertMetric:
    """`plain` is the query without the comparison, which alone has values where the alert does not fire; `sign` is the
    comparison (`>`), empty where it is not known; `link` leads to the sender's own graph or rule."""

    query: str = ""
    plain: str = ""
    sign: str = ""
    threshold: float | None = None
    value: float | None = None
    value_text: str = ""
    link: str = ""

    @property
    def known(self) -> bool:
        return bool(self.query or self.value_text or self.link) or self.threshold is not None


def alert_metric(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    description: str,
    links: Iterable[Mapping[str, str]],
) -> AlertMetric:
    given = {name.lower(): text.strip() for name, text in {**labels, **annotations}.items() if text.strip()}
    link, query = _linked(links)
    query = query or next((given[name] for name in _QUERIES if name in given), "")
    query = query[:_LONGEST]
    plain, sign, bound = compared(query)
    text = next((given[name] for name in _VALUES if name in given), "") or _of_grafana(description)
    threshold = next((number(given[name]) for name in _THRESHOLDS if name in given), None)
    return AlertMetric(
        query, plain, sign, bound if threshold is None else threshold, number(text), text[:100], link
    )


def compared(query: str) -> tuple[str, str, float | None]:
    """The left side of a query, the sign and the number that it is compared with; without a comparison at its top
    level, or with several conditions, the query as it is."""
    query = _bare(query.strip())
    found = _COMPARED.match(query)
    if found is None or not _single(found["left"]):
        return query, "", None
    return found["left"], found["sign"], number(found["right"])


def number(text: str) -> float | None:
    """The first number of a text such as `91.2%`; None without one."""
    found = re.search(_NUMBER, text.replace(",", ""))
    return None if found is None else float(found[0].replace("_", ""))


def _linked(links: Iterable[Mapping[str, str]]) -> tuple[str, str]:
    """The link to the sender's graph or rule, and the expression in it."""
    rule = ""
    for one in links:
        href = one.get("href", "")
        try:
            expression = parse_qs(urlsplit(href).query).get("g0.expr", [""])[0]
        except ValueError:
            continue
        if expression:
            return href, expression
        if not rule and one.get("text") in ("Query in Prometheus", "Panel", "Rule in Grafana"):
            rule = href
    return rule, ""


def _of_grafana(description: str) -> str:
    found = _GRAFANA.search(description) or _VALUE_STRING.search(description)
    return "" if found is None else found["value"]


def _bare(query: str) -> str:
    """Without parentheses around the whole."""
    while query.startswith("(") and query.endswith(")") and _depths(query).index(0) == len(query) - 1:
        query = query[1:-1].strip()
    return query


def _depths(query: str) -> list[int]:
    """Depth of brackets after each letter of the query; quoted text counts for none."""
    depth, quote, found = 0, "", []
    for place, letter in enumerate(query):
        if quote:
            if letter == quote and query[place - 1] != "\\":
                quote = ""
        elif letter in "\"'`":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        found.append(depth)
    return found


def _single(left: str) -> bool:
    """Whether brackets are closed, and nothing at the top level joins or compares once more."""
    depths = _depths(left)
    if not depths or depths[-1] != 0:
        return False
    top = "".join(letter if depth == 0 else " " for letter, depth in zip(left, depths, strict=True))
    return re.search(r"\b(?:and|or|unless)\b|[<>]|[=!]=", top) is None
