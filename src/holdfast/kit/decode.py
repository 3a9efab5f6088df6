"""A request as a command: path, query and body, read, bounded and checked."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from starlette.types import Receive, Scope

from holdfast.kit.command import Command, body_type, broken_rules, check, fields, numbered, readable, sound
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


class CommandReader:
    """Reads the command of one operation out of its requests.

    The quick way decodes the body straight into types, and stops at the first fault. Then the careful way takes over,
    which finds every failing field.
    """

    def __init__(self, operation: Operation) -> None:
        self._kind = operation.command
        parts = operation.path.split("/")
        self._places = {part[1:-1]: place for place, part in enumerate(parts) if part.startswith("{")}
        self._in_path = {field.name: field for field in fields(self._kind) if field.name in self._places}
        self._elsewhere = tuple(field.name for field in fields(self._kind) if field.name not in self._places)
        self._takes_body = operation.takes_body
        self._wrapper = operation.body
        body = body_type(self._kind, self._places, self._wrapper) if self._takes_body else None
        self._decode = msgspec.json.Decoder(body).decode if body else None
        # Times need conversion to UTC, which only the careful way does; no hot operation takes one.
        self._quick = "date-time" not in str(msgspec.json.schema(self._kind))

    def __call__(self, scope: Scope, body: bytes) -> Command:
        """The command of a request. Raises `not_found` for an address of nothing, `validation_failed` and more."""
        path = self._path(scope) if self._places else {}
        query = read_query(scope["query_string"]) if scope["query_string"] else {}
        if not self._takes_body:
            return self._checked(path, numbered(self._kind, query))
        if query:
            raise invalid({name: ["unknown field"] for name in query})
        if self._decode and self._quick and b"\\u0000" not in body:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                return self._quickly(path, self._decode(body))
        return self._checked(path, self._unwrapped(parse(body)))

    def _path(self, scope: Scope) -> dict[str, Any]:
        parts = segments(scope)
        texts = numbered(self._kind, {name: parts[place] for name, place in self._places.items()})
        try:
            return {name: sound(msgspec.convert(texts[name], field.type)) for name, field in self._in_path.items()}
        except (msgspec.ValidationError, ValueError) as error:
            # An id that cannot exist is the id of nothing.
            raise NOT_FOUND(f"Nothing can have this address: {readable(str(error))}.") from error

    def _quickly(self, path: Mapping[str, Any], decoded: Any) -> Command:
        content = getattr(decoded, self._wrapper) if self._wrapper else decoded
        command = self._kind(**path, **{name: getattr(content, name) for name in self._elsewhere})
        if errors := broken_rules(command):
            raise invalid(errors)
        return command

    def _checked(self, path: Mapping[str, Any], values: Mapping[str, Any]) -> Command:
        if clash := self._places.keys() & values.keys():
            raise invalid({name: ["unknown field: it is part of the path"] for name in clash})
        if not values and not self._elsewhere:
            return self._kind(**path)
        return check(self._kind, {**values, **path})

    def _unwrapped(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The fields inside the wrapper, which stands alone."""
        if self._wrapper is None:
            return raw
        errors = {name: ["unknown field"] for name in raw if name != self._wrapper}
        content = raw.get(self._wrapper)
        if not isinstance(content, dict):
            errors[self._wrapper] = ["is required" if content is None else "expected an object"]
        if errors:
            raise invalid(errors)
        return cast(dict[str, Any], content)


def segments(scope: Scope) -> list[str]:
    """The path, part by part. What is percent-encoded within a part, a slash too, belongs to that part.

    A part that is not UTF-8 is empty, and so the name of nothing.
    """
    raw: bytes = scope.get("raw_path") or b""
    return [_unescaped(part) for part in raw.split(b"/")] if b"%" in raw else scope["path"].split("/")


def _unescaped(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return ""


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


async def read_body(headers: Headers, receive: Receive, kind: str = "application/json") -> bytes:
    """The whole body, bounded in type, size and time."""
    if headers.get(b"content-type", kind.encode()).split(b";")[0].strip().lower() != kind.encode():
        raise UNSUPPORTED_MEDIA_TYPE(f"The body is not declared as {kind}.", hint=f"Send Content-Type: {kind}.")
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 18:
        raise BAD_REQUEST("Content-Length is not a number of bytes.")
    if int(length) > MAX_BODY:
        raise PAYLOAD_TOO_LARGE()
    body = bytearray()
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
    return bytes(body)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object in a body, of any shape."""
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise INVALID_JSON(f"The body is not valid JSON: {error}.") from error
    if not isinstance(raw, dict):
        raise BAD_REQUEST("The body must be a JSON object.")
    return raw  # pyright: ignore[reportUnknownVariableType]
