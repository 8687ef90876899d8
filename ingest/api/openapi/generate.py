"""Pieces of the OpenAPI document for endpoints, whose views are none of REST framework's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

TEXT: Final = {"type": "string"}
RECEIPT: Final = {"Dossier-Receipt": {"schema": TEXT, "description": "/api/v1/receipts/{id} has the outcome"}}


def operation(
    name: str, words: str, answers: Mapping[str, Any], *parameters: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "operationId": name,
        "description": words,
        "tags": ["v1"],
        "parameters": list(parameters),
        "responses": dict(answers),
    }


def in_json(schema: Mapping[str, Any], words: str = "") -> dict[str, Any]:
    """An answer in JSON."""
    return {"description": words, "content": {"application/json": {"schema": schema}}}


_schemas: dict[str, Any] = {}


def schema_of(shape: Any) -> dict[str, Any]:
    """The schema of the type from which an answer is rendered."""
    (schema,), components = msgspec.json.schema_components(
        [shape], ref_template="#/components/schemas/{name}"
    )
    _schemas.update(components)
    return schema


def add_schemas(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular, the last: the schemas to which those of `schema_of` refer."""
    known = result["components"]["schemas"]
    assert not known.keys() & _schemas.keys(), (
        f"two schemas are called {sorted(known.keys() & _schemas.keys())}"
    )
    known |= _schemas
    return result


def array(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def record(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    """An object that has these properties, all of them where `required` is left out."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
    }


def header(name: str, words: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": words, "schema": {"type": "string", **schema}}


def query_parameter(name: str, words: str, schema: Mapping[str, Any] = TEXT) -> dict[str, Any]:
    """A parameter of the query."""
    return {"name": name, "in": "query", "description": words, "schema": dict(schema)}


def within(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A part of the path."""
    return {"name": name, "in": "path", "required": True, "schema": dict(schema)}
