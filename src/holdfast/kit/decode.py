"""A request as a command: path, query and body, read, bounded and checked."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope

from holdfast.kit.command import Command, body_type, broken_rules, check, fields, numbered, readable
from holdfast.kit.operation import Operation
from holdfast.kit.problems import (
    BAD_REQUEST,
    INVALID_JSON,
    NOT_FOUND,
    PAYLOAD_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    invalid,
)

MAX_BODY = 1_048_576
BODY_SECONDS = 30
"""How long a client may take to send its body."""

Headers = Mapping[bytes, bytes]
ReadCommand = Callable[[Scope, bytes], Command]


def command_reader(operation: Operation) -> ReadCommand:
    """Compile how path, query and body of one operation become its command."""
    kind = operation.command
    in_path = {field.name: field for field in fields(kind) if field.name in operation.path_fields}

    def path_values(scope: Scope) -> dict[str, Any]:
        try:
            # Ids that cannot exist are ids of nothing.
            texts = numbered(kind, scope["path_params"])
            return {name: msgspec.convert(texts[name], field.type) for name, field in in_path.items()}
        except msgspec.ValidationError as error:
            raise NOT_FOUND(f"Nothing can have this address: {readable(str(error))}.") from error

    def from_query(scope: Scope, _: bytes) -> Command:
        if not scope["query_string"]:
            with contextlib.suppress(msgspec.ValidationError):
                return msgspec.convert(numbered(kind, scope["path_params"]), kind)
        path = path_values(scope)
        query = read_query(scope["query_string"])
        if clash := in_path.keys() & query.keys():
            raise invalid({name: ["unknown field"] for name in clash})
        return check(kind, {**path, **numbered(kind, query)})

    if not operation.takes_body:
        return from_query

    wrapper = operation.body
    shape = body_type(kind, in_path, wrapper)
    assert shape, f"{operation.name} takes a body but has no fields for it"
    decode = msgspec.json.Decoder(shape).decode
    names = tuple(field.name for field in fields(kind) if field.name not in in_path)

    def carefully(path: Mapping[str, Any], body: bytes) -> Command:
        """The slow way, which finds every failing field."""
        raw = parse(body)
        if wrapper:
            errors = {name: ["unknown field"] for name in raw if name != wrapper}
            raw = raw.get(wrapper)
            if not isinstance(raw, dict):
                errors[wrapper] = ["is required" if raw is None else "expected an object"]
                raise invalid(errors)
            if errors:
                raise invalid(errors)
        values = cast(dict[str, Any], raw)
        if clash := in_path.keys() & values.keys():
            raise invalid({name: ["unknown field: it is part of the path"] for name in clash})
        return check(kind, {**values, **path})

    def from_body(scope: Scope, body: bytes) -> Command:
        path = path_values(scope)
        if scope["query_string"]:
            raise invalid({name: ["unknown field"] for name in read_query(scope["query_string"])})
        if plain and b"\\u0000" not in body:
            try:
                decoded = decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                return carefully(path, body)
            content = getattr(decoded, wrapper) if wrapper else decoded
            command = kind(**path, **{name: getattr(content, name) for name in names})
            if errors := broken_rules(command):
                raise invalid(errors)
            return command
        return carefully(path, body)

    # Times need conversion to UTC, which only the careful way does; no hot operation takes one.
    plain = "date-time" not in str(msgspec.json.schema(kind))
    return from_body


def read_query(query_string: bytes) -> dict[str, str]:
    """The query as names and values; one given twice is refused rather than guessed at."""
    try:
        pairs = parse_qsl(query_string.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError as error:
        raise BAD_REQUEST("The query string cannot be read.") from error
    query = dict(pairs)
    if len(query) != len(pairs):
        names = [name for name, _ in pairs]
        raise invalid({name: ["is given more than once"] for name in query if names.count(name) > 1})
    return query


async def read_body(headers: Headers, receive: Receive) -> bytes:
    """The whole body, bounded in type, size and time."""
    kind = headers.get(b"content-type", b"application/json").split(b";")[0].strip().lower()
    if kind != b"application/json":
        raise UNSUPPORTED_MEDIA_TYPE()
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 18:
        raise BAD_REQUEST("Content-Length is not a number of bytes.")
    if int(length) > MAX_BODY:
        raise PAYLOAD_TOO_LARGE()
    body = b""
    more = True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise BAD_REQUEST("The client went away before the body was complete.")
                body += message.get("body", b"")
                if len(body) > MAX_BODY:
                    raise PAYLOAD_TOO_LARGE()
                more = message.get("more_body", False)
    except TimeoutError as error:
        raise BAD_REQUEST("The body took too long to arrive.") from error
    return body


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object in a body, of any shape."""
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise INVALID_JSON(f"The body is not valid JSON: {error}.") from error
    if not isinstance(raw, dict):
        raise BAD_REQUEST("The body must be a JSON object.")
    return raw  # pyright: ignore[reportUnknownVariableType]
