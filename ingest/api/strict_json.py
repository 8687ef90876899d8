"""JSON bodies without surprises, for every view of the API; endpoints of machines have readers of their own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.core.exceptions import RequestDataTooBig
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

BODY_LIMIT = 2 * 2**20
"""Bytes of a request body: a report with all the evidence that an incident takes at once, and room to spare."""


class JSONBodyTooLargeError(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = f"Nothing was stored: the body is larger than {BODY_LIMIT} bytes."


class StrictJSONParser(BaseParser):
    """JSON as RFC 8259 has it: UTF-8, no NaN, no name twice, of bounded size and depth."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        del media_type, parser_context
        try:
            body = stream.read(BODY_LIMIT + 1)
        except RequestDataTooBig:
            raise JSONBodyTooLargeError from None
        except OSError:
            raise ParseError("Nothing was stored: the body ended early.") from None
        if len(body) > BODY_LIMIT:
            raise JSONBodyTooLargeError
        try:
            return json.loads(
                body.decode(), parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_names_once
            )
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise ParseError(f"Nothing was stored: the body is not JSON: {reason}") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def _names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:50]!r} occurs twice in one object")
    return named
