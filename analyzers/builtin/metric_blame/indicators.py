"""Meaning of a metric for its component, by the words of its name: internal, external, load or neither."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from analyzers.builtin.nodes.samples import words_given, words_of

Sort = Literal["internal", "latency", "errors", "availability", "load", "other", "none"]
"""`internal`: the component's own resources; `latency`, `errors` and `availability`: how its callers fare (external);
`load`: how much it is asked. `none` is not judged."""

EXTERNAL: frozenset[Sort] = frozenset({"latency", "errors", "availability"})

_LATENCY = words_given(
    "latency latencies duration durations lat lat50 lat90 lat95 lat99 response rt ttfb elapsed"
)
_ERRORS = words_given(
    "error errors err fail fails failed failure failures fault faults exception exceptions 5xx timeouts timeout"
    " dropped drops rejected"
)
_AVAILABILITY = words_given("availability success successes")
_LOAD = words_given(
    "request requests req reqs rps qps tps workload throughput calls invocations rate hits queries arrivals"
)
_INTERNAL = words_given(
    "cpu mem memory rss heap gc disk diskio io iops fs filesystem swap thread threads goroutines socket sockets fd"
    " fds handles load1 load5 network receive transmit rx tx bytes packets retransmits saturation throttled throttling"
    " throttle queue connections pool util utilization utilisation usage restarts oom gpu power temperature"
)
_OUTGOING = words_given("client outbound")
"""Calls that a component makes, whose latency and errors are those of what it calls: `http_client_request_duration`."""
_PROCESSOR = words_given("cpu processor")
_SHARES = words_given("percent percentage pct utilization utilisation")
_BELOW = words_given("node host system")
_MOST_PERCENT = 110.0
"""A processor at its limit is measured at a little more."""
_TIMES = words_given("seconds milliseconds ms us time times")
_CODES = (
    "code",
    "status",
    "status_code",
    "http_status_code",
    "http.status_code",
    "http.response.status_code",
    "http_response_status_code",
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z0-9])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_SKIPPED = ("_bucket", "_created", "_info")


def sort_of(name: str, labels: Mapping[str, str], internal: str = "", external: str = "") -> Sort:
    """The sort of a metric; `internal` and `external` are words of the user's own and go first."""
    if name.endswith(_SKIPPED) or "le" in labels:
        return "none"
    sort = _sort_of_name(name, internal, external)
    return "errors" if sort in ("load", "latency", "other") and _is_error_code(labels) else sort


@cache
def _sort_of_name(name: str, internal: str, external: str) -> Sort:
    words = words_of_name(name)
    if not words.isdisjoint(words_given(internal)):
        return "internal"
    if not words.isdisjoint(words_given(external)):
        return "latency"
    if not words.isdisjoint(_OUTGOING) and not words.isdisjoint(_LATENCY | _ERRORS | _AVAILABILITY):
        return "none"
    if not words.isdisjoint(_AVAILABILITY):
        return "availability"
    if not words.isdisjoint(_ERRORS):
        return "errors"
    if not words.isdisjoint(_LATENCY):
        return "latency"
    if not words.isdisjoint(_INTERNAL):
        return "internal"
    if not words.isdisjoint(_LOAD):
        return "latency" if not words.isdisjoint(_TIMES) and not name.endswith("_total") else "load"
    return "other"


def is_share_of_processor(name: str, before: float, value: float) -> bool:
    """Whether values are of a processor of its own and in per cent of its limit, by the words of the name and the
    values: that of the node below is not its own, and more than 100 counts cores."""
    words = words_of_name(name)
    if words.isdisjoint(_PROCESSOR) or not words.isdisjoint(_BELOW):
        return False
    return ("%" in name or not words.isdisjoint(_SHARES)) and max(before, value) <= _MOST_PERCENT


def words_of_name(name: str) -> frozenset[str]:
    """Words of a metric in lower case; `PodServerLatencyP90` has those of `pod_server_latency_p90` too."""
    return frozenset((*words_of(name), *words_of(_CAMEL.sub(" ", name))))


def _is_error_code(labels: Mapping[str, str]) -> bool:
    code = next((labels[name] for name in _CODES if labels.get(name)), "")
    return code.startswith("5") or code.lower() in ("error", "failed", "failure", "status_code_error")
