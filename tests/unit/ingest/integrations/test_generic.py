"""Any JSON through a stored mapping."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ingest.integrations.generic.apply import (
    FORM,
    MOST_ITEMS,
    InvalidMappingError,
    Item,
    Preview,
    apply,
    mapping,
    read_form,
    receive,
)
from ingest.integrations.generic.default import DEFAULT
from ingest.integrations.generic.templates import InvalidTemplateError, path, template
from ingest.integrations.normalized import Alert, InvalidPayloadError

HOW = {"title": "{host}: {check}", "key": "{host}/{check}"}
PAYLOAD = {"host": "web-1", "check": "disk"}


def preview(payload: Any, **how: Any) -> Preview:
    return apply(mapping({**HOW, **how}), payload)


def only(payload: Any, **how: Any) -> Item:
    [item] = preview(payload, **how).items
    return item


def alert(payload: dict[str, Any], **how: Any) -> Alert:
    item = only({**PAYLOAD, **payload}, **how)
    assert item.alert is not None, item
    return item.alert


def test_templates_make_an_alert_of_a_payload() -> None:
    found = alert({})
    assert (found.title, found.key, found.status, found.severity) == (
        "web-1: disk",
        "web-1/disk",
        "firing",
        "warning",
    )


def test_every_field_tells_where_it_came_from() -> None:
    why = only(
        {**PAYLOAD, "state": "PROBLEM"}, status={"from": "$.state", "words": {"problem": "firing"}}
    ).why
    assert why == {
        "title": "$.host is 'web-1', $.check is 'disk'",
        "key": "$.host is 'web-1', $.check is 'disk'",
        "status": "$.state is 'PROBLEM', which means 'firing'",
        "severity": "warning, the mapping says nothing else",
    }


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("$.a.b", "x"),
        ("$['a']['b']", "x"),
        ('$["two words"]', "y"),
        ("$.list[0]", "1"),
        ("$.list[-1].c", "true"),
        ("$.a-b", "dash"),
        ("$.flat", "1, 2.5, true"),
        ("{a.b}-{list[0]}", "x-1"),
        ("{{{a.b}}}", "{x}"),
        ('{["two words"]}', "y"),
        ("{a.b}{none}", "x"),
        ("$.none", ""),
        ("$.list[9]", ""),
        ("$.a", ""),
        ("{none}: {a.none}", ""),
        ("constant", "constant"),
        ("$root.rest", "of all"),
    ],
)
def test_a_template_finds_texts(written: str, value: str) -> None:
    item = {
        "a": {"b": "x"}, "two words": "y", "list": [1, {"c": True}], "a-b": "dash", "flat": [1, 2.5, True],
    }  # fmt: skip
    assert template(written).fill(item, {"rest": "of all"}).text == value


@pytest.mark.parametrize(
    "written", ["$.", "$..a", "$.a[*]", "$.a[", "{a", "a}", "{}", "$a", "{a{b}}", "x" * 1001, 7]
)
def test_a_text_that_is_no_template_is_refused(written: object) -> None:
    with pytest.raises(InvalidTemplateError):
        template(written)


def test_a_path_has_an_end() -> None:
    with pytest.raises(InvalidTemplateError, match="at most 20 steps"):
        path("$" + ".a" * 21)


def test_the_first_choice_that_finds_a_text_counts() -> None:
    how = {"from": ["$.output", "$.message"], "default": "nothing was said"}
    assert alert({"message": "m"}, description=how).description == "m"
    assert alert({"output": " ", "message": ""}, description=how).description == "nothing was said"


def test_a_choice_that_finds_only_half_of_its_texts_waits_for_the_others() -> None:
    how = {"from": ["{check} at {place}", "{place}{check}!"]}
    assert alert({}, description=how).description == "disk!"
    assert alert({"place": "p"}, description=how).description == "disk at p"


def test_a_form_is_an_object_of_texts() -> None:
    body = b"host=web-1&check=a+%22b%22+%5C+%C3%A9%FF&check=last+%26"
    [found] = receive(mapping(HOW), body, FORM).parsed.alerts
    assert found.title == "web-1: last &"


@pytest.mark.parametrize("body", [b"a=1&" * 300, b"a=" + b"x" * 2**20])
def test_a_form_has_an_end(body: bytes) -> None:
    with pytest.raises(InvalidPayloadError, match="at most"):
        read_form(body)


@pytest.mark.parametrize(
    ("word", "status"),
    [("PROBLEM", "firing"), ("ok", "resolved"), ("Ack", "acknowledged"), ("GONE", "resolved")],
)
def test_words_are_statuses_whatever_their_case(word: str, status: str) -> None:
    assert alert({"state": word}, status={"from": "$.state", "words": {"gone": "resolved"}}).status == status


def test_a_word_that_is_no_status_fires_and_is_shown_with_what_to_do() -> None:
    item = only({**PAYLOAD, "state": "purple"}, status="$.state")
    assert item.alert is not None
    assert (item.alert.status, item.alert.labels["status"]) == ("firing", "purple")
    assert "put it into `words`" in item.alert.notes[0]


def test_a_message_can_be_left_out_on_purpose() -> None:
    item = only(
        {**PAYLOAD, "state": "FLAPPING"}, status={"from": "$.state", "words": {"FLAPPING": "ignored"}}
    )
    assert item.ignored == "$.state is 'FLAPPING', which means 'ignored'"
    assert (item.alert, item.refused) == (None, "")


def test_a_severity_that_nobody_knows_is_a_warning_and_says_so() -> None:
    item = only({**PAYLOAD, "level": "purple"}, severity="$.level")
    assert item.alert is not None
    assert item.alert.severity == "warning"
    assert item.why["severity"] == "$.level is 'purple'; 'purple' is no severity, taken as warning"


@pytest.mark.parametrize("payload", [{"check": "", "host": ""}, {}, {"host": None}])
def test_an_item_without_a_key_is_refused(payload: dict[str, Any]) -> None:
    item = only(payload, title="t")
    assert (item.alert, item.refused_field) == (None, "key")
    assert item.refused.startswith("is empty: $.host is ")


@pytest.mark.parametrize("name", ["title", "summary", "message", "subject", "name", "text"])
def test_what_alone_says_what_is_wrong_is_title_and_key_without_a_mapping(name: str) -> None:
    [item] = apply(DEFAULT, {name: "No space left"}).items
    assert item.alert is not None, item
    assert item.alert.title == "No space left"


def test_a_component_is_the_mapping_s_or_one_that_labels_name() -> None:
    assert alert({}, component="host/{host}").component == "host/web-1"
    assert alert({"host": "web 1"}, component="host/{host}").component == "host/web-1"
    assert alert({"gone": 1}, component="{none}", labels={"node": "{host}"}).component == "node/web-1"


def test_all_texts_of_an_object_can_be_labels() -> None:
    tags = {"team": "shop", "rack": {"row": 7}}
    assert alert({"tags": tags}, labels="$.tags").labels == {"rack.row": "7", "team": "shop"}


def test_links_without_an_address_are_left_out() -> None:
    how = [{"href": "$.url", "text": "{check} of {host}"}, {"href": "$.none"}]
    assert alert({"url": "https://m/1"}, links=how).links == (
        {"href": "https://m/1", "text": "disk of web-1"},
    )


@pytest.mark.parametrize(
    "since", ["2026-01-31T12:00:00Z", 1769860800, "1769860800", 1769860800000, 1769860800000000000]
)
def test_a_start_is_read_in_the_units_that_senders_use(since: object) -> None:
    assert alert({"since": since}, starts_at="$.since").starts_at == datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("since", ["soon", "1e999", "9" * 29, "1_0"])
def test_a_start_that_cannot_be_read_is_told_and_loses_nothing(since: str) -> None:
    found = alert({"since": since}, starts_at="$.since")
    assert (found.starts_at, found.notes[0][:9]) == (None, "starts_at")


def test_a_payload_is_one_item_or_an_array_of_them() -> None:
    assert len(preview([PAYLOAD, PAYLOAD]).parsed.alerts) == 2
    assert len(preview({"x": {"y": [PAYLOAD, 7]}}, items="$.x.y").parsed.alerts) == 1
    assert len(preview({"x": PAYLOAD}, items="$.x").parsed.alerts) == 1


def test_a_bad_item_is_refused_beside_good_ones() -> None:
    [refused] = preview([PAYLOAD, 7]).parsed.refused
    assert str(refused) == "alert 1: must be an object, not a number"


@pytest.mark.parametrize("payload", [7, {"x": "y"}, {}, {"x": [{}] * (MOST_ITEMS + 1)}])
def test_a_payload_without_items_is_refused_whole(payload: object) -> None:
    with pytest.raises(InvalidPayloadError):
        preview(payload, items="$.x")


def test_a_body_is_read_and_mapped() -> None:
    assert receive(mapping(HOW), json.dumps(PAYLOAD).encode()).parsed.alerts[0].title == "web-1: disk"


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ([], ""),
        ({"title": "t"}, "key"),
        ({**HOW, "sevirity": "x"}, "sevirity"),
        ({**HOW, "group": "{"}, "group"),
        ({**HOW, "group": 7}, "group"),
        ({**HOW, "group": {"words": {}}}, "group.from"),
        ({**HOW, "group": {"from": []}}, "group.from"),
        ({**HOW, "group": {"from": "x", "eval": "1"}}, "group.eval"),
        ({**HOW, "group": {"from": "x", "default": 1}}, "group.default"),
        ({**HOW, "group": {"from": "x", "words": {"a": 1}}}, "group.words"),
        ({**HOW, "items": "alerts"}, "items"),
        ({**HOW, "labels": []}, "labels"),
        ({**HOW, "labels": {"a": "{"}}, "labels.a"),
        ({**HOW, "labels": {str(n): "x" for n in range(51)}}, "labels"),
        ({**HOW, "links": [{"text": "x"}]}, "links[0]"),
        ({**HOW, "links": {}}, "links"),
    ],
)
def test_a_mapping_that_cannot_work_is_refused_with_the_field(how: object, field: str) -> None:
    with pytest.raises(InvalidMappingError) as refused:
        mapping(how)
    assert refused.value.field == field
