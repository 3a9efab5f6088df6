"""The message for an invalid value says what would be right, and what was given."""

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, field, inspect

from holdfast.events.api import OPERATIONS as EVENTS
from holdfast.inventory.api import OPERATIONS as INVENTORY
from holdfast.kit.contract.command import Command, NotBlank, check
from holdfast.kit.contract.problems import Problem
from holdfast.kit.contract.validation import json_error, mismatch
from holdfast.kit.operations.operation import Operation


class ValidatedLid(Struct, forbid_unknown_fields=True):
    colour: Annotated[str, Meta(max_length=5)]
    size: Annotated[int, Meta(ge=1, le=9)] = 1


class Shelf(Struct):
    """Its member has the name of another before it, and a dot."""

    name: str = ""
    full_name: Annotated[str, Meta(max_length=3)] = field(default="", name="name.in/full")
    rows: list[list[int]] = field(default_factory=list[list[int]])


class ValidatedCommand(Command):
    """A command with a field of every kind."""

    grams: Annotated[int, Meta(ge=1, le=500)] = 1
    sugar: Annotated[float, Meta(ge=0, le=1)] = 0.5
    kind: Literal["jam", "jelly", "syrup"] = "jam"
    title: Annotated[NotBlank, Meta(min_length=1, max_length=20)] = "Jam"
    secret: Annotated[str, Meta(min_length=12, max_length=72)] | None = None
    code: Annotated[str, Meta(pattern="^[A-Z]{3}$", extra={"noun": "three capital letters such as JAR"})] = "JAM"
    opened: bool = False
    best_before: dt.datetime | None = None
    lids: Annotated[list[ValidatedLid], Meta(min_length=1, max_length=2)] = field(
        default_factory=lambda: [ValidatedLid("red")]
    )
    tags: list[str] = field(default_factory=list[str])
    note: str | UnsetType | None = UNSET
    shelf: int | UnsetType = UNSET


TOLD: list[tuple[dict[str, Any], str]] = [
    ({"grams": 0}, "must be at least 1, not 0"),
    ({"grams": 501}, "must be at most 500, not 501"),
    ({"grams": 10**60}, "must be at most 500, not a number as large as this"),
    ({"grams": "5"}, 'must be an integer, not "5"'),
    ({"grams": 1.5}, "must be an integer, not 1.5"),
    ({"grams": True}, "must be an integer, not true"),
    ({"grams": "x" * 41}, "must be an integer, not a string of 41 characters"),
    ({"sugar": 1.5}, "must be at most 1, not 1.5"),
    ({"sugar": "much"}, 'must be a number, not "much"'),
    ({"kind": "pickle"}, 'must be "jam", "jelly" or "syrup", not "pickle"'),
    ({"kind": 7}, 'must be "jam", "jelly" or "syrup", not 7'),
    ({"title": ""}, "must not be empty"),
    ({"title": "  "}, "must be a text that is not blank"),
    ({"title": "x" * 21}, "must have at most 20 characters, not 21"),
    ({"title": {"a": 1}}, "must be a text that is not blank, not an object"),
    ({"secret": "short"}, "must have at least 12 characters, not 5"),
    ({"code": "jam"}, "must be three capital letters such as JAR"),
    ({"code": 7}, "must be three capital letters such as JAR, not 7"),
    ({"opened": "yes"}, 'must be true or false, not "yes"'),
    ({"best_before": "soon"}, "must be a time such as 2030-01-31T18:00:00Z"),
    ({"best_before": 7}, "must be a time such as 2030-01-31T18:00:00Z or null, not 7"),
    ({"lids": []}, "must not be empty"),
    ({"lids": [{"colour": "red"}] * 3}, "must have at most 2 items, not 3"),
    ({"lids": {}}, "must be an array, not an object"),
    ({"lids": [{"colour": "red"}, {"colour": "yellow"}]}, "lids[1].colour must have at most 5 characters, not 6"),
    ({"lids": [{"colour": "red", "size": 0}]}, "lids[0].size must be at least 1, not 0"),
    ({"lids": [{"size": 1}]}, "lids[0] needs colour"),
    ({"lids": [{"colour": "red", "shape": 1}]}, "lids[0] has the unknown field shape"),
    ({"lids": [7]}, "lids[0] must be an object, not 7"),
    ({"tags": ["a", None]}, "tags[1] must be a string, not null"),
    ({"tags": ["a\x00"]}, "must not contain NUL characters"),
    ({"note": 7}, "must be a string or null, not 7"),
    ({"shelf": None}, "must be an integer, not null"),
]


@pytest.mark.parametrize(("raw", "message"), TOLD, ids=[f"{next(iter(raw))} {message}" for raw, message in TOLD])
def test_a_message_says_what_is_right_and_what_was_given(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(Problem) as refusal:
        check(ValidatedCommand, raw)

    assert refusal.value.extra["errors"] == {name: [message] for name in raw}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name.in/full": "long"}, (".name.in/full", "must have at most 3 characters, not 4")),
        ({"name": 7}, (".name", "must be a string, not 7")),
        ({"rows": [[1], [2, "3"]]}, (".rows[1][1]", 'must be an integer, not "3"')),
    ],
    ids=["a name with a dot", "the name before the dot", "an array in an array"],
)
def test_a_place_is_found_at_any_depth(value: Any, problem: tuple[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError) as refusal:
        msgspec.convert(value, Shelf)

    assert mismatch(refusal.value, Shelf, value) == problem


def test_null_means_absent_except_where_absent_means_unchanged() -> None:
    optional = [field.name for field in msgspec.structs.fields(ValidatedCommand) if field.default is not UNSET]

    assert check(ValidatedCommand, dict.fromkeys(optional)) == ValidatedCommand()
    assert check(ValidatedCommand, {"note": None}).note is None


def types(info: inspect.Type) -> Iterator[inspect.Type]:
    """A type, and all types inside it."""
    yield info
    match info:
        case inspect.Metadata():
            yield from types(info.type)
        case inspect.UnionType():
            for choice in info.types:
                yield from types(choice)
        case inspect.ListType():
            yield from types(info.item_type)
        case inspect.StructType():
            for field in info.fields:
                yield from types(field.type)
        case _:
            pass


@pytest.mark.parametrize(
    "operation",
    [*INVENTORY, *EVENTS],
    ids=[
        *(f"inventory {operation.name}" for operation in INVENTORY),
        *(f"events {operation.name}" for operation in EVENTS),
    ],
)
def test_every_pattern_is_described_by_a_noun(operation: Operation) -> None:
    all_types = [*types(inspect.type_info(operation.command))]
    named_types: list[inspect.Type] = []
    for type_ in all_types:
        if isinstance(type_, inspect.Metadata):
            extra = cast(dict[str, Any], type_.extra or {})  # pyright: ignore[reportUnknownMemberType]
            named_types += [type_.type] if "noun" in extra else []

    assert [
        type_
        for type_ in all_types
        if isinstance(type_, inspect.StrType) and type_.pattern and type_ not in named_types
    ] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "truncated"),
        (b"{]", "object keys must be strings (byte 1)"),
        (b'"\xff"', "it is not encoded as UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
    ],
    ids=["half an object", "no key", "another encoding", "too deep"],
)
def test_invalid_json_is_described_without_the_words_of_the_decoder(text: bytes, message: str) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)) as refusal:
        msgspec.json.decode(text)

    assert message in json_error(refusal.value)
    assert "codec" not in json_error(refusal.value)
