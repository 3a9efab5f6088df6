"""The OpenAPI document as Markdown, for language models: every operation, and the objects they answer with."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from holdfast.kit.openapi import answers, in_words, resolver

Schema = Mapping[str, Any]
Row = tuple[str, Schema, str]
"""A name, its schema, and what is to be said of it."""


def operations(spec: Schema) -> str:
    """A section of level 3 for every operation, in the order of the table."""
    return "\n".join(
        line
        for path, methods in spec["paths"].items()
        for method, entry in methods.items()
        for line in _operation(spec, f"{method.upper()} {path}", entry)
    )


def objects(spec: Schema) -> str:
    """A section of level 3 for every object that operations answer with."""
    return "\n".join(line for name, schema in answers(spec).items() for line in _object(name, schema))


def _operation(spec: Schema, heading: str, entry: Schema) -> Iterator[str]:
    name = f"`{entry['operationId']}`{', without a key' if 'security' in entry else ''}"
    yield from (f"### {heading}", "", f"{name}. {entry['description']}", "")
    for place in ("path", "query", "header"):
        found = [each for each in entry["parameters"] if each["in"] == place]
        # That a field of the path is needed, the path says itself.
        yield from _table(f"in the {place}", ((each["name"], each["schema"], _told(each)) for each in found))
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
                (name, field, f"Required. {_told(field)}" if name in required else _told(field))
                for name, field in schema["properties"].items()
            ),
        )
    yield from (_outcomes(entry["responses"]), "")


def _object(name: str, schema: Schema) -> Iterator[str]:
    yield from (f"### {name}", "")
    if said := schema.get("description"):
        yield from (said, "")
    members = schema.get("properties", {}).items()
    yield from _table("member", ((name, field, field.get("description", "")) for name, field in members))


def _table(head: str, rows: Iterable[Row]) -> Iterator[str]:
    """A table of rows; nothing without any."""
    lines = [f"| `{name}` | {_cell(in_words(schema))} | {_cell(notes)} |" for name, schema, notes in rows]
    if lines:
        yield from (f"| {head} | type | notes |", "|---|---|---|", *lines, "")


def _told(field: Schema) -> str:
    """What a field that is taken is for, and what it is when it is left out."""
    schema = field.get("schema", field)
    default = schema.get("default")
    left_out = f"Default {msgspec.json.encode(default).decode()}. " if default is not None else ""
    return left_out + field.get("description", "")


def _cell(text: str) -> str:
    """A text as it can stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _outcomes(responses: Schema) -> str:
    """`Answers 200: Event in data. Errors: 400, 401.`"""
    (status, success), *failures = responses.items()
    schema = success["content"]["application/json"]["schema"] if "content" in success else None
    inside = schema.get("properties", {}).get("data") if schema else None
    told = "no body" if schema is None else f"{in_words(inside)} in `data`" if inside else in_words(schema)
    return f"Answers {status}: {told}. Errors: {', '.join(status for status, _ in failures)}."
