"""Why a value does not fit its type, in plain words: what would fit, and what was given instead.

The decoder stops at the first misfit, and says where it is. The type and the value at that place say the rest.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import inspect

from holdfast.kit.said import FieldName, Said, marked, said

LONGEST = 40
"""The most characters of a given value that a message repeats."""

A_TIME = said("a time such as 2030-01-31T18:00:00Z")

_PLACE = re.compile(r" - at `\$([^`]*)`$")
_MEMBER = re.compile(r"Object (missing required|contains unknown) field `(.+)`")
_NOUNS: Mapping[type[inspect.Type], Said] = {
    inspect.IntType: said("an integer"),
    inspect.FloatType: said("a number"),
    inspect.StrType: said("a string"),
    inspect.BoolType: said("true or false"),
    inspect.DateTimeType: A_TIME,
    inspect.ListType: said("an array"),
    inspect.DictType: said("an object"),
    inspect.StructType: said("an object"),
}


class Misfit(NamedTuple):
    """What is wrong.

    place      where, inside the value: `""` for the value itself, or such as `[3].quantity`
    message    begins with a verb
    """

    place: str
    message: Said


class Expected(NamedTuple):
    """What a place takes: its type, what a text with a pattern is called, and whether null fits."""

    type: inspect.Type
    noun: str | None
    nullable: bool


def misfit(error: msgspec.ValidationError, kind: Any, value: Any) -> Misfit:
    """Why a value could not be converted to a type, given the decoder's error.

    A pattern is told by the noun in its `Meta(extra={"noun": ...})`, such as "an e-mail address".
    """
    text = str(error)
    found = _PLACE.search(text)
    place = found[1] if found else ""
    expected, value = _at(place, _expected(inspect.type_info(kind)), value)
    reason = _PLACE.sub("", text)
    if member := _MEMBER.fullmatch(reason):
        field = FieldName(member[2])
        if member[1].startswith("missing"):
            return Misfit(place, said("needs %(field)s", field=field))
        return Misfit(place, said("has the unknown field %(field)s", field=field))
    return Misfit(
        place,
        _broken_bound(expected, value)
        or said("must be %(wanted)s, not %(given)s", wanted=_named(expected), given=_shown(value)),
    )


def malformed(error: Exception) -> str:
    """Why a text could not be read as JSON, given the decoder's error."""
    match error:
        case RecursionError():
            return "it is nested too deeply"
        case UnicodeDecodeError():
            return "it is not encoded as UTF-8"
        case _:
            return str(error).removeprefix("JSON is malformed: ")


def _expected(info: inspect.Type, noun: str | None = None, nullable: bool = False) -> Expected:
    """The type itself, without what is around it."""
    match info:
        case inspect.Metadata():
            extra = cast(dict[str, Any], info.extra or {})  # pyright: ignore[reportUnknownMemberType]
            return _expected(info.type, extra.get("noun", noun), nullable)
        case inspect.UnionType():
            choices = [each for each in info.types if not isinstance(each, inspect.NoneType)]
            return _expected(choices[0], noun, nullable or len(choices) < len(info.types))
        case _:
            return Expected(info, noun, nullable)


def _at(place: str, expected: Expected, value: Any) -> tuple[Expected, Any]:
    """What a place takes, and what stands there: members of objects are `.name`, items of arrays `[0]`."""
    while place:
        match expected.type:
            case inspect.StructType(fields=fields):
                # A name may have dots of its own.
                inside = [each for each in fields if re.match(rf"\.{re.escape(each.encode_name)}(?![^.\[])", place)]
                field = max(inside, key=lambda each: len(each.encode_name))
                expected, value = _expected(field.type), value.get(field.encode_name)
                place = place[1 + len(field.encode_name) :]
            case inspect.ListType(item_type=item):
                number, place = place[1:].split("]", 1)
                expected, value = _expected(item), value[int(number)]
            case _:
                break
    return expected, value


def _broken_bound(expected: Expected, value: Any) -> Said | None:
    """The bound that a value of the right type breaks."""
    match expected.type:
        case inspect.IntType() | inspect.FloatType() as number:
            # The cells of a spreadsheet are texts.
            value = _number(value) if isinstance(value, str) else value
            if isinstance(value, int | float) and not isinstance(value, bool):
                if number.ge is not None and value < number.ge:
                    return said("must be at least %(least)s, not %(given)s", least=f"{number.ge}", given=_shown(value))
                if number.le is not None and value > number.le:
                    return said("must be at most %(most)s, not %(given)s", most=f"{number.le}", given=_shown(value))
        case inspect.StrType(min_length=least, max_length=most) if isinstance(value, str):
            few = marked("must have at least %(least)s characters, not %(length)s")
            many = marked("must have at most %(most)s characters, not %(length)s")
            return _broken_length(len(value), least, most, few, many) or (
                said("must be %(wanted)s", wanted=expected.noun) if expected.noun else None
            )
        case inspect.ListType(min_length=least, max_length=most) if isinstance(value, list):
            few = marked("must have at least %(least)s items, not %(length)s")
            many = marked("must have at most %(most)s items, not %(length)s")
            return _broken_length(len(cast(list[Any], value)), least, most, few, many)
        case inspect.DateTimeType() if isinstance(value, str):
            return said("must be %(wanted)s", wanted=A_TIME)
        case _:
            pass
    return None


def _broken_length(length: int, least: int | None, most: int | None, few: str, many: str) -> Said | None:
    """What is wrong with a length. `few` and `many` are the texts for one that is too small and too large."""
    if least is not None and length < least:
        return said("must not be empty") if least == 1 else said(few, least=least, length=length)
    if most is not None and length > most:
        return said(many, most=most, length=length)
    return None


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch("-?[0-9]{1,30}", text) else None


def _named(expected: Expected) -> str:
    match expected.type:
        case inspect.LiteralType(values=values):
            noun = one_of(values)
        case kind:
            noun = expected.noun or _NOUNS.get(type(kind), said("something else"))
    return said("%(wanted)s or null", wanted=noun) if expected.nullable else noun


def one_of(choices: Sequence[object]) -> str:
    """The choices, as a sentence has them."""
    *others, last = [_shown(each) for each in choices]
    return said("%(others)s or %(last)s", others=", ".join(others), last=last) if others else last


def _shown(value: object) -> str:
    """A given value, or what it is where it is too long."""
    match value:
        case list():
            return said("an array")
        case dict():
            return said("an object")
        case str() if len(value) > LONGEST:
            return said("a string of %(length)s characters", length=len(value))
        case int() | float() if abs(value) >= 10**LONGEST:
            return said("a number as large as this")
        case _:
            return json.dumps(value, ensure_ascii=False)
