"""The JSON Schemas of tools, as short as possible: an agent reads all of them before its first call.

The schema of arguments has every bound, and its description says it too, since some clients drop the bounds. A pattern
is explained by the description alone. The schema of an answer is an outline: its members. The answer shows the rest.

Some vendors refuse all tools if one of their schemas has a keyword that they do not know. So each member has one type;
a list of types, a choice with null and `uniqueItems` are left out. A member that can be emptied is named by `clear`.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

Schema = dict[str, Any]

REF = "#/$defs/"
TYPES = {str: "string", bool: "boolean", int: "integer"}
LEFT_OUT = {"title", "examples", "pattern", "uniqueItems"}
WIDEST = [("minimum", -(2**63)), ("maximum", 2**63 - 1), ("maximum", 2**31 - 1)]
"""The bounds of the database's integers, which are left out because they do not help an agent."""

CLEAR = "clear"
"""The argument of a tool that names the members to be emptied. The command has null for them."""


def command_schema(kind: Any) -> Schema:
    """The schema of a command. It does not mention that null means an absent member."""
    root, shared = _schema(kind)
    schema = _object(root, shared)
    if names := clearable(kind):
        items = {"type": "string", "enum": [*names]}
        schema["properties"][CLEAR] = {"description": "Members to set to null.", "type": "array", "items": items}
    return schema


def clearable(kind: Any) -> Sequence[str]:
    """The members of a command that null empties: an absent one leaves the stored value as it is."""
    return [
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if field.default is UNSET and {"type": "null"} in msgspec.json.schema(field.type).get("anyOf", ())
    ]


def answer_outline(kind: Any) -> Schema:
    """The members of an answer."""
    root, _ = _schema(kind)
    return {"type": "object", "properties": {name: {} for name in root["properties"]}}


def _schema(kind: Any) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a type whose values are objects, and the schemas that it refers to."""
    (root,), shared = msgspec.json.schema_components([kind], ref_template=REF + "{name}")
    root = shared.get(root.get("$ref", "").removeprefix(REF), root)
    if "properties" not in root:
        raise TypeError(f"a tool takes and answers JSON objects, not {kind}")
    return root, shared


def _object(schema: Schema, shared: dict[str, Schema]) -> Schema:
    required = {"required": schema["required"]} if schema["required"] else {}
    return {
        "type": "object",
        "properties": {name: _argument(member, shared) for name, member in schema["properties"].items()},
        **required,
        "additionalProperties": False,
    }


def _argument(schema: Schema, shared: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _object(shared[schema["$ref"].removeprefix(REF)], shared)
    short = {name: value for name, value in schema.items() if name not in LEFT_OUT and (name, value) not in WIDEST}
    if "anyOf" in short:
        [inner] = [choice for choice in short.pop("anyOf") if choice != {"type": "null"}]
        return _argument({**inner, **short}, shared)
    if "items" in short:
        short["items"] = _argument(short["items"], shared)
        # The description of the list is enough.
        short["items"].pop("description", None)
    if "enum" in short:
        short["type"] = TYPES[type(short["enum"][0])]
    if not short.get("default", True):
        del short["default"]
    if description := " ".join(filter(None, [short.get("description"), bounds_in_words(short)])):
        short["description"] = description
    return short


def bounds_in_words(schema: Schema) -> str:
    """The bounds of a member as a sentence; empty if they go without saying, such as that an id is at least 1."""
    least, most = schema.get("minimum", 0), schema.get("maximum")
    if most is not None and least not in {0, 1}:
        return f"{least} to {most}."
    longest = schema.get("items", {}).get("maxLength")
    of_each = f" of up to {longest} characters" if longest else ""
    for bound, noun in (
        (most, ""),
        (schema.get("maxLength"), " characters"),
        (schema.get("maxItems"), f" items{of_each}"),
    ):
        if bound is not None:
            return f"Up to {bound}{noun}."
    return ""
