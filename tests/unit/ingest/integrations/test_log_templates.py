"""Templates of log records: one text, one template, in every process; counts by template, and files of records."""

import csv
import io
import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations.logs import lines
from ingest.integrations.logs.templates import (
    LONGEST,
    MOST_SHORTENED,
    MOST_TEMPLATES,
    Record,
    Templates,
    count_rows,
    template,
)

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("took 250 ms", "took <*> ms"),
        ("user 4bf92f35-77b3 not found", "user <*> not found"),
        ("lost deadbeefcafe at 10.0.0.1:5432", "lost <*> at <*>"),
        ('cannot open "a file.txt"', "cannot open <*>"),
        ("items=['A1', 'B2', 'C3'] sent", "items=<*> sent"),
        ("order Order(id=7, to=shanghai, price=[1, 2]) saved", "order Order<*> saved"),
        ("mail to alice@example.com sent", "mail to <*> sent"),
        ("it is Sat May 04 07:16:00 CST 2013", "it is <*> CST <*>"),
        ("[getTickets][Query start]", "[getTickets][Query start]"),
        ("cost of [product_id:A1 product_id:B2 ]", "cost of [product_id:A1 ]"),
        ("line one\nline two", "line one"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("don't panic, it isn't bad", "don't panic, it isn't bad"),
        ("", ""),
    ],
)
def test_what_varies_is_left_out(text: str, expected: str) -> None:
    wanted = expected.replace("product_id:A1", "<*>")
    assert template(text) == wanted


@pytest.mark.parametrize(
    "words", [("start", "finish"), ("successfully", "failed"), ("received", "completed")]
)
def test_words_that_say_what_happened_stay_apart(words: tuple[str, str]) -> None:
    one, other = (template(f"TraceID: 4bf92f3577b34da6 Query of 7 items {word}") for word in words)
    assert one != other


@given(st.text(max_size=2000))
def test_any_text_has_a_short_template_that_a_row_may_hold(text: str) -> None:
    found = template(text)
    assert len(found) <= LONGEST
    assert not any(ord(character) < 32 or 0xD800 <= ord(character) <= 0xDFFF for character in found)


def test_two_processes_that_see_the_records_in_other_orders_name_them_alike() -> None:
    texts = ["user alice logged in", "user bob logged in", "took 5 ms", "took 7 ms"]
    for order in permutations(texts):
        templates = Templates()
        assert {text: templates.of("cart", text) for text in order} == {
            text: template(text) for text in texts
        }


def test_the_templates_of_a_service_are_bounded_and_the_first_ones_stay() -> None:
    templates, words = (
        Templates(),
        [f"{'x' * (n % 90 + 1)}{'y' * (n // 90 + 1)} said so again" for n in range(3000)],
    )
    found = {templates.of("cart", word) for word in words}
    assert len(found) <= MOST_TEMPLATES + MOST_SHORTENED + 1
    assert templates.of("cart", words[0]) == template(words[0])
    assert templates.of("shop", words[-1]) == template(words[-1])


def test_equal_records_of_ten_seconds_are_one_row_at_the_time_of_the_first() -> None:
    at = [(12, "a 1"), (11, "a 2"), (21, "a 3"), (13, "b")]
    records = [Record(second * SECOND, "instance/p", "p", "info", text) for second, text in at]
    rows = count_rows(records, Templates())
    assert [(row["time"], row["template"], row["count"]) for row in rows] == [
        ("1970-01-01T00:00:11Z", "a <*>", 2),
        ("1970-01-01T00:00:13Z", "b", 1),
        ("1970-01-01T00:00:21Z", "a <*>", 1),
    ]


def csv_of(*rows: tuple[object, ...], columns: tuple[str, ...] = ("TimeUnixNano", "PodName", "Log")) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([columns, *rows])
    return text.getvalue().encode()


@pytest.mark.parametrize(
    ("line", "message", "severity"),
    [
        ("plain text", "plain text", "unspecified"),
        ("19:50:59.971 WARN  a.b.C#1 no content", "19:50:59.971 WARN  a.b.C#1 no content", "warn"),
        (json.dumps({"log": "05:18 INFO - done\n", "stream": "stdout"}), "05:18 INFO - done\n", "info"),
        (json.dumps({"log": json.dumps({"severity": "error", "message": "gone"}) + "\n"}), "gone", "error"),
        (json.dumps({"level": "Warning", "msg": "slow"}), "slow", "warn"),
        (json.dumps({"level": 30, "msg": 7}), json.dumps({"level": 30, "msg": 7}), "unspecified"),
        ("{broken", "{broken", "unspecified"),
        ("[1, 2]", "[1, 2]", "unspecified"),
    ],
)
def test_a_line_gives_its_message_and_severity(line: str, message: str, severity: str) -> None:
    ((record,), _) = lines.parse(csv_of((7, "cart-579f59597d-wc2lz", line)))
    assert (record.text, record.severity) == (message, severity)
    assert (record.component, record.service, record.time) == ("instance/cart-579f59597d-wc2lz", "cart", 7)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "header, field TimeUnixNano"),
        (csv_of((7, "a"), columns=("TimeUnixNano", "PodName")), "header, field Log"),
        (csv_of((7, "a", "x"), ("noon", "a", "x")), "row 2, field TimeUnixNano: 'noon'"),
        (csv_of((7, "a b", "x")), "row 1, field PodName"),
        (csv_of((7, "a")), "row 1: ends after 2 of 3 columns"),
        (csv_of((7, "a", "x")) + b'8,b,"open', "is not CSV"),
        (b"TimeUnixNano,PodName,Log\n7,a,\xff", "row 1: is not UTF-8"),
    ],
)
def test_what_is_no_file_of_records_is_refused_with_its_row(payload: bytes, reason: str) -> None:
    with pytest.raises(lines.InvalidLogsError, match=reason):
        lines.parse(payload)


def test_records_without_a_time_are_left_out_and_counted() -> None:
    records, left_out = lines.parse(csv_of((-6795364578871345152, "a", "x"), (0, "a", "y"), (7, "a", "z")))
    assert ([one.text for one in records], left_out) == (["z"], 2)
