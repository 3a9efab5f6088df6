"""The JSON Schemas of tools, as short as possible: an agent reads all of them before its first call.

The schema of arguments has every bound; the description explains a pattern in words. The schema of an answer is an
outline: its members and their types. The answer itself shows the rest.
"""

from typing import Any

import msgspec

Schema = dict[str, Any]

REF = "#/$defs/"
TYPES = {str: "string", bool: "boolean", int: "integer"}
LEFT_OUT = {"title", "examples", "pattern"}
WIDEST = [("minimum", -(2**63)), ("maximum", 2**63 - 1), ("maximum", 2**31 - 1)]
"""The bounds of the database's integers, which are left out because they do not help an agent."""


def command_schema(kind: Any) -> Schema:
    """The schema of a command. It does not mention that null means an absent member."""
    root, shared = _schema(kind)
    return _object(root, shared)


def answer_outline(kind: Any) -> Schema:
    """The members of an answer, with the types of members that have a single type."""
    root, _ = _schema(kind)
    return {"type": "object", "properties": {name: _outline(schema) for name, schema in root["properties"].items()}}


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
    if "items" in short:
        short["items"] = _argument(short["items"], shared)
        # The description of the list is enough.
        short["items"].pop("description", None)
    if "anyOf" in short:
        [inner] = [_argument(choice, shared) for choice in short.pop("anyOf") if choice != {"type": "null"}]
        # As a default, null means absent; otherwise null has its own meaning.
        types: Schema = {} if "default" in short else {"type": [inner["type"], "null"]}
        short = {**inner, **types, **short}
    if not short.get("default", True):
        del short["default"]
    return short


def _outline(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {}
    if "enum" in schema:
        return {"type": TYPES[type(schema["enum"][0])]}
    return {"type": schema.get("type", "object")}
