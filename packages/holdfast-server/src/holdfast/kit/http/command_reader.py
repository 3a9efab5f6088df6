"""Reads the command of a request from its path, its query and its body.

A valid command is read in one step. Anything else is read field by field, so that each wrong field is named.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from holdfast.kit.contract.command import (
    Command,
    body_type,
    broken_rules,
    check,
    fields,
    has_times,
    read_field,
    with_integers,
)
from holdfast.kit.contract.problems import BAD_REQUEST, INVALID_JSON, NOT_FOUND, invalid
from holdfast.kit.contract.validation import json_error
from holdfast.kit.http.handler import read_query
from holdfast.kit.http.paths import fields_of
from holdfast.kit.running.operation import Operation

S = TypeVar("S", bound=Struct)


class CommandReader:
    """Reads the command of one operation from its requests.

    The fast path decodes the body directly into types, and stops at the first error. Then the slow path finds every
    failing field.
    """

    def __init__(self, operation: Operation) -> None:
        self._kind = operation.command
        self._field_indexes = fields_of(operation.path)
        self._in_path = {field.name: field for field in fields(self._kind) if field.name in self._field_indexes}
        self._path_kind = msgspec.defstruct("Path", [(field.name, field.type) for field in self._in_path.values()])
        self._other_fields = tuple(field.name for field in fields(self._kind) if field.name not in self._field_indexes)
        self._has_body_fields = operation.has_body_fields
        self._answer_fields = operation.answer_fields
        self._read_only = operation.read_only_fields
        self._body_member = operation.body_member
        body = body_type(self._kind, self._field_indexes, self._body_member) if self._has_body_fields else None
        self._decode = msgspec.json.Decoder(body).decode if body else None
        # Only the slow path converts times to UTC; no frequent operation takes a time.
        self._quick = not has_times(self._kind)

    def __call__(self, path_parts: Sequence[str], query_string: bytes, body: bytes) -> Command:
        """The command of a request. Raises `not_found` for an id that cannot exist, `validation_failed` and others."""
        if not self._other_fields and not self._has_body_fields and not query_string:
            return self._from_path(path_parts)
        if self._decode and self._quick and not query_string and b"\\u0000" not in body:
            try:
                return self._quickly(path_parts, self._decode(body))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                pass  # the slow path reports every error
        path = self._path(path_parts) if self._field_indexes else {}
        query = read_query(query_string) if query_string else {}
        if not self._has_body_fields:
            return self._checked(path, with_integers(self._kind, query))
        if query:
            raise invalid({name: ["unknown field"] for name in query})
        return self._checked(path, self._unwrapped(decode_object(body)))

    def members(self, body: bytes) -> Mapping[str, Any]:
        """The members of a body that was read before."""
        return self._unwrapped(decode_object(body))

    def _from_path(self, parts: Sequence[str]) -> Command:
        """The command of a request whose fields are all in its path."""
        try:
            return self._converted(parts, self._kind)
        except msgspec.ValidationError:
            return self._kind(**self._path(parts))  # or the error

    def _converted(self, parts: Sequence[str], kind: type[S]) -> S:
        """The fields of a path as a struct. Raises `msgspec.ValidationError`."""
        if "\0" in "".join(parts):
            raise msgspec.ValidationError("A path contains NUL.")
        return msgspec.convert(self._texts(parts), kind)

    def _texts(self, parts: Sequence[str]) -> dict[str, Any]:
        return with_integers(self._kind, {name: parts[index] for name, index in self._field_indexes.items()})

    def _path(self, parts: Sequence[str]) -> dict[str, Any]:
        texts = self._texts(parts)
        values: dict[str, Any] = {}
        for name, field in self._in_path.items():
            try:
                values[name] = read_field(field, texts[name])
            except ValueError as error:
                # An id that cannot exist is not found.
                raise NOT_FOUND(f"Nothing can have this address: {name} {error}.") from error
        return values

    def _quickly(self, parts: Sequence[str], decoded: Any) -> Command:
        content = getattr(decoded, self._body_member) if self._body_member else decoded
        values = {name: getattr(content, name) for name in self._other_fields}
        if self._in_path:
            path = self._converted(parts, self._path_kind)
            values |= {name: getattr(path, name) for name in self._in_path}
        command = self._kind(**values)
        if errors := broken_rules(command):
            raise invalid(errors)
        return command

    def _checked(self, path: Mapping[str, Any], values: Mapping[str, Any]) -> Command:
        clash = {
            name
            for name in self._field_indexes.keys() & values.keys()
            if not self._echoes_path_field(name, path, values)
        }
        if clash:
            raise invalid({name: ["unknown field: it is part of the path"] for name in clash})
        return check(self._kind, {**values, **path}, self._read_only)

    def _echoes_path_field(self, name: str, path: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
        """Whether a body repeats a field of the path with the value that an answer had."""
        return name in self._answer_fields and values[name] == path[name]

    def _unwrapped(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The fields inside the wrapper, which must be the only member of the body."""
        if self._body_member is None:
            return raw
        errors = {name: ["unknown field"] for name in raw if name != self._body_member}
        content = raw.get(self._body_member)
        if not isinstance(content, dict):
            errors[self._body_member] = ["is required" if content is None else "must be an object"]
        if errors:
            raise invalid(errors)
        return cast(dict[str, Any], content)


def require_empty(body: bytes) -> None:
    """Refuse a body that is not empty, for an operation that takes no body."""
    if body and (content := decode_object(body)):
        raise invalid({name: ["unknown field"] for name in content})


def decode_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body, with any members."""
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise INVALID_JSON(f"The body is not valid JSON: {json_error(error)}.") from error
    if not isinstance(raw, dict):
        raise BAD_REQUEST("The body must be a JSON object.")
    return raw  # pyright: ignore[reportUnknownVariableType]
