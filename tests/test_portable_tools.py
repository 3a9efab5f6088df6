"""The tools of both services can be given to the models of every large vendor, as they are."""

from typing import Any

import pytest

from holdfast.events import api as events
from holdfast.inventory import api as inventory
from holdfast.kit.mcp.tools import definition, definitions
from holdfast.kit.operations.operation import Operation
from tests.kit.mcp.portable_schemas import unportable, unsaid_bounds

TOOLS = {
    f"{service}-{operation.name}": operation
    for service, operations in (("events", events.OPERATIONS), ("inventory", inventory.OPERATIONS))
    for operation in operations
    if operation.tool
}
every_tool = pytest.mark.parametrize("operation", TOOLS.values(), ids=TOOLS)


@every_tool
def test_the_arguments_of_a_tool_need_no_more_of_json_schema_than_every_vendor_takes(operation: Operation) -> None:
    assert unportable(definition(operation)) == []


@every_tool
def test_the_descriptions_of_arguments_say_their_bounds(operation: Operation) -> None:
    assert [*unsaid_bounds(definition(operation)["inputSchema"])] == []


@pytest.mark.parametrize("service", [events, inventory], ids=["events", "inventory"])
def test_an_argument_without_a_description_means_what_the_last_tool_that_describes_it_says(service: Any) -> None:
    """Also for agents that see the tools of one scope alone."""
    tools = [operation for operation in service.OPERATIONS if operation.tool]
    for scope in (None, *{operation.scope for operation in tools}):
        visible = tuple(operation for operation in tools if scope in {None, operation.scope})
        meanings: dict[str, str] = {}
        for operation, listed in zip(visible, definitions(visible), strict=True):
            for name, member in definition(operation)["inputSchema"]["properties"].items():
                description = listed["inputSchema"]["properties"][name].get("description")
                meanings[name] = description or meanings.get(name, "")
                assert meanings[name] == member.get("description", ""), (scope, operation.name, name)


@pytest.mark.parametrize("service", [events, inventory], ids=["events", "inventory"])
def test_instructions_are_as_long_as_clients_show_them(service: object) -> None:
    """Claude Code cuts them after 2,048 characters."""
    assert 0 < len(getattr(service, "INSTRUCTIONS")) <= 2_048  # noqa: B009


def test_a_schema_with_more_is_found() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "list": {"type": ["string", "null"]},
            "choice": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "untyped": {"enum": ["a"]},
            "numbers": {"type": "string", "enum": [1]},
            "unique": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "tuple": {"type": "array"},
            "reference": {"$ref": "#/$defs/A"},
            "address": {"type": "string", "format": "uri"},
            "inside": {"type": "object"},
            "above": {"type": "integer", "exclusiveMinimum": 0},
            "fine": {"type": "string", "enum": ["a"], "maxLength": 300, "description": "Up to 30 characters."},
        },
    }

    faults = unportable({"name": "a.b", "description": "x" * 1_025, "inputSchema": schema})
    assert {fault.partition(":")[0].removeprefix("inputSchema.") for fault in faults} == {
        *schema["properties"].keys() - {"fine", "tuple"},
        *("tuple[]", "name", "description"),
    }
    assert [*unsaid_bounds(schema)] == [".fine: maxLength 300"]
