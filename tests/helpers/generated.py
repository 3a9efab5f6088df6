"""Arguments made up from the schema of a tool: all of them fit it, and many mean something to the service."""

from collections.abc import Callable
from typing import Any, cast

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

Schema = dict[str, Any]
Known = Callable[[Schema], "st.SearchStrategy[str] | None"]
"""The texts that mean something where a schema stands; None where it takes any."""

NAMES = st.sampled_from(["Honey jars", "Lids", "ΟΔΟΣ", "İstanbul", "ß", "=1+1", "%", "\\", "'", '"'])
TIMES = st.sampled_from(["2000-01-01T00:00:00Z", "2999-12-31T23:59:59.999999+14:00", "2026-11-20", "no time"])


def fits(schema: Schema, value: Any) -> bool:
    """Whether a value is what a schema says."""
    return Draft202012Validator(schema).is_valid(value)  # pyright: ignore[reportUnknownMemberType]


def from_schema(schema: Schema, known: Known, definitions: Schema | None = None) -> st.SearchStrategy[Any]:
    """What fits a schema."""
    shared: Schema = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return from_schema(shared[schema["$ref"].rpartition("/")[2]], known, shared)
    if "anyOf" in schema:
        return st.one_of(*(from_schema(choice, known, shared) for choice in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if isinstance(schema["type"], list):
        kinds = cast(list[str], schema["type"])
        return st.one_of(*(from_schema({**schema, "type": kind}, known, shared) for kind in kinds))
    match schema["type"]:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            return _integers(schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1))
        case "number":
            return st.floats(schema.get("minimum", -1e9), schema.get("maximum", 1e9))
        case "string":
            return _texts(schema, known)
        case "array":
            return st.lists(
                from_schema(schema["items"], known, shared),
                min_size=schema.get("minItems", 0),
                max_size=min(4, schema.get("maxItems", 4)),
                unique=schema.get("uniqueItems", False),
            )
        case _:
            return _objects(schema, known, shared)


def _integers(least: int, most: int) -> st.SearchStrategy[int]:
    small = [number for number in (1, 2, 3, 4, -1, least, most) if least <= number <= most]
    return st.sampled_from(small) | st.integers(least, most)


def _texts(schema: Schema, known: Known) -> st.SearchStrategy[str]:
    if schema.get("format") == "date-time":
        return TIMES
    meant = known(schema)
    if meant is None:
        least, most = schema.get("minLength", 0), schema.get("maxLength", 40)
        meant = NAMES | st.text(st.characters(codec="utf-8"), min_size=least, max_size=min(most, 40))
    return meant.filter(lambda text: fits(schema, text))


def _objects(schema: Schema, known: Known, shared: Schema) -> st.SearchStrategy[dict[str, Any]]:
    fields = {name: from_schema(field, known, shared) for name, field in schema["properties"].items()}
    required = {name: fields.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(required, optional=fields)
