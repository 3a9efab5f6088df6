"""Commands: the typed and validated input of operations.

A `Command` is a msgspec struct. Types and `Meta` bounds define what each field may be; a `@rule` checks several fields
together. `check` reports every failing field at once, so that a caller can correct all of them together.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.inspect import DateTimeType, DictType, IntType, ListType, Metadata, StructType, UnionType
from msgspec.structs import FieldInfo

from holdfast.kit.contract.messages import FieldName, message, message_of
from holdfast.kit.contract.problems import invalid
from holdfast.kit.contract.validation import mismatch

Errors = dict[str, list[str]]
NOTHING_READ_ONLY: Mapping[str, Any] = {}
NOTHING_UNREAD: Mapping[str, Sequence[str]] = {}

Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Minor = Annotated[int, Meta(ge=0, le=999_999_999_999, description="In minor units.")]
NotBlank = Annotated[str, Meta(pattern=r"\S", extra={"noun": message("a text that is not blank")})]
Timestamp = Annotated[
    datetime, Meta(extra_json_schema={"format": "date-time"}, description="ISO 8601; UTC by default.")
]

_NUL = re.compile("\x00")
_INTEGER = re.compile("-?(?:0|[1-9][0-9]{0,18})")
_MINUTES = re.compile(r"(T[0-9]{2}:[0-9]{2})((?:Z|[+-][0-9]{2}:[0-9]{2})?)\Z")
MAX_EXACT_FLOAT = 2**53
"""The largest number up to which each integer has a floating-point number of its own."""

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


class Rule:
    """A check over several fields. It runs if each of them is valid; its error is reported for the first field."""

    def __init__(self, fields: tuple[str, ...], run: Callable[[Any], str | None]) -> None:
        self.fields = fields
        self.run = run


def rule(*fields: str) -> Callable[[Callable[[Any], str | None]], Callable[[Any], str | None]]:
    """Mark a method of a command as a rule over `fields`. It returns an error message, or None if the rule holds."""

    def mark(run: Callable[[Any], str | None]) -> Callable[[Any], str | None]:
        run.__rule__ = Rule(fields, run)  # type: ignore[attr-defined]
        return run

    return mark


class Command(Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of every command. Unknown fields are refused: a misspelt option must not be silently ignored."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own_rules = [value.__rule__ for value in vars(cls).values() if hasattr(value, "__rule__")]
        cls.rules = (*cls.rules, *own_rules)


class Repeatable(Command, kw_only=True):
    """A command with a dry run, which changes nothing, and with an idempotency key, which makes it safe to repeat."""

    idempotency_key: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=200,
                description="Repeats are safe.",
            ),
        ]
        | None
    ) = None
    dry_run: Annotated[bool, Meta(description="Change nothing.")] = False


C = TypeVar("C", bound=Command)


def broken_rules(command: Command, failed: Mapping[str, list[str]] | None = None) -> Errors:
    """The messages of all broken rules, by field. Rules over a field that has already failed are skipped."""
    failed = failed or {}
    errors: Errors = {}
    for rule in command.rules:
        if failed.keys().isdisjoint(rule.fields) and (message := rule.run(command)):
            errors.setdefault(rule.fields[0], []).append(message)
    return errors


def check(
    kind: type[C],
    raw: Mapping[str, Any],
    read_only: Mapping[str, Any] = NOTHING_READ_ONLY,
    unread: Mapping[str, Sequence[str]] = NOTHING_UNREAD,
) -> C:
    """The command in `raw`, or a `validation_failed` problem naming every failing field.

    Null means absent, except where an absent field leaves a stored value unchanged.

    read_only  the types of names that may be present although they are not fields of the command
    unread     error messages of fields that were checked before; the values of these fields are not read
    """
    values: dict[str, Any] = {}
    errors: Errors = {
        name: [message("unknown field")] for name in raw if name not in {*kind.__struct_fields__, *read_only}
    }
    for name in read_only.keys() & raw.keys() - {*kind.__struct_fields__}:
        value = _typed_integers(raw[name], msgspec.inspect.type_info(read_only[name]))
        try:
            msgspec.convert(value, read_only[name])
        except msgspec.ValidationError as error:
            errors[name] = [mismatch(error, read_only[name], value).message]
    errors |= {name: [*messages] for name, messages in unread.items()}
    for field in fields(kind):
        if field.name in unread:
            continue
        if raw.get(field.name) is not None or (field.name in raw and field.default is UNSET):
            try:
                values[field.name] = read_field(field, raw[field.name])
            except ValueError as error:
                errors[field.name] = [message_of(error)]
        elif field.required:
            errors[field.name] = [message("is required")]
    partial = kind(**{**dict.fromkeys(errors.keys() & set(kind.__struct_fields__), UNSET), **values})
    errors |= broken_rules(partial, errors)
    if errors:
        raise invalid(errors)
    return partial


def read_field(field: FieldInfo, value: Any) -> Any:
    """The value of a field. Raises ValueError with a message that says in plain words what is wrong."""
    try:
        return normalized(msgspec.convert(_with_whole_numbers(_with_seconds(value, field), field), field.type))
    except msgspec.ValidationError as error:
        path, reason = mismatch(error, field.type, value)
        if path:
            reason = message("%(field)s%(place)s %(message)s", field=FieldName(field.name), place=path, message=reason)
        raise ValueError(reason) from error


@cache
def fields(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    """The fields of a command or another struct, with their bounds."""
    return msgspec.structs.fields(kind)


def _with_seconds(value: Any, field: FieldInfo) -> Any:
    """The value. A time without seconds, which HTML forms send, gets seconds."""
    if isinstance(value, str) and _MINUTES.search(value) and _has_type(field, DateTimeType):
        return _MINUTES.sub(r"\1:00\2", value)
    return value


def _with_whole_numbers(value: Any, field: FieldInfo) -> Any:
    """The value. A number such as 5.0 becomes an integer where one belongs: JSON Schema makes no difference."""
    return _typed_integers(value, msgspec.inspect.type_info(field.type)) if _has_float(value) else value


def _has_float(value: Any) -> bool:
    match value:
        case float():
            return True
        case list():
            return any(map(_has_float, cast(list[Any], value)))
        case dict():
            return any(map(_has_float, cast(dict[Any, Any], value).values()))
        case _:
            return False


def _typed_integers(value: Any, info: msgspec.inspect.Type) -> Any:
    match info, value:
        case Metadata(), _:
            return _typed_integers(value, info.type)
        case UnionType(), _:
            return next(
                (integral for choice in info.types if (integral := _typed_integers(value, choice)) is not value), value
            )
        case IntType(), float() if value.is_integer() and abs(value) <= MAX_EXACT_FLOAT:
            return int(value)
        case ListType(), list():
            return [_typed_integers(item, info.item_type) for item in cast(list[Any], value)]
        case DictType(), dict():
            return {name: _typed_integers(item, info.value_type) for name, item in cast(dict[Any, Any], value).items()}
        case StructType(), dict():
            types = {inside.encode_name: inside.type for inside in info.fields}
            members = cast(dict[str, Any], value).items()
            return {name: _typed_integers(item, types[name]) if name in types else item for name, item in members}
        case _:
            return value


def with_integers(kind: type[Command], texts: Mapping[str, str]) -> dict[str, Any]:
    """Texts from a path or a query, with plain decimal numbers converted where the command has an integer.

    Other spellings of a number stay texts and fail validation, so that each resource has exactly one address.
    """
    numbers = integers(kind)
    return {name: int(text) if name in numbers and _INTEGER.fullmatch(text) else text for name, text in texts.items()}


@cache
def has_times(kind: type[Command]) -> bool:
    """Whether a command contains a time, at any depth."""
    return any(isinstance(inner_type, DateTimeType) for inner_type in _nested_types(msgspec.inspect.type_info(kind)))


def _nested_types(info: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    """A type and all types inside it."""
    match info:
        case Metadata():
            yield from _nested_types(info.type)
        case UnionType():
            for choice in info.types:
                yield from _nested_types(choice)
        case ListType():
            yield from _nested_types(info.item_type)
        case DictType():
            yield from _nested_types(info.value_type)
        case StructType():
            for field in info.fields:
                yield from _nested_types(field.type)
        case _:
            yield info


@cache
def integers(kind: type[Struct]) -> frozenset[str]:
    """The names of the fields that are integers."""
    return frozenset(field.name for field in fields(kind) if _has_type(field, IntType))


def _has_type(field: FieldInfo, kind: type[msgspec.inspect.Type]) -> bool:
    return any(isinstance(choice, kind) for choice in _union_members(msgspec.inspect.type_info(field.type)))


def _union_members(info: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    """The types that a value of a type may have."""
    match info:
        case Metadata():
            yield from _union_members(info.type)
        case UnionType():
            for choice in info.types:
                yield from _union_members(choice)
        case _:
            yield info


def normalized(value: Any) -> Any:
    """The value with its times in UTC. Raises ValueError for NUL in texts and for times that are out of range."""
    match value:
        case str() if _NUL.search(value):
            raise ValueError(message("must not contain NUL characters"))
        case list():
            return [normalized(item) for item in cast(list[Any], value)]
        case dict():
            return {normalized(name): normalized(item) for name, item in cast(dict[Any, Any], value).items()}
        case Struct():
            inside = {name: normalized(getattr(value, name)) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **inside)
        case datetime():
            return utc(value)
        case _:
            return value


def utc(moment: datetime) -> datetime:
    """A time in UTC; by contract a time without an offset is UTC. Raises ValueError outside 1970..9000."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not _EARLIEST <= moment < _LATEST:
        raise ValueError(message("must lie between the years 1970 and 9000"))
    return moment.astimezone(UTC)


def body_type(
    kind: type[Command],
    left_out: Collection[str],
    wrapper: str | None,
    *,
    published: bool = False,
    read_only: Mapping[str, Any] = NOTHING_READ_ONLY,
) -> type[Struct] | None:
    """The JSON body that carries a command's fields except those in `left_out`, inside `wrapper` if there is one.

    None when no field is left.

    published    the body as documents describe it: an optional field may be null, which means that it is absent
    read_only    the types of further fields that may be present, by name
    """
    members: list[Any] = []
    for field in fields(kind):
        if field.name in left_out:
            continue
        if field.required:
            members.append((field.name, field.type))
        elif field.default_factory is not msgspec.NODEFAULT:
            type_ = field.type | None if published else field.type
            members.append((field.name, type_, msgspec.field(default_factory=field.default_factory)))
        elif published and field.default is not UNSET and field.default is not None:
            members.append((field.name, field.type | None, field.default))
        else:
            members.append((field.name, field.type, field.default))
    if not members:
        return None
    members += [
        (name, Annotated[type_, Meta(extra_json_schema={"readOnly": True})] | UnsetType, UNSET)
        for name, type_ in read_only.items()
    ]
    name = kind.__name__
    body = msgspec.defstruct(f"{name}Body", members, kw_only=True, forbid_unknown_fields=True)
    return msgspec.defstruct(f"{name}Request", [(wrapper, body)], forbid_unknown_fields=True) if wrapper else body


def with_descriptions(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with the description and examples of nullable fields at their top level, where clients read them."""
    for field in schema.get("properties", {}).values():
        inner = [choice for choice in field.get("anyOf", ()) if choice != {"type": "null"}]
        if len(inner) == 1:
            for key in ("description", "examples"):
                if key in inner[0]:
                    field.setdefault(key, inner[0].pop(key))
    return schema


def sent_fields(command: Command, *names: str) -> dict[str, Any]:
    """The fields of a partial update that were sent, by name."""
    return {name: value for name in names if not isinstance(value := getattr(command, name), UnsetType)}
