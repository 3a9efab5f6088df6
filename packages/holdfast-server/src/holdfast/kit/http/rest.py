"""The REST interface: the table of operations over HTTP.

A request becomes a command, the answer becomes the envelope, a `Problem` becomes the error envelope.

Reads the command of a request from its path, its query and its body.

A valid command is read in one step. Anything else is read field by field, so that each wrong field is named.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import begin_request
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
from holdfast.kit.contract.problems import BAD_REQUEST, INVALID_JSON, NOT_FOUND, ErrorBody, invalid
from holdfast.kit.contract.sources import address
from holdfast.kit.contract.validation import json_error
from holdfast.kit.http.answers import ConstantAnswer
from holdfast.kit.http.body import has_body, read_body
from holdfast.kit.http.handler import (
    NO_STORE,
    NOSNIFF,
    Access,
    Headers,
    RenderProblem,
    Reply,
    Request,
    anonymous,
    encode,
    envelope,
    handle,
    headers_of,
    method_not_allowed,
    read_query,
    require_one_credential,
    routing_problem,
)
from holdfast.kit.http.path_repair import PATH_REPAIR, PathRepair
from holdfast.kit.http.paths import Paths, fields_of, has_route, redirect_without_slash, segments, without_slash
from holdfast.kit.http.query_parameters import NO_PARAMETERS, has_other_parameters
from holdfast.kit.running.operation import Operation, Operations
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.read_only import ReadOnlyMembers
from holdfast.kit.running.runner import Runner
from holdfast.kit.security.api_keys import Authenticate, credential

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


Methods = dict[str, "OperationEndpoint"]


class HandlerWithFields(NamedTuple):
    """A handler outside the table, and the fields of its path, each with the index of its part."""

    handler: ASGIApp
    fields: Mapping[str, int]


class OperationTable:
    """The table of operations as an ASGI application. It finds the operation of a path by a dictionary look-up.

    Other handlers can be added, by their paths, and constant answers to GET, by paths without fields. All other
    requests are passed to `otherwise`, whose middleware runs only for those.

    parameters    query parameters that a redirect to the path without a slash at its end keeps, in addition to the
                  fields of commands that are read from queries. Pages read no others. An operation refuses others, so
                  a request for an operation that has others is not redirected
    keeps_slash   the prefixes of paths that are not redirected in this way
    pages         the paths of pages, to which links as people pass them on lead
    program_prefixes    the prefixes of paths that are for programs
    """

    def __init__(
        self,
        operations: Operations,
        runner: Runner,
        authenticate: Authenticate,
        limits: Limits,
        *,
        handlers: Mapping[str, ASGIApp],
        constants: Mapping[str, ConstantAnswer],
        otherwise: Starlette,
        error_body: ErrorBody,
        parameters: Collection[str] = NO_PARAMETERS,
        keeps_slash: tuple[str, ...] = (),
        pages: Collection[str] = (),
        program_prefixes: tuple[str, ...] = (),
    ) -> None:
        self._keeps_slash = keeps_slash
        # Only fields of queries: fields of bodies may be secrets, such as a password, and must not be in an address.
        query_commands = (
            operation.command for operation in operations if operation.route and not operation.has_body_fields
        )
        query_fields = (field.name for command in query_commands for field in fields(command))
        self._parameters = frozenset((*query_fields, *parameters, "lang"))
        self._path_repair = PathRepair(pages, self._parameters, (*program_prefixes, *keeps_slash))
        self._methods: Paths[Methods] = Paths()
        self._refuse = envelope(error_body)
        for operation in operations:
            if not operation.route:
                continue
            methods = self._methods.setdefault(operation.path, {})
            methods[operation.method] = OperationEndpoint(operation, runner, authenticate, limits, self._refuse)

        async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
            await otherwise(scope, receive, without_sniffing(send))

        self._fixed_handlers = {path: handler for path, handler in handlers.items() if "{" not in path}
        self._fixed_handlers |= {path: constant.before(pass_on) for path, constant in constants.items()}
        self._handlers_with_fields: Paths[HandlerWithFields] = Paths()
        for path in handlers.keys() - self._fixed_handlers.keys():
            self._handlers_with_fields.setdefault(path, HandlerWithFields(handlers[path], fields_of(path)))
        self.otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin_request(scope)
        if handler := self._fixed_handlers.get(scope.get("path", "")):
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
            elif direct := self._handlers_with_fields.find(scope["path"], parts):
                scope["path_params"] = {name: parts[index] for name, index in direct.fields.items()}
                scope[PATH_REPAIR] = self._path_repair
                await direct.handler(scope, receive, send)
            elif self._has_handler_without_slash(scope, parts):
                request = Request(scope, receive, send, dict(scope["headers"]))
                await self._answer_slash(request, parts).send(request)
            else:
                scope[PATH_REPAIR] = self._path_repair
                await self.otherwise(scope, receive, without_sniffing(send))

    def _not_allowed(self, methods: Methods, request: Request) -> Reply:
        allowed = sorted({*methods, *({"HEAD"} if "GET" in methods else ())})
        return self._refuse(method_not_allowed(request.path, request.method, allowed), request)

    def _answer_slash(self, request: Request, parts: Sequence[str]) -> Reply:
        """The reply to a request whose path has a handler only without the slash at its end."""
        path = request.path[:-1]
        if self._methods.find(path, parts[:-1]) and has_other_parameters(request.query, self._parameters):
            # A redirect without them would leave out a misspelt filter. One with them might show a signature.
            problem = NOT_FOUND(
                "No operation has a path that ends with a slash.", hint="Leave out the slash at the end of the path."
            )
            return self._refuse(problem, request)
        return redirect_without_slash(request.scope, self._parameters)

    def _has_handler_without_slash(self, scope: Scope, parts: Sequence[str]) -> bool:
        """Whether a path has a handler only without the slash at its end."""
        path = without_slash(scope)
        if (
            path is None
            or scope["path"].startswith(self._keeps_slash)
            or has_route(scope["path"], scope, self.otherwise.routes)
        ):
            return False
        known = path in self._fixed_handlers or bool(
            self._methods.find(path, parts[:-1]) or self._handlers_with_fields.find(path, parts[:-1])
        )
        return known or has_route(path, scope, self.otherwise.routes)


def without_sniffing(send: Send) -> Send:
    """Return a `send` that adds `NOSNIFF` to answers that are no `Reply`."""

    async def forward(message: Message) -> None:
        if message["type"] == "http.response.start" and NOSNIFF not in message["headers"]:
            message["headers"] = [NOSNIFF, *message["headers"]]
        await send(message)

    return forward


class OperationEndpoint:
    """One operation over HTTP."""

    def __init__(
        self, operation: Operation, runner: Runner, authenticate: Authenticate, limits: Limits, refuse: RenderProblem
    ) -> None:
        self._operation = operation
        self._run = runner[operation]
        self._authenticate = authenticate
        self._limits = limits
        self._content_limit = operation.content_limit
        self._refuse = refuse
        self._access = Access.of(operation, runner)
        self._command = CommandReader(operation)
        self._read_only = ReadOnlyMembers(operation, runner)
        self._wraps_answer = not (operation.bare or operation.is_paginated)

    async def __call__(self, request: Request, parts: Sequence[str]) -> Reply:
        return await handle(
            self._access,
            self._limits,
            partial(anonymous, request) if self._operation.public else partial(self._caller, request),
            partial(self._answer, request, parts),
            lambda problem: self._refuse(problem, request),
        )

    def _caller(self, request: Request) -> Awaitable[Caller]:
        require_one_credential(request)
        return self._authenticate(credential(request.headers))

    async def _answer(self, request: Request, parts: Sequence[str], caller: Caller) -> Reply:
        operation = self._operation
        body = await read_body(request) if operation.has_body_fields else b""
        if operation.method_has_body and not operation.has_body_fields and has_body(request):
            require_empty(await read_body(request))
        command = self._command(parts, request.query, body)
        if self._operation.read_only_fields:
            await self._read_only.check(caller, command, self._command.members(body))
        if self._content_limit:
            limit = self._content_limit
            await self._limits.hit_shared(limit.name, limit.key(command), address(request.scope))
        key = idempotency_key(request.headers) if operation.takes_idempotency_key else None
        answer = await self._run(caller, command, key)
        content = b"" if answer is None else encode({"data": answer} if self._wraps_answer else answer)
        link = operation.link(answer) if operation.link else ""
        return Reply(operation.status, content, [NO_STORE, (b"link", link.encode())] if link else [NO_STORE])


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


def render_routing_errors(error_body: ErrorBody) -> Callable[[StarletteRequest, Exception], Awaitable[Response]]:
    """Return a function that renders refusals of the router (unknown paths, wrong methods) in the error envelope."""

    async def refuse(request: StarletteRequest, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        problem = routing_problem(request.scope, error)
        headers = {name.decode(): value.decode() for name, value in (NO_STORE, *headers_of(problem))}
        return Response(encode(error_body(problem)), problem.status, headers, "application/json")

    return refuse
