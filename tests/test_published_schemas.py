"""Published schemas accept exactly what bodies, queries and tools accept.

Nothing is run: the command of a request is read, without the rules that span fields. These exceptions are documented:
a text with a pattern or a format says in its description what it must be, and for a tool, null means an absent member,
and an update takes back what was read. That ids are positive and pages are not negative goes without saying there.
"""

import json
import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import UNSET

from holdfast.events import api as events
from holdfast.events.documents import openapi
from holdfast.inventory import api as inventory
from holdfast.kit.contract.command import MAX_EXACT_FLOAT, Command
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.index import field_names
from holdfast.kit.http.rest import CommandReader
from holdfast.kit.mcp.jsonrpc import RpcError
from holdfast.kit.mcp.tools import CLEAR, ArgumentReader, clearable, definition, has_unsaid_minimum
from holdfast.kit.operations.operation import Operation
from tests.events.routed import ROUTED
from tests.helpers.generated import Schema, fits, from_schema

SPEC = openapi.document("Events", "1", "", "https://events.example", events.OPERATIONS, ())
COMPONENTS: Schema = SPEC["components"]["schemas"]
PATH = {"event_id": "1", "id": "1", "queue_id": "1", "user_id": "abcdefgh", "visitor_id": "ann"} | {
    "endpoint_id": "1",
    "message_id": "msg_1",
}

UNHURRIED: list[Any] = list(HealthCheck)
EXAMPLES = 400 if "HOLDFAST_SOAK" in os.environ else 15
Read = Callable[[Any], object]


class Published(NamedTuple):
    """A schema, and what reads the values that it describes.

    lenient    whether null means an absent member, and members of answers are taken back
    """

    name: str
    operation: Operation
    kind: type[Command]
    schema: Schema
    read: Read
    lenient: bool = False


def _of_body(operation: Operation) -> Published:
    entry = SPEC["paths"][operation.path][operation.method.lower()]
    schema = {**entry["requestBody"]["content"]["application/json"]["schema"], "components": SPEC["components"]}
    return Published(
        f"body of {operation.name}",
        operation,
        operation.command,
        schema,
        partial(_read_body, CommandReader(operation), _path_fields(operation)),
    )


def _of_query(operation: Operation) -> Published:
    entry = SPEC["paths"][operation.path][operation.method.lower()]
    fields = [parameter for parameter in entry["parameters"] if parameter["in"] == "query"]
    schema = {
        "type": "object",
        "properties": {field["name"]: field["schema"] for field in fields},
        "required": [field["name"] for field in fields if field["required"]],
        "additionalProperties": False,
    }
    return Published(
        f"query of {operation.name}",
        operation,
        operation.command,
        schema,
        partial(_read_query, CommandReader(operation), _path_fields(operation)),
    )


def _of_tool(service: str, operation: Operation) -> Published:
    schema = definition(operation)["inputSchema"]
    return Published(
        f"tool {operation.name} of {service}",
        operation,
        operation.tool_command,
        schema,
        partial(_read_arguments, ArgumentReader(operation.tool_command, operation.read_only_fields)),
        lenient=True,
    )


def _read_body(reader: CommandReader, fields: Mapping[str, str], value: Any) -> object:
    return reader(fields, b"", json.dumps(value).encode())


def _read_query(reader: CommandReader, fields: Mapping[str, str], value: Any) -> object:
    return reader(fields, urlencode(value).encode(), b"")


def _read_arguments(reader: ArgumentReader, value: Any) -> object:
    return reader(msgspec.Raw(json.dumps(value).encode()))


def _path_fields(operation: Operation) -> dict[str, str]:
    return {name: PATH[name] for name in field_names(operation.path)}


BODIES = [_of_body(operation) for operation in ROUTED if operation.has_body_fields]
QUERIES = [
    _of_query(operation)
    for operation in ROUTED
    if not operation.method_has_body and {*operation.command.__struct_fields__} - {*operation.path_fields}
]
TOOLS = [
    _of_tool(service, operation)
    for service, operations in (("events", events.OPERATIONS), ("inventory", inventory.OPERATIONS))
    for operation in operations
    if operation.tool
]
each_of_them = pytest.mark.parametrize("published", [*BODIES, *QUERIES, *TOOLS], ids=lambda published: published.name)

ODD = st.sampled_from(
    [None, True, 0, -1, 5.0, 5.5, 2**31, 2**63, 1e15, "", "5", "x" * 501, [], ["a"], {}, {"a": 1}, -0.0, 91]
)


def _whole_as_float(value: Any) -> Any:
    """The value with its integers written as 5.0, as programs without integers send them."""
    match value:
        case bool():
            return value
        case int() if abs(value) <= MAX_EXACT_FLOAT:
            return float(value)
        case list():
            return [_whole_as_float(item) for item in cast(list[Any], value)]
        case dict():
            return {name: _whole_as_float(item) for name, item in cast(dict[str, Any], value).items()}
        case _:
            return value


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a value, the outer one first."""
    match value:
        case dict():
            members = cast(dict[str, Any], value)
            return [members, *(inside for item in members.values() for inside in _objects(item))]
        case list():
            return [inside for item in cast(list[Any], value) for inside in _objects(item)]
        case _:
            return []


TEXTS = ("ada-events", "ann@example.com", "USD", "abcdefgh", "Europe/Berlin", "https://shop.example/", "1-abcdefgh")


def _known_texts(schema: Schema) -> st.SearchStrategy[str] | None:
    """Texts for a pattern."""
    fitting = [text for text in TEXTS if "pattern" in schema and fits(schema, text)]
    return st.sampled_from(fitting) if fitting else None


def _values(published: Published) -> st.SearchStrategy[Any]:
    """A value that fits the schema, or the same with something changed."""
    # Made once: a strategy that is made for each value is checked for each, which took a third of the time.
    read_only = {name: ODD | _fitting_values(type) for name, type in published.operation.read_only_fields.items()}
    return _changed_values(published, from_schema(published.schema, _known_texts, COMPONENTS), read_only)


@st.composite
def _changed_values(
    draw: st.DrawFn,
    published: Published,
    fitting: st.SearchStrategy[Any],
    read_only: Mapping[str, st.SearchStrategy[Any]],
) -> Any:
    value = draw(fitting)
    twist = draw(st.sampled_from(["nothing", "floats", "odd", "null", "taken back", "missing", "unknown"]))
    command = _command_of(published, value)
    inside = draw(st.sampled_from(_objects(value)))
    names = [*published.kind.__struct_fields__]
    if twist == "floats":
        return _whole_as_float(value)
    if twist == "odd":
        inside[draw(st.sampled_from([*inside, *names] or ["colour"]))] = draw(ODD)
    elif twist == "null" and names:
        command[draw(st.sampled_from(names))] = None
    elif twist == "taken back" and read_only:
        name = draw(st.sampled_from([*read_only]))
        command[name] = draw(read_only[name])
    elif twist == "missing" and inside:
        del inside[draw(st.sampled_from([*inside]))]
    elif twist == "unknown":
        inside["colour"] = draw(ODD)
    return value


def _command_of(published: Published, value: dict[str, Any]) -> dict[str, Any]:
    """The object of the command in a value."""
    member = published.operation.body_member if published.name.startswith("body") else None
    inside = value.get(member, {}) if member else value
    return cast(dict[str, Any], inside) if isinstance(inside, dict) else {}


def _fits_type(type_: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return False
    return True


def _fitting_values(type_: Any) -> st.SearchStrategy[Any]:
    """Values of a type of an answer."""
    (schema,), shared = msgspec.json.schema_components([type_], ref_template="{name}")
    return from_schema(schema, _known_texts, shared)


def _outcome(published: Published, value: Any) -> Literal["taken", "refused", "refused in words"]:
    """Whether a value is taken, or refused only for texts whose descriptions say what they must be."""
    try:
        published.read(value)
    except RpcError:
        return "refused"
    except Problem as problem:
        in_words = bool(problem.errors) and all(_is_described(published, name) for name in problem.errors)
        return "refused in words" if in_words else "refused"
    return "taken"


def _is_described(published: Published, name: str) -> bool:
    types = {field.name: field.type for field in msgspec.structs.fields(published.kind)}
    types |= {name: type_ for name, type_ in published.operation.read_only_fields.items() if name not in types}
    schema = json.dumps(msgspec.json.schema(types[name])) if name in types else ""
    return '"format"' in schema or '"pattern"' in schema


def _strict(published: Published, value: dict[str, Any]) -> dict[str, Any]:
    """The arguments without null for what is optional, and without what an update takes back."""
    fields = {field.name: field for field in msgspec.structs.fields(published.kind)}
    optional = {name for name, field in fields.items() if not field.required and field.default is not UNSET}
    optional |= {*clearable(published.kind), CLEAR}
    read_only = published.operation.read_only_fields.keys() - published.schema["properties"].keys()
    return {
        name: item for name, item in value.items() if not (item is None and name in optional) and name not in read_only
    }


@each_of_them
def test_a_published_schema_accepts_exactly_what_the_command_accepts(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published.kind, "rules", ())
    read_only = published.operation.read_only_fields
    path_fields = {*published.operation.path_fields}
    is_valid: Callable[[Any], bool] = Draft202012Validator(published.schema).is_valid  # pyright: ignore

    @settings(max_examples=EXAMPLES, derandomize=True, suppress_health_check=UNHURRIED)
    @given(_values(published))
    def agrees(value: dict[str, Any]) -> None:
        text = json.dumps(value)
        assume("\\u0000" not in text)
        if published.name.startswith("query"):
            # In a query there is text only.
            assume(all(type(item) in {str, int} for item in value.values()))
            assume(all(isinstance(item, int) is _wants_integer(published, name) for name, item in value.items()))
        if published.name.startswith("body"):
            # A member that stands in the path too has the value of the path.
            assume(path_fields.isdisjoint(_command_of(published, value)))
        if published.lenient:
            # The schemas of tools leave out the bounds of the database's integers.
            assume(all(abs(number) < 2**31 for number in _numbers(value)))
            # They leave out that ids are positive, and that pages are not negative.
            members = [member for inside in _objects(value) for member in inside.items()]
            assume(all(number >= 1 for name, item in members if has_unsaid_minimum(name) for number in _numbers(item)))
            assume(all(_fits_type(read_only[name], value[name]) for name in read_only.keys() & value.keys()))
            # That a member is not both given and emptied is a rule over two members.
            cleared = value.get(CLEAR)
            assume(not (isinstance(cleared, list) and any(name in value for name in cast(list[Any], cleared))))
        expected = is_valid(_strict(published, value) if published.lenient else value)
        assert _outcome(published, value) in ("refused in words", "taken" if expected else "refused"), value

    agrees()


def _numbers(value: Any) -> list[float]:
    match value:
        case int() | float():
            return [value]
        case list():
            return [number for item in cast(list[Any], value) for number in _numbers(item)]
        case dict():
            return [number for item in cast(dict[str, Any], value).values() for number in _numbers(item)]
        case _:
            return []


def _wants_integer(published: Published, name: str) -> bool:
    return '"integer"' in json.dumps(published.schema["properties"].get(name, {}))


@pytest.mark.parametrize("number", [5.0, 9_007_199_254_740_992.0])
def test_a_whole_number_may_be_written_with_a_decimal_point(number: float) -> None:
    [get] = [published for published in TOOLS if published.name == "tool get_event of events"]
    assert getattr(get.read({"event_id": number}), "event_id") == int(number)  # noqa: B009


@pytest.mark.parametrize("number", [5.5, 1e16, -5.0, math.pi])
def test_a_number_that_is_not_whole_or_not_exact_is_refused(number: float) -> None:
    [get] = [published for published in TOOLS if published.name == "tool get_event of events"]
    with pytest.raises(Problem) as refusal:
        get.read({"event_id": number})
    assert refusal.value.errors.keys() == {"event_id"}
