"""Schemas of tools: arguments have their bounds, in few words; answers have only their members."""

from typing import Annotated, Literal

import pytest
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from holdfast.kit.contract.command import Command, Id
from holdfast.kit.contract.problems import Problem
from holdfast.kit.mcp.tools import ArgumentReader, answer_outline, command_schema


class SchemaLid(Struct, forbid_unknown_fields=True):
    """The lid of a jar."""

    colour: Annotated[str, Meta(max_length=9, pattern="^[a-z]+$", description="In small letters.")]


class SchemaCommand(Command):
    jar_id: Annotated[Id, Meta(description="Id, from list_jars.", examples=[7])]
    lids: Annotated[list[SchemaLid], Meta(max_length=2, description="One or two.")]
    sugar: Annotated[int, Meta(ge=0, le=9, description="In grams.")] | None = None
    kind: Annotated[Literal["jam", "jelly"], Meta(description="Jelly is strained.")] = "jam"
    labelled: Annotated[bool, Meta(description="With a label.")] = False
    note: Annotated[Annotated[str, Meta(max_length=9)] | UnsetType | None, Meta(description="For the label.")] = UNSET
    shelf: Annotated[int, Meta(ge=-2, le=7)] = 0
    tags: Annotated[
        list[Annotated[str, Meta(max_length=5)]],
        Meta(max_length=3, extra_json_schema={"uniqueItems": True}),
    ] = field(default_factory=list[str])


class Open(Command):
    slowly: bool = False


class Preserved(Struct):
    id: int
    kind: Literal["jam", "jelly"]
    note: str | None
    lids: list[SchemaLid]
    first: SchemaLid


def test_a_schema_of_arguments_has_bounds_and_descriptions_only() -> None:
    assert command_schema(SchemaCommand) == {
        "type": "object",
        "properties": {
            "jar_id": {"description": "Id, from list_jars.", "type": "integer"},
            "lids": {
                "description": "One or two. Up to 2 items.",
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "colour": {
                            "description": "In small letters. Up to 9 characters.",
                            "type": "string",
                            "maxLength": 9,
                        }
                    },
                    "required": ["colour"],
                    "additionalProperties": False,
                },
                "maxItems": 2,
            },
            "sugar": {"description": "In grams. Up to 9.", "type": "integer", "minimum": 0, "maximum": 9},
            "kind": {
                "description": "Jelly is strained.",
                "type": "string",
                "enum": ["jam", "jelly"],
                "default": "jam",
            },
            "labelled": {"description": "With a label.", "type": "boolean"},
            "note": {"description": "For the label. Up to 9 characters.", "type": "string", "maxLength": 9},
            "shelf": {"description": "-2 to 7.", "type": "integer", "minimum": -2, "maximum": 7},
            "tags": {
                "description": "Up to 3 items of up to 5 characters.",
                "type": "array",
                "items": {"type": "string", "maxLength": 5},
                "maxItems": 3,
            },
            "clear": {
                "description": "Members to set to null.",
                "type": "array",
                "items": {"type": "string", "enum": ["note"]},
            },
        },
        "required": ["jar_id", "lids"],
        "additionalProperties": False,
    }


def test_a_schema_without_required_fields_omits_required() -> None:
    assert command_schema(Open) == {
        "type": "object",
        "properties": {"slowly": {"type": "boolean"}},
        "additionalProperties": False,
    }


def test_a_schema_of_an_answer_has_only_the_names_of_its_members() -> None:
    assert answer_outline(Preserved) == {
        "type": "object",
        "properties": {"id": {}, "kind": {}, "note": {}, "lids": {}, "first": {}},
    }


READ = ArgumentReader(SchemaCommand)


def test_a_member_named_in_clear_is_null_and_others_stay_absent() -> None:
    command = READ(Raw(b'{"jar_id": 1, "lids": [], "clear": ["note"]}'))
    assert isinstance(command, SchemaCommand)
    assert command.note is None
    assert READ(Raw(b'{"jar_id": 1, "lids": [], "clear": []}')).note is UNSET  # type: ignore[attr-defined]
    assert READ(Raw(b'{"jar_id": 1, "lids": [], "clear": null}')).note is UNSET  # type: ignore[attr-defined]
    assert READ(Raw(b'{"jar_id": 1, "lids": [], "note": null}')).note is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("clear", ['"note"', '["sugar"]', "[1]", "[[]]", "{}", "1"])
def test_a_field_that_cannot_be_cleared_is_refused_by_name(clear: str) -> None:
    with pytest.raises(Problem) as refusal:
        READ(Raw(f'{{"jar_id": 1, "lids": [], "clear": {clear}}}'.encode()))
    assert refusal.value.errors.keys() == {"clear"}


def test_a_member_is_not_cleared_that_has_a_value_too() -> None:
    with pytest.raises(Problem) as refusal:
        READ(Raw(b'{"jar_id": 1, "lids": [], "note": "sour", "clear": ["note"]}'))
    assert refusal.value.errors == {"clear": ["names note, which has a value too: leave out one of them"]}


def test_a_tool_that_can_clear_nothing_has_no_such_argument() -> None:
    with pytest.raises(Problem) as refusal:
        ArgumentReader(Open)(Raw(b'{"clear": []}'))
    assert refusal.value.errors == {"clear": ["unknown field"]}
