"""Matchers as text: what people type, what is written back."""

import pytest

from incidents.domain.routing.rules import read_matchers, write_matchers
from incidents.domain.suppression.rules import matchers_from
from incidents.domain.values import InvalidValueError


def signs(text: str) -> list[tuple[str, str, bool, bool]]:
    return [(one["name"], one["value"], one["isRegex"], one["isEqual"]) for one in read_matchers(text)]


@pytest.mark.parametrize(
    ("text", "value", "is_regex", "is_equal"),
    [
        ('disk="d7"', "d7", False, True),
        ("disk!=d7", "d7", False, False),
        ('disk =~ "d.*"', "d.*", True, True),
        ('{disk!~"d|e"}', "d|e", True, False),
        ('"disk"=d7', "d7", False, True),
        (r'disk="a\"b\\c\nd"', 'a"b\\c\nd', False, True),
        ('disk="a,b=c"', "a,b=c", False, True),
        ('disk=""', "", False, True),
    ],
)
def test_a_matcher_is_read_as_amtool_writes_it(text: str, value: str, is_regex: bool, is_equal: bool) -> None:
    assert signs(text) == [("disk", value, is_regex, is_equal)]


@pytest.mark.parametrize("text", ['a="1", b=2', 'a="1"\nb=2\n', "a=1\r\nb=2", '{a="1",b="2",}'])
def test_several_are_parted_by_commas_or_lines(text: str) -> None:
    assert [one[:2] for one in signs(text)] == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize("text", ["", "  ", "disk", '="x"', 'a="1" b="2"', 'a="1', "a=1,,=", "x" * 20_001])
def test_what_is_no_matcher_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidValueError, match=r"matchers"):
        read_matchers(text)


def test_what_is_written_is_read_the_same() -> None:
    told = [
        {"name": "a", "value": 'x"\\', "isRegex": False, "isEqual": True},
        {"name": "b", "value": ".*", "isRegex": True, "isEqual": False},
    ]
    assert read_matchers(write_matchers(matchers_from(told))) == told
