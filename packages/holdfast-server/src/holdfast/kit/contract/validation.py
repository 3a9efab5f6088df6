"""Explains in plain words why a value does not fit its type: the expected type, and the value that was sent.

The decoder stops at the first mismatch and reports its place. The message is made from the type and the value there.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import inspect

from holdfast.kit.contract.messages import FieldName, Message, message, translatable

MAX_QUOTED_LENGTH = 40
"""The maximum length of a sent value that a message repeats, in characters."""

A_TIME = message("a time such as 2030-01-31T18:00:00Z")

_PATH = re.compile(r" - at `\$([^`]*)`$")
_MEMBER = re.compile(r"Object (missing required|contains unknown) field `(.+)`")
_NOUNS: Mapping[type[inspect.Type], Message] = {
    inspect.IntType: message("an integer"),
    inspect.FloatType: message("a number"),
    inspect.StrType: message("a string"),
    inspect.BoolType: message("true or false"),
    inspect.DateTimeType: A_TIME,
    inspect.ListType: message("an array"),
    inspect.DictType: message("an object"),
    inspect.StructType: message("an object"),
}


class Mismatch(NamedTuple):
    """A value that does not fit its type.

    path       its place inside the outer value, such as `[3].quantity`; `""` for the outer value itself
    message    begins with a verb
    """

    path: str
    message: Message


class ExpectedType(NamedTuple):
    """The expected type of a place, the noun for a text with a pattern, and whether null is accepted."""

    type: inspect.Type
    noun: str | None
    nullable: bool


def mismatch(error: msgspec.ValidationError, kind: Any, value: Any) -> Mismatch:
    """The reason why a value could not be converted to a type, from the decoder's error.

    A pattern is described by the noun in its `Meta(extra={"noun": ...})`, such as "an e-mail address".
    """
    text = str(error)
    match = _PATH.search(text)
    path = match[1] if match else ""
    expected, value = _find_at_path(path, _expected_type(inspect.type_info(kind)), value)
    reason = _PATH.sub("", text)
    if member := _MEMBER.fullmatch(reason):
        field = FieldName(member[2])
        if member[1].startswith("missing"):
            return Mismatch(path, message("needs %(field)s", field=field))
        return Mismatch(path, message("has the unknown field %(field)s", field=field))
    return Mismatch(
        path,
        _broken_bound(expected, value)
        or message(
            "must be %(expected)s, not %(value)s", expected=_expected_text(expected), value=_quoted_value(value)
        ),
    )


def json_error(error: Exception) -> str:
    """The reason why a text could not be read as JSON, from the decoder's error."""
    match error:
        case RecursionError():
            return "it is nested too deeply"
        case UnicodeDecodeError():
            return "it is not encoded as UTF-8"
        case _:
            return str(error).removeprefix("JSON is malformed: ")


def _expected_type(info: inspect.Type, noun: str | None = None, nullable: bool = False) -> ExpectedType:
    """The type inside metadata and unions with null."""
    match info:
        case inspect.Metadata():
            extra = cast(dict[str, Any], info.extra or {})  # pyright: ignore[reportUnknownMemberType]
            return _expected_type(info.type, extra.get("noun", noun), nullable)
        case inspect.UnionType():
            choices = [choice for choice in info.types if not isinstance(choice, inspect.NoneType)]
            return _expected_type(choices[0], noun, nullable or len(choices) < len(info.types))
        case _:
            return ExpectedType(info, noun, nullable)


def _find_at_path(path: str, expected: ExpectedType, value: Any) -> tuple[ExpectedType, Any]:
    """The expected type and the value at a place, such as `.name` of an object or `[0]` of an array."""
    while path:
        match expected.type:
            case inspect.StructType(fields=fields):
                # A field name may contain dots.
                inside = [
                    candidate
                    for candidate in fields
                    if re.match(rf"\.{re.escape(candidate.encode_name)}(?![^.\[])", path)
                ]
                field = max(inside, key=lambda info: len(info.encode_name))
                expected, value = _expected_type(field.type), value.get(field.encode_name)
                path = path[1 + len(field.encode_name) :]
            case inspect.ListType(item_type=item):
                number, path = path[1:].split("]", 1)
                expected, value = _expected_type(item), value[int(number)]
            case _:
                break
    return expected, value


def _broken_bound(expected: ExpectedType, value: Any) -> Message | None:
    """The message for the bound that a value of the right type breaks; None if it breaks none."""
    match expected.type:
        case inspect.IntType() | inspect.FloatType() as number:
            # The cells of a spreadsheet are texts.
            value = _number(value) if isinstance(value, str) else value
            if isinstance(value, int | float) and not isinstance(value, bool):
                if number.ge is not None and value < number.ge:
                    return message(
                        "must be at least %(least)s, not %(value)s", least=f"{number.ge}", value=_quoted_value(value)
                    )
                if number.le is not None and value > number.le:
                    return message(
                        "must be at most %(most)s, not %(value)s", most=f"{number.le}", value=_quoted_value(value)
                    )
        case inspect.StrType(min_length=min_length, max_length=max_length) if isinstance(value, str):
            few = translatable("must have at least %(least)s characters, not %(length)s")
            many = translatable("must have at most %(most)s characters, not %(length)s")
            return _broken_length(len(value), min_length, max_length, few, many) or (
                message("must be %(expected)s", expected=expected.noun) if expected.noun else None
            )
        case inspect.ListType(min_length=min_length, max_length=max_length) if isinstance(value, list):
            few = translatable("must have at least %(least)s items, not %(length)s")
            many = translatable("must have at most %(most)s items, not %(length)s")
            return _broken_length(len(cast(list[Any], value)), min_length, max_length, few, many)
        case inspect.DateTimeType() if isinstance(value, str):
            return message("must be %(expected)s", expected=A_TIME)
        case _:
            pass
    return None


def _broken_length(length: int, min_length: int | None, max_length: int | None, few: str, many: str) -> Message | None:
    """The message for a wrong length. `few` and `many` are the texts for a length that is too small or too large."""
    if min_length is not None and length < min_length:
        return message("must not be empty") if min_length == 1 else message(few, least=min_length, length=length)
    if max_length is not None and length > max_length:
        return message(many, most=max_length, length=length)
    return None


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch("-?[0-9]{1,30}", text) else None


def _expected_text(expected: ExpectedType) -> str:
    match expected.type:
        case inspect.LiteralType(values=values):
            noun = one_of(values)
        case kind:
            noun = expected.noun or _NOUNS.get(type(kind), message("something else"))
    return message("%(expected)s or null", expected=noun) if expected.nullable else noun


def one_of(choices: Sequence[object]) -> str:
    """The choices as part of a sentence."""
    *others, last = [_quoted_value(choice) for choice in choices]
    return message("%(others)s or %(last)s", others=", ".join(others), last=last) if others else last


def _quoted_value(value: object) -> str:
    """The text of a value, or of its kind if it is too long."""
    match value:
        case list():
            return message("an array")
        case dict():
            return message("an object")
        case str() if len(value) > MAX_QUOTED_LENGTH:
            return message("a string of %(length)s characters", length=len(value))
        case int() | float() if abs(value) >= 10**MAX_QUOTED_LENGTH:
            return message("a number as large as this")
        case _:
            return json.dumps(value, ensure_ascii=False)
