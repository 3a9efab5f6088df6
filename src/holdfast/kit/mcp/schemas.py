"""The JSON Schemas of tools, as short as they can be: an agent reads all of them before its first call.

What a tool takes is said with every bound; a pattern is said in words, by the description. What it answers is outlined:
its members and their types. The answer itself shows the rest.
"""

from typing import Any

import msgspec

Schema = dict[str, Any]

REF = "#/$defs/"
TYPES = {str: "string", bool: "boolean", int: "integer"}
LEFT_OUT = {"title", "examples", "pattern"}
WIDEST = [("minimum", -(2**63)), ("maximum", 2**63 - 1), ("maximum", 2**31 - 1)]
"""Bounds of the database's integers, which tell an agent nothing."""


def arguments(kind: Any) -> Schema:
    """The schema of a command. That null stands for an absent member is not said."""
    root, shared = _schema(kind)
    return _object(root, shared)


def outline(kind: Any) -> Schema:
    """The members of an answer, and the types of those that have one type."""
    root, _ = _schema(kind)
    return {"type": "object", "properties": {name: _outlined(each) for name, each in root["properties"].items()}}


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
        "properties": {name: _argument(each, shared) for name, each in schema["properties"].items()},
        **required,
        "additionalProperties": False,
    }


def _argument(schema: Schema, shared: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _object(shared[schema["$ref"].removeprefix(REF)], shared)
    short = {name: value for name, value in schema.items() if name not in LEFT_OUT and (name, value) not in WIDEST}
    if "items" in short:
        short["items"] = _argument(short["items"], shared)
        # The list is described.
        short["items"].pop("description", None)
    if "anyOf" in short:
        [inner] = [_argument(each, shared) for each in short.pop("anyOf") if each != {"type": "null"}]
        # Where null is the default it means absent; elsewhere it has a meaning of its own.
        types: Schema = {} if "default" in short else {"type": [inner["type"], "null"]}
        short = {**inner, **types, **short}
    if not short.get("default", True):
        del short["default"]
    return short


def _outlined(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {}
    if "enum" in schema:
        return {"type": TYPES[type(schema["enum"][0])]}
    return {"type": schema.get("type", "object")}
