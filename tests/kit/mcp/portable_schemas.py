"""The part of JSON Schema that the APIs of all large vendors take for the arguments of tools.

One tool with more than this makes some of them refuse all tools of a request. Gemini's `parameters` takes a part of
OpenAPI 3.0: no lists of types, no `const`, `exclusiveMinimum`, `multipleOf`, `uniqueItems`, `oneOf`, `allOf`, `$ref`;
`enum` of texts alone, with a type; `format` of times alone; descriptions of 1,024 characters; names of 64.
OpenAI and VS Code need `items` of arrays and `properties` of objects, and no choice at the root.
`additionalProperties` stands, since hosts take it off where it is not known.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

MAX_DESCRIPTION = 1_024
MAX_NAME = 40
"""The names of servers stand before those of tools, in 64 characters."""

COMMON = {"type", "description", "default"}
OF_TYPES: Mapping[str, set[str]] = {
    "string": {"enum", "format", "minLength", "maxLength"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
    "boolean": set(),
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "additionalProperties"},
}


def unportable(tool: Mapping[str, Any]) -> list[str]:
    """What some vendor would refuse in the definition of a tool, each with its place."""
    faults = [*_faults(tool["inputSchema"], "inputSchema")]
    if not re.fullmatch(f"[a-zA-Z0-9_-]{{1,{MAX_NAME}}}", tool["name"]):
        faults.append("name")
    if len(tool["description"]) > MAX_DESCRIPTION:
        faults.append("description")
    if tool["inputSchema"].get("type") != "object":
        faults.append("inputSchema: an object")
    return faults


def _faults(schema: Schema, place: str) -> Iterator[str]:
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in OF_TYPES:
        yield f"{place}: type {kind!r}"
        return
    for keyword in schema.keys() - COMMON - OF_TYPES[kind]:
        yield f"{place}: {keyword}"
    if not isinstance(schema.get("description", ""), str) or len(schema.get("description", "")) > MAX_DESCRIPTION:
        yield f"{place}: description"
    if not all(isinstance(value, str) for value in schema.get("enum", ())):
        yield f"{place}: enum"
    if schema.get("format", "date-time") != "date-time":
        yield f"{place}: format"
    if kind == "array":
        yield from _faults(schema.get("items", {}), f"{place}[]")
    if kind == "object":
        if "properties" not in schema:
            yield f"{place}: no properties"
        if schema.get("additionalProperties") is not False:
            yield f"{place}: additionalProperties"
        for name, member in schema.get("properties", {}).items():
            yield from _faults(member, f"{place}.{name}")


def unsaid_bounds(schema: Schema, place: str = "") -> Iterator[str]:
    """The bounds that no description says. That a text is not empty, and a number not negative, goes without saying."""
    text = schema.get("description", "").replace(",", "")
    for name, member in schema.get("properties", {}).items():
        yield from unsaid_bounds(member, f"{place}.{name}")
    items = schema.get("items", {})
    if "properties" in items:
        yield from unsaid_bounds(items, f"{place}[]")
    bounds = {name: schema[name] for name in ("minimum", "maximum", "maxLength", "maxItems") if name in schema}
    bounds |= {"items": items["maxLength"]} if "maxLength" in items else {}
    for name, bound in bounds.items():
        if not (name == "minimum" and bound in {0, 1}) and not re.search(rf"(?<!\d){bound}(?!\d)", text):
            yield f"{place}: {name} {bound}"
