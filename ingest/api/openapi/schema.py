"""Common parts of every operation in the OpenAPI document: keys, and answers to errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "ingest.api.authentication.KeyAuthentication"
    name = "integrationKey"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:  # noqa: ARG002
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "integration key, from manage.py create_key or the console",
        }


PROBLEM = "application/problem+json"
_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457 problem details; `errors` has the reasons by field, if any.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {},
    },
    "required": ["type", "title", "status"],
}
_ALWAYS = {
    "400": "Invalid parameter or body. Nothing was stored.",
    "401": "No valid key and not signed in.",
    "403": "The key lacks the scope, or the CSRF token is missing.",
    "404": "Object not found, or no such page of the list.",
    "503": "The database does not answer, or too many concurrent reads: try again.",
}
_OF_BODIES = {
    "409": "Not possible in the current state; `detail` has the reason. Nothing was stored.",
    "413": "The body is too large.",
    "415": "The body must be JSON.",
}


def describe_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular: every operation answers errors as problems, which views need not repeat.

    What a view says about a status of its own is kept.
    """
    result["components"]["schemas"]["Problem"] = _PROBLEM
    for operation in _operations(result):
        answers = operation["responses"]
        for status, words in (_ALWAYS | (_OF_BODIES if "requestBody" in operation else {})).items():
            answers.setdefault(status, {"description": words})
        for status, answer in answers.items():
            if status >= "4":
                answer["content"] = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    _allow_null(result)
    return result


def _operations(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in result["paths"].values():
        yield from (operation for operation in path.values() if "responses" in operation)


def _allow_null(node: Any) -> None:
    """Any JSON that may be null is written as "any of it, or null", of which null is both: then it would be wrong."""
    if isinstance(node, dict):
        if node.get("oneOf") == [{}, {"type": "null"}]:
            del node["oneOf"]
        for inner in node.values():
            _allow_null(inner)
    elif isinstance(node, list):
        for inner in node:
            _allow_null(inner)
