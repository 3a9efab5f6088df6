"""The OpenAPI document as Markdown for language models: all operations, and the objects in their answers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from holdfast.events.documents.openapi import answer_schemas, codes_of, in_words, resolver

Schema = Mapping[str, Any]
Row = tuple[str, Schema, str]
"""A name, its schema, and its description."""


def operations(spec: Schema) -> str:
    """A section of level 3 for every operation, in the order of the table."""
    return "\n".join(
        line
        for path, methods in spec["paths"].items()
        for method, entry in methods.items()
        for line in _operation(spec, f"{method.upper()} {path}", entry)
    )


def objects(spec: Schema) -> str:
    """A section of level 3 for every object in the answers of operations."""
    return "\n".join(line for name, schema in answer_schemas(spec).items() for line in _object(name, schema))


def _operation(spec: Schema, heading: str, entry: Schema) -> Iterator[str]:
    name = f"`{entry['operationId']}`{', without a key' if 'security' in entry else ''}"
    yield from (f"### {heading}", "", f"{name}. {entry['description']}", "")
    for place in ("path", "query", "header"):
        parameters = [parameter for parameter in entry["parameters"] if parameter["in"] == place]
        # Path fields are always required, so their table does not say so.
        yield from _table(
            f"in the {place}", ((parameter["name"], parameter["schema"], _notes(parameter)) for parameter in parameters)
        )
    if body := entry.get("requestBody"):
        resolve = resolver(spec)
        schema = resolve(body["content"]["application/json"]["schema"])
        (name, inner), *more = schema["properties"].items()
        wrapped = not more and "$ref" in inner
        head, schema = (f"in `{name}`", resolve(inner)) if wrapped else ("in the body", schema)
        required = schema.get("required", ())
        yield from _table(
            head,
            (
                (name, field, f"Required. {_notes(field)}" if name in required else _notes(field))
                for name, field in schema["properties"].items()
            ),
        )
    yield from (_responses(entry["responses"]), "")


def _object(name: str, schema: Schema) -> Iterator[str]:
    yield from (f"### {name}", "")
    if description := schema.get("description"):
        yield from (description, "")
    members = schema.get("properties", {}).items()
    yield from _table("member", ((name, field, field.get("description", "")) for name, field in members))


def _table(head: str, rows: Iterable[Row]) -> Iterator[str]:
    """A Markdown table of the rows; nothing if there are no rows."""
    lines = [f"| `{name}` | {_cell(in_words(schema))} | {_cell(notes)} |" for name, schema, notes in rows]
    if lines:
        yield from (f"| {head} | type | notes |", "|---|---|---|", *lines, "")


def _notes(field: Schema) -> str:
    """The description of an input field, with its default."""
    schema = field.get("schema", field)
    default = schema.get("default")
    left_out = f"Default {msgspec.json.encode(default).decode()}. " if default is not None else ""
    return left_out + field.get("description", "")


def _cell(text: str) -> str:
    """The text escaped for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def _responses(responses: Schema) -> str:
    """`Answers 200: Event in data. Errors: 400 bad_request, 401 missing_api_key, invalid_api_key.`"""
    (status, success), *failures = responses.items()
    schema = success["content"]["application/json"]["schema"] if "content" in success else None
    inside = schema.get("properties", {}).get("data") if schema else None
    content = "no body" if schema is None else f"{in_words(inside)} in `data`" if inside else in_words(schema)
    errors = (f"{status} {', '.join(codes_of(failure))}" for status, failure in failures)
    return f"Answers {status}: {content}. Errors: {'; '.join(errors)}."
