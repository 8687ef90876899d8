"""Names: one word for one thing, in the terms of the field."""

from collections import defaultdict

from tests.architecture.reading import survey


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
