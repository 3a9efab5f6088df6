"""The REST interface: the table of operations over HTTP.

A request becomes a command, the answer becomes the envelope, a `Problem` becomes the error envelope.
"""

import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.kit.body import read_body
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command, body_type, broken_rules, check, fields, has_times, numbered, read_field
from holdfast.kit.handler import (
    NO_STORE,
    NOSNIFF,
    Access,
    Headers,
    Refuse,
    Reply,
    Request,
    anonymous,
    encode,
    envelope,
    handle,
    method_not_allowed,
    read_query,
)
from holdfast.kit.keys import Authenticate, credential
from holdfast.kit.limits import Limits
from holdfast.kit.operation import Operation, Operations
from holdfast.kit.paths import Paths, fields_of, leads_somewhere, moved, segments, without_slash
from holdfast.kit.problems import BAD_REQUEST, INVALID_JSON, METHOD_NOT_ALLOWED, NOT_FOUND, ErrorBody, invalid
from holdfast.kit.runner import Run, Runner
from holdfast.kit.validation import malformed

Methods = dict[str, "Endpoint"]


class Direct(NamedTuple):
    """A handler outside the table, and the fields of its path, each with the place of its part."""

    handler: ASGIApp
    fields: Mapping[str, int]


class Table:
    """The table of operations as an ASGI application. It finds the operation of a path by a dictionary look-up.

    Other handlers can be added, by their paths. All other requests are passed to `otherwise`, whose middleware runs
    only for those.
    """

    def __init__(
        self,
        operations: Operations,
        runner: Runner,
        authenticate: Authenticate,
        limits: Limits,
        *,
        handlers: Mapping[str, ASGIApp],
        otherwise: Starlette,
        error_body: ErrorBody,
    ) -> None:
        self._methods: Paths[Methods] = Paths()
        self._refuse = envelope(error_body)
        for operation in operations:
            if not operation.route:
                continue
            methods = self._methods.setdefault(operation.path, {})
            methods[operation.method] = Endpoint(operation, runner[operation], authenticate, limits, self._refuse)
        self._fixed = {path: handler for path, handler in handlers.items() if "{" not in path}
        self._direct: Paths[Direct] = Paths()
        for path in handlers.keys() - self._fixed.keys():
            self._direct.setdefault(path, Direct(handlers[path], fields_of(path)))
        self.otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if handler := self._fixed.get(scope.get("path", "")):
            await handler(scope, receive, send)
        elif scope["type"] != "http":
            await self.otherwise(scope, receive, send)
        else:
            parts = segments(scope)
            if methods := self._methods.find(scope["path"], parts):
                request = Request(scope, receive, send, dict(scope["headers"]))
                # A path that answers GET also answers HEAD; the server leaves out the body.
                endpoint = methods.get("GET" if request.method == "HEAD" else request.method)
                reply = await endpoint(request, parts) if endpoint else self._not_allowed(methods, request)
                await reply.send(request)
            elif direct := self._direct.find(scope["path"], parts):
                scope["path_params"] = {name: parts[place] for name, place in direct.fields.items()}
                await direct.handler(scope, receive, send)
            elif self._has_moved(scope, parts):
                await moved(scope).send(Request(scope, receive, send, {}))
            else:
                await self.otherwise(scope, receive, without_sniffing(send))

    def _not_allowed(self, methods: Methods, request: Request) -> Reply:
        allowed = sorted({*methods, *({"HEAD"} if "GET" in methods else ())})
        return self._refuse(method_not_allowed(request.path, request.method, allowed), request)

    def _has_moved(self, scope: Scope, parts: Sequence[str]) -> bool:
        """Whether a path leads somewhere only without the slash at its end."""
        path = without_slash(scope)
        if path is None or leads_somewhere(scope["path"], scope, self.otherwise.routes):
            return False
        known = path in self._fixed or bool(self._methods.find(path, parts[:-1]) or self._direct.find(path, parts[:-1]))
        return known or leads_somewhere(path, scope, self.otherwise.routes)


def without_sniffing(send: Send) -> Send:
    """A `send` that adds `NOSNIFF` to answers that no `Reply` made."""

    async def forward(message: Message) -> None:
        if message["type"] == "http.response.start" and NOSNIFF not in message["headers"]:
            message["headers"] = [NOSNIFF, *message["headers"]]
        await send(message)

    return forward


class Endpoint:
    """One operation over HTTP."""

    def __init__(
        self, operation: Operation, run: Run, authenticate: Authenticate, limits: Limits, refuse: Refuse
    ) -> None:
        self._operation = operation
        self._run = run
        self._authenticate = authenticate
        self._limits = limits
        self._refuse = refuse
        self._access = Access(operation.name, operation.scope, operation.limit)
        self._command = CommandReader(operation)
        self._wrap = not (operation.bare or operation.answers_page)

    async def __call__(self, request: Request, parts: Sequence[str]) -> Reply:
        return await handle(
            self._access,
            self._limits,
            partial(anonymous, request)
            if self._operation.public
            else partial(self._authenticate, credential(request.headers)),
            partial(self._answer, request, parts),
            lambda problem: self._refuse(problem, request),
        )

    async def _answer(self, request: Request, parts: Sequence[str], caller: Caller) -> Reply:
        operation = self._operation
        body = await read_body(request) if operation.takes_body else b""
        command = self._command(parts, request.query, body)
        key = idempotency_key(request.headers) if operation.repeatable else None
        answer = await self._run(caller, command, key)
        content = b"" if answer is None else encode({"data": answer} if self._wrap else answer)
        return Reply(operation.status, content, [NO_STORE])


_PRINTABLE = re.compile(r"[ -~]{1,255}")


def idempotency_key(headers: Headers) -> str | None:
    """The value of the header Idempotency-Key, or None. Raises `bad_request` if it is malformed."""
    header = headers.get(b"idempotency-key")
    if header is None:
        return None
    key = header.decode("latin-1").strip()
    if not _PRINTABLE.fullmatch(key):
        raise BAD_REQUEST(
            "The Idempotency-Key cannot be one.", hint="Send 1 to 255 printable ASCII characters, best a random UUID."
        )
    return key


def unrouted(error_body: ErrorBody) -> Callable[[StarletteRequest, Exception], Awaitable[Response]]:
    """Renders what the router itself refuses (unknown paths, wrong methods on plain routes) in the error envelope."""

    async def refuse(request: StarletteRequest, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        type = METHOD_NOT_ALLOWED if error.status_code == 405 else NOT_FOUND
        problem = type(f"{request.method} {request.url.path} leads nowhere.")
        headers = {**(error.headers or {}), "cache-control": "no-store"}
        return Response(encode(error_body(problem)), problem.status, headers, "application/json")

    return refuse


class CommandReader:
    """Reads the command of one operation from its requests.

    The fast path decodes the body directly into types, and stops at the first error. Then the slow path finds every
    failing field.
    """

    def __init__(self, operation: Operation) -> None:
        self._kind = operation.command
        self._places = fields_of(operation.path)
        self._in_path = {field.name: field for field in fields(self._kind) if field.name in self._places}
        self._elsewhere = tuple(field.name for field in fields(self._kind) if field.name not in self._places)
        self._takes_body = operation.takes_body
        self._returned = operation.returned
        self._read_only = operation.read_only
        self._wrapper = operation.body
        body = body_type(self._kind, self._places, self._wrapper) if self._takes_body else None
        self._decode = msgspec.json.Decoder(body).decode if body else None
        # Times must be converted to UTC, which only the slow path does; no frequent operation takes a time.
        self._quick = not has_times(self._kind)

    def __call__(self, path_parts: Sequence[str], query_string: bytes, body: bytes) -> Command:
        """The command of a request. Raises `not_found` for an id that cannot exist, `validation_failed` and others."""
        if not self._elsewhere and not self._takes_body and not query_string:
            return self._from_path(path_parts)
        path = self._path(path_parts) if self._places else {}
        query = read_query(query_string) if query_string else {}
        if not self._takes_body:
            return self._checked(path, numbered(self._kind, query))
        if query:
            raise invalid({name: ["unknown field"] for name in query})
        if self._decode and self._quick and b"\\u0000" not in body:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                return self._quickly(path, self._decode(body))
        return self._checked(path, self._unwrapped(parse(body)))

    def _from_path(self, parts: Sequence[str]) -> Command:
        """The command of a request that says everything by its path."""
        try:
            if "\0" not in "".join(parts):
                return msgspec.convert(self._texts(parts), self._kind)
        except msgspec.ValidationError:
            pass  # the slow path says what is wrong
        return self._kind(**self._path(parts))

    def _texts(self, parts: Sequence[str]) -> dict[str, Any]:
        return numbered(self._kind, {name: parts[place] for name, place in self._places.items()})

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

    def _quickly(self, path: Mapping[str, Any], decoded: Any) -> Command:
        content = getattr(decoded, self._wrapper) if self._wrapper else decoded
        command = self._kind(**path, **{name: getattr(content, name) for name in self._elsewhere})
        if errors := broken_rules(command):
            raise invalid(errors)
        return command

    def _checked(self, path: Mapping[str, Any], values: Mapping[str, Any]) -> Command:
        clash = {name for name in self._places.keys() & values.keys() if not self._is_repeated(name, path, values)}
        if clash:
            raise invalid({name: ["unknown field: it is part of the path"] for name in clash})
        return check(self._kind, {**values, **path}, self._read_only)

    def _is_repeated(self, name: str, path: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
        """Whether a body has a field of the path as an answer had it."""
        return name in self._returned and values[name] == path[name]

    def _unwrapped(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The fields inside the wrapper, which must be the only member of the body."""
        if self._wrapper is None:
            return raw
        errors = {name: ["unknown field"] for name in raw if name != self._wrapper}
        content = raw.get(self._wrapper)
        if not isinstance(content, dict):
            errors[self._wrapper] = ["is required" if content is None else "must be an object"]
        if errors:
            raise invalid(errors)
        return cast(dict[str, Any], content)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object in a body, with any members."""
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise INVALID_JSON(f"The body is not valid JSON: {malformed(error)}.") from error
    if not isinstance(raw, dict):
        raise BAD_REQUEST("The body must be a JSON object.")
    return raw  # pyright: ignore[reportUnknownVariableType]
