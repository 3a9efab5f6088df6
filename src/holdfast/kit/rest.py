"""The REST door: the table of operations as HTTP.

Path, query and the wrapped body become one command; the answer becomes the envelope; a `Problem` becomes the error
envelope. Nothing but this file knows how an operation looks on the wire.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from holdfast.kit.batch import Batcher
from holdfast.kit.command import Command, body_type, broken_rules, check, numbered, readable
from holdfast.kit.database import Database, Tx
from holdfast.kit.keys import KeyRing
from holdfast.kit.limits import Limits
from holdfast.kit.metrics import REQUEST_SECONDS, REQUESTS
from holdfast.kit.operation import NOBODY, Call, Caller, Operation, Operations
from holdfast.kit.problems import (
    BAD_REQUEST,
    INTERNAL_ERROR,
    INVALID_JSON,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    PAYLOAD_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    Problem,
    invalid,
)

MAX_BODY = 1_048_576
BODY_SECONDS = 30
"""How long a client may take to send its body."""

log = structlog.get_logger()
encode = msgspec.json.Encoder().encode


class Table(BaseRoute):
    """The table of operations as one route: a look-up finds the path, however many there are."""

    def __init__(self, operations: Operations, database: Database[Any], keys: KeyRing, limits: Limits) -> None:
        self._static: dict[str, Methods] = {}
        self._shaped: dict[tuple[str | None, ...], tuple[tuple[str, ...], Methods]] = {}
        for operation in operations:
            if operation.path_fields:
                shape = tuple(None if part.startswith("{") else part for part in operation.path.split("/"))
                methods = self._shaped.setdefault(shape, (operation.path_fields, {}))[1]
            else:
                methods = self._static.setdefault(operation.path, {})
            methods[operation.method] = Endpoint(operation, database, keys, limits)
        self._shapes = tuple(self._shaped)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        path: str = scope["path"]
        if methods := self._static.get(path):
            return Match.FULL, {"endpoint": methods, "path_params": {}}
        parts = path.split("/")
        for shape in self._shapes:
            if len(shape) == len(parts) and all(
                part == literal if literal is not None else part for part, literal in zip(parts, shape, strict=True)
            ):
                names, methods = self._shaped[shape]
                values = (part for part, literal in zip(parts, shape, strict=True) if literal is None)
                return Match.FULL, {"endpoint": methods, "path_params": dict(zip(names, values, strict=True))}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        methods: Methods = scope["endpoint"]
        if endpoint := methods.get(scope["method"]):
            await endpoint(scope, receive, send)
        else:
            problem = METHOD_NOT_ALLOWED(f"{scope['path']} does not answer {scope['method']}.")
            allow = (b"allow", ", ".join(sorted(methods)).encode())
            await respond(send, problem.status, encode(problem.body()), [allow])


class Endpoint:
    """One operation over HTTP."""

    def __init__(self, operation: Operation, database: Database[Any], keys: KeyRing, limits: Limits) -> None:
        self._operation = operation
        self._keys = keys
        self._limits = limits
        self._command = command_reader(operation)
        self._wrap = not (operation.bare or operation.paged)
        self._run = runner(operation, database)
        self._observe = REQUEST_SECONDS.labels(operation.name).observe
        self._count = {status: REQUESTS.labels(operation.name, str(status)) for status in (operation.status,)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        operation = self._operation
        try:
            headers = dict(scope["headers"])
            caller = NOBODY if operation.public else await self._keys.caller(api_key(headers))
            if operation.limit:
                await self._limits.hit(operation.limit, address(scope) if operation.public else f"key {caller.key_id}")
            body = await read_body(headers, receive) if operation.method in WITH_BODY else b""
            answer = await self._run(caller, self._command(scope, body))
            status, extra = operation.status, ()
            content = b"" if answer is None else encode({"data": answer} if self._wrap else answer)
        except Problem as problem:
            status, extra, content = problem.status, headers_of(problem), encode(problem.body())
        except Exception as error:
            problem = unexpected(error, operation.name)
            status, extra, content = problem.status, (), encode(problem.body())
        await respond(send, status, content, extra)
        self._observe(time.perf_counter() - started)
        counter = self._count.get(status)
        if counter is None:
            counter = self._count[status] = REQUESTS.labels(operation.name, str(status))
        counter.inc()


WITH_BODY = frozenset({"POST", "PATCH", "PUT"})
Headers = Mapping[bytes, bytes]
Methods = dict[str, "Endpoint"]
ReadCommand = Callable[[Scope, bytes], Command]


def runner(operation: Operation, database: Database[Any]) -> Callable[[Caller, Any], Any]:
    """How an operation is run: alone in its transaction, or together with everyone else who waits."""
    if operation.many:

        async def together(calls: Sequence[Call[Any]]) -> Sequence[Any]:
            transact = database.read if operation.method == "GET" else database.transact
            return await transact(lambda tx: operation.run(tx, calls))

        submit = Batcher[Call[Any], Any](operation.name, together).submit
        return lambda caller, command: submit(Call(caller, command))

    async def alone(caller: Caller, command: Any) -> Any:
        async def work(tx: Tx[Any]) -> Any:
            return await operation.run(tx, caller, command)

        return await (database.read(work) if operation.method == "GET" else database.transact(work))

    return alone


def address(scope: Scope) -> str:
    """Where a request comes from: an address, or one name for everyone on a Unix socket."""
    return f"address {scope['client'][0]}" if scope.get("client") else "a local socket"


def api_key(headers: Headers) -> str | None:
    """The raw key of a request: X-API-Key, or else a bearer token."""
    if key := headers.get(b"x-api-key"):
        return key.decode("latin-1")
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def command_reader(operation: Operation) -> ReadCommand:
    """Compile how path, query and body of one operation become its command."""
    kind = operation.command
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    in_path = {name: fields[name] for name in operation.path_fields}

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

    if operation.method not in WITH_BODY:
        return from_query

    wrapper = operation.body
    shape = body_type(kind, in_path, wrapper)
    assert shape, f"{operation.name} takes a body but has no fields for it"
    decode = msgspec.json.Decoder(shape).decode
    names = tuple(fields.keys() - in_path.keys())

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
    if not length.isdigit():
        raise BAD_REQUEST("Content-Length is not a number.")
    if int(length) > MAX_BODY:
        raise PAYLOAD_TOO_LARGE()
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts = [body]
        size = len(body)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while message.get("more_body"):
                    message = await receive()
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > MAX_BODY:
                        raise PAYLOAD_TOO_LARGE()
        except TimeoutError as error:
            raise BAD_REQUEST("The body took too long to arrive.") from error
        body = b"".join(parts)
    if message["type"] == "http.disconnect":
        raise BAD_REQUEST("The client went away before the body was complete.")
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


def headers_of(problem: Problem) -> Sequence[tuple[bytes, bytes]]:
    """What HTTP wants beside the envelope: Retry-After, the challenge of a 401."""
    extra: list[tuple[bytes, bytes]] = []
    if problem.retry_after is not None:
        extra.append((b"retry-after", str(problem.retry_after).encode()))
    if problem.status == 401:
        extra.append((b"www-authenticate", b'Bearer realm="API key"'))
    return extra


def unexpected(error: Exception, operation: str) -> Problem:
    """A fault of ours: logged with an id, told without details."""
    request_id = secrets.token_hex(8)
    log.error("request failed", operation=operation, request_id=request_id, exc_info=error)
    return INTERNAL_ERROR(request_id=request_id)


async def respond(send: Send, status: int, content: bytes, extra: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [(b"cache-control", b"no-store"), (b"content-length", str(len(content)).encode()), *extra]
    if content:
        headers.append((b"content-type", b"application/json"))
    elif status == 204:
        headers.pop(1)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def refused(request: Request, error: Exception) -> Response:
    """The envelope for what the router itself refuses: unknown paths, and wrong methods on plain routes."""
    assert isinstance(error, HTTPException)
    kind = METHOD_NOT_ALLOWED if error.status_code == 405 else NOT_FOUND
    problem = kind(f"{request.method} {request.url.path} leads nowhere.")
    headers = {**(error.headers or {}), "cache-control": "no-store"}
    return Response(encode(problem.body()), problem.status, headers, "application/json")
