"""Names: one word for one thing, in the terms of the field."""

import re
from collections import defaultdict

from tests.architecture.reading import sources, survey
from tests.places import ROOT

BANNED = {
    "asked": "query, request",
    "asking": "context, request",
    "astray": "orphaned",
    "calm": "auto-resolve",
    "calming": "auto-resolve",
    "custody": "ownership, reassignment",
    "door": "endpoint",
    "doors": "endpoints",
    "fate": "outcome",
    "gather": "collect",
    "hear": "read, observe",
    "heard": "received",
    "heed": "auto-assign",
    "heeding": "auto-assign",
    "holding": "suppression",
    "house": "package",
    "kept": "stored, retained, cached",
    "lane": "queue, worker",
    "lanes": "queues, workers",
    "lately": "recently",
    "listening": "reachability",
    "nobody": "what is missing",
    "oversleeping": "due snoozes",
    "parked": "dead letter",
    "reaching": "contact method",
    "rescue": "reassign orphans",
    "rescuing": "reassign orphans",
    "reseal": "reencrypt (a seal is of the log)",
    "rested": "resolved",
    "rouse": "unsnooze",
    "said": "what it returns",
    "says": "what it returns",
    "sealed": "encrypted (a seal is of the log)",
    "settle": "auto-resolve, record",
    "settling": "pending resolution",
    "standing": "status, outcome",
    "standings": "outcomes",
    "told": "what it returns",
    "who": "actor, person",
    "whoever": "actor, person",
    "whom": "recipient",
    "whose": "owner",
    "woken": "unsnoozed",
}
"""Words that no module, class, function, constant, parameter, field or variable of the product has in its name, with
those to use. `SEALED` is the
event of the log."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def test_no_name_has_a_word_of_the_old_dialect() -> None:
    classes = [(file, name) for name, file, _ in survey().classes]
    modules = [(str(path.relative_to(ROOT)), path.stem) for path in sources()]
    found = [
        (file, name, BANNED[word.lower()])
        for file, name in [
            *survey().functions,
            *classes,
            *modules,
            *survey().constants,
            *sorted(survey().variables),
        ]
        for word in WORD.findall(name)
        if word.lower() in BANNED and name != "SEALED"
    ]
    assert found == []


def exceptions() -> dict[str, list[str]]:
    """Files of each exception of the product, by its name: what derives from an exception, however remotely."""
    known = {"APIException", "BaseException", "Exception"}
    found: dict[str, list[str]] = defaultdict(list)
    while new := [
        one
        for one in survey().classes
        if any(base in known or base.endswith("Error") for base in one[2]) and one[1] not in found[one[0]]
    ]:
        for name, file, _ in new:
            known.add(name)
            found[name].append(file)
    return {name: files for name, files in found.items() if files}


def test_an_exception_ends_in_error_and_has_a_name_of_its_own() -> None:
    found = exceptions()
    assert len(found) > 80
    assert [name for name in found if not name.endswith("Error")] == []
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
