"""The REST interface: the table of operations over HTTP.

A request becomes a command, the answer becomes the envelope, a `Problem` becomes the error envelope.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import begin_request
from holdfast.kit.contract.command import (
    fields,
)
from holdfast.kit.contract.problems import BAD_REQUEST, NOT_FOUND, ErrorBody
from holdfast.kit.contract.sources import address
from holdfast.kit.http.body import has_body, read_body
from holdfast.kit.http.command_reader import CommandReader, require_empty
from holdfast.kit.http.constant_answers import ConstantAnswer
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
