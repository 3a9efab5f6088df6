"""Arguments made up from the schema of a tool: all of them fit it, and many mean something."""

from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.inventory.support import SINGLE, SIX_PACK, TWELVE_PACK

Schema = dict[str, Any]

GIDS = st.sampled_from([SINGLE, SIX_PACK, TWELVE_PACK, "gid://shopify/ProductVariant/99999999999999999999"])
NAMES = st.sampled_from(["Honey jars", "Lids", "ΟΔΟΣ", "İstanbul", "ß", "=1+1", "%", "\\", "'", '"'])
SHEETS = st.sampled_from(
    [
        "name,quantity\nHoney jars,5\n",
        "name,unit,quantity,buffer,low_stock_at\nΟΔΟΣ,g,1,2,3\nοδος,g,1,2,3\n",  # noqa: RUF001
        "name\nİstanbul\ni̇stanbul\n",
        f"pool,variant_gid,units_per_sale\nHoney jars,{SIX_PACK},5\nLids,{SIX_PACK},1\n",
        "name,quantity\nLids,-1000000000000\n",
        'name\n"unclosed',
    ]
)
TIMES = st.sampled_from(["2000-01-01T00:00:00Z", "2999-12-31T23:59:59.999999+14:00", "2026-11-20", "no time"])


def fits(schema: Schema, value: Any) -> bool:
    """Whether a value is what a schema says."""
    return Draft202012Validator(schema).is_valid(value)  # pyright: ignore[reportUnknownMemberType]


def from_schema(schema: Schema, definitions: Schema | None = None) -> st.SearchStrategy[Any]:
    """What fits a schema."""
    shared: Schema = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return from_schema(shared[schema["$ref"].rpartition("/")[2]], shared)
    if "anyOf" in schema:
        return st.one_of(*(from_schema(choice, shared) for choice in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            return _integers(schema["minimum"], schema["maximum"])
        case "string":
            return _texts(schema)
        case "array":
            return st.lists(
                from_schema(schema["items"], shared),
                min_size=schema.get("minItems", 0),
                max_size=min(4, schema["maxItems"]),
            )
        case _:
            return _objects(schema, shared)


def _integers(least: int, most: int) -> st.SearchStrategy[int]:
    known = [number for number in (1, 2, 3, 4, -1, least, most) if least <= number <= most]
    return st.sampled_from(known) | st.integers(least, most)


def _texts(schema: Schema) -> st.SearchStrategy[str]:
    if "ProductVariant" in schema.get("pattern", ""):
        return GIDS
    if schema.get("format") == "date-time":
        return TIMES
    if schema["maxLength"] > 100_000:
        return SHEETS | st.text(min_size=1, max_size=300)
    least, most = schema.get("minLength", 0), schema["maxLength"]
    texts = NAMES | st.text(st.characters(codec="utf-8"), min_size=least, max_size=min(most, 40))
    return texts.filter(lambda text: fits(schema, text))


def _objects(schema: Schema, shared: Schema) -> st.SearchStrategy[dict[str, Any]]:
    fields = {name: from_schema(field, shared) for name, field in schema["properties"].items()}
    required = {name: fields.pop(name) for name in schema["required"]}
    return st.fixed_dictionaries(required, optional=fields)
