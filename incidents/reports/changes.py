"""Differences from the report before. Pure: two bodies in, sentences out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from incidents.domain.oncall.spans import span_words

Json = dict[str, Any]
Body = Mapping[str, Any]


def changes(now: Body, before: Body) -> list[Json]:
    """One line a figure that moved: `what`, `before`, `now`, `better` (None where neither is), `sentence`."""
    return [*_response(now, before), *_measures(now, before), *_blamed(now, before)]


def _response(now: Body, before: Body) -> Iterator[Json]:
    new, old = now["response"], before["response"]
    if new is None or old is None:
        return
    for key, words in (
        ("opened", "incidents opened"),
        ("resolved", "incidents resolved"),
        ("open_at_end", "open at the end"),
    ):
        if new[key] != old[key]:
            better = None if key == "resolved" else new[key] < old[key]
            yield _line(words, old[key], new[key], better, f"{words}: {new[key]}, before {old[key]}")
    for key, words in (
        ("acknowledged", "median time to acknowledge"),
        ("right_team", "median time to the right team"),
        ("resolution", "median time to resolve"),
    ):
        a, b = old[key]["median"], new[key]["median"]
        if a is not None and b is not None and a != b:
            yield _line(words, a, b, b < a, f"{words}: {span_words(b)}, before {span_words(a)}")


def _measures(now: Body, before: Body) -> Iterator[Json]:
    old = {(one["analyzer"], one["region"]): one for one in before["analyses"]}
    for one in now["analyses"]:
        was = old.get((one["analyzer"], one["region"]))
        share, earlier = one["measures"].get("availability"), was and was["measures"].get("availability")
        if share is None or earlier is None or share == earlier:
            continue
        words = f"availability ({one['analyzer']}, {one['region']})"
        lost = f"{_lost(share)} of the time lost, before {_lost(earlier)}"
        yield _line(words, earlier, share, share > earlier, f"{words}: {lost}")


def _lost(share: float) -> str:
    return f"{100 * (1 - share):.3g} %"


def _blamed(now: Body, before: Body) -> Iterator[Json]:
    new, old = ({one["component"] for one in body["blamed"]} for body in (now, before))
    for component in sorted(new - old)[:10]:
        yield _line(component, None, None, None, f"{component} is newly suspected")
    for component in sorted(old - new)[:10]:
        yield _line(component, None, None, True, f"{component} is no longer suspected")


def _line(what: str, before: Any, now: Any, better: bool | None, sentence: str) -> Json:
    return {"what": what, "before": before, "now": now, "better": better, "sentence": sentence}
