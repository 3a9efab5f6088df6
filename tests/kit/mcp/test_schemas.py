"""What a tool takes is said with its bounds and in as few words as they need; what it answers is outlined."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.kit.contract.command import Command, Id
from holdfast.kit.mcp.schemas import answer_outline, command_schema


class Lid(Struct, forbid_unknown_fields=True):
    """The lid of a jar."""

    colour: Annotated[str, Meta(max_length=9, pattern="^[a-z]+$", description="In small letters.")]


class Preserve(Command):
    jar_id: Annotated[Id, Meta(description="Id, from list_jars.", examples=[7])]
    lids: Annotated[list[Lid], Meta(max_length=2, description="One or two.")]
    sugar: Annotated[int, Meta(ge=0, le=9, description="In grams.")] | None = None
    kind: Annotated[Literal["jam", "jelly"], Meta(description="Jelly is strained.")] = "jam"
    labelled: Annotated[bool, Meta(description="With a label.")] = False
    note: Annotated[Annotated[str, Meta(max_length=9)] | UnsetType | None, Meta(description="null: none.")] = UNSET


class Open(Command):
    slowly: bool = False


class Preserved(Struct):
    id: int
    kind: Literal["jam", "jelly"]
    note: str | None
    lids: list[Lid]
    first: Lid


def test_an_argument_has_its_bounds_and_a_description_and_nothing_else() -> None:
    assert command_schema(Preserve) == {
        "type": "object",
        "properties": {
            "jar_id": {"description": "Id, from list_jars.", "type": "integer", "minimum": 1},
            "lids": {
                "description": "One or two.",
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"colour": {"description": "In small letters.", "type": "string", "maxLength": 9}},
                    "required": ["colour"],
                    "additionalProperties": False,
                },
                "maxItems": 2,
            },
            "sugar": {"description": "In grams.", "type": "integer", "minimum": 0, "maximum": 9},
            "kind": {"description": "Jelly is strained.", "enum": ["jam", "jelly"], "default": "jam"},
            "labelled": {"description": "With a label.", "type": "boolean"},
            "note": {"description": "null: none.", "type": ["string", "null"], "maxLength": 9},
        },
        "required": ["jar_id", "lids"],
        "additionalProperties": False,
    }


def test_where_nothing_is_required_nothing_is_said_of_it() -> None:
    assert command_schema(Open) == {
        "type": "object",
        "properties": {"slowly": {"type": "boolean"}},
        "additionalProperties": False,
    }


def test_an_answer_is_outlined_by_its_members_and_their_types() -> None:
    assert answer_outline(Preserved) == {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "kind": {"type": "string"},
            "note": {},
            "lids": {"type": "array"},
            "first": {"type": "object"},
        },
    }
