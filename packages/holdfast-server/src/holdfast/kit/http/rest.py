"""The REST interface: the table of operations over HTTP.

The path, the query and the body of a request become a command, the answer becomes the envelope, a `Problem` becomes the
error envelope. A valid command without times is read in one step. Anything else is read field by field, so that each
wrong field is named.
"""

import re
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import address
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
from holdfast.kit.http.body import has_body, read_body
from holdfast.kit.http.handler import (
    NO_STORE,
    Access,
    Headers,
    RenderProblem,
    Reply,
    Request,
    anonymous,
    encode,
    handle,
    method_not_allowed,
    read_query,
    require_one_credential,
)
from holdfast.kit.http.index import Route, field_names
from holdfast.kit.operations.operation import Operation, Operations
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.read_only import ReadOnlyMembers
from holdfast.kit.operations.runner import Runner
from holdfast.kit.security.api_keys import Authenticate, credential

S = TypeVar("S", bound=Struct)


class CommandReader:
    """Reads the command of one operation from its requests.

    The fast path decodes the body directly into types, and stops at the first error. Then the slow path finds every
    failing field.
    """

    def __init__(self, operation: Operation) -> None:
        self._kind = operation.command
        self._path_fields = field_names(operation.path)
        self._in_path = {field.name: field for field in fields(self._kind) if field.name in self._path_fields}
        self._path_kind = msgspec.defstruct("Path", [(field.name, field.type) for field in self._in_path.values()])
        self._other_fields = tuple(field.name for field in fields(self._kind) if field.name not in self._path_fields)
        self._has_body_fields = operation.has_body_fields
        self._answer_fields = operation.answer_fields
        self._read_only = operation.read_only_fields
        self._body_member = operation.body_member
        body = body_type(self._kind, self._path_fields, self._body_member) if self._has_body_fields else None
        self._decode = msgspec.json.Decoder(body).decode if body else None
        # Only the slow path converts times to UTC; no frequent operation takes a time.
        self._quick = not has_times(self._kind)

    def __call__(self, path_fields: Mapping[str, str], query_string: bytes, body: bytes) -> Command:
        """The command of a request. Raises `not_found` for an id that cannot exist, `validation_failed` and others."""
        if not self._other_fields and not self._has_body_fields and not query_string:
            return self._read_path_only(path_fields)
        if self._decode and self._quick and not query_string and b"\\u0000" not in body:
            try:
                return self._read_fast(path_fields, self._decode(body))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                pass  # the slow path reports every error
        path = self._path_fields_of(path_fields) if self._path_fields else {}
        query = read_query(query_string) if query_string else {}
        if not self._has_body_fields:
            return self._read_query(path, query)
        if query:
            raise invalid({name: ["unknown field"] for name in query})
        return self._check(path, self._unwrap(decode_object(body)))

    def members(self, body: bytes) -> Mapping[str, Any]:
        """The members of a body that was read before."""
        return self._unwrap(decode_object(body))

    def _read_path_only(self, texts: Mapping[str, str]) -> Command:
        """The command of a request whose fields are all in its path."""
        try:
            return self._convert_path(texts, self._kind)
        except msgspec.ValidationError:
            return self._kind(**self._path_fields_of(texts))  # or raises `not_found`, which names the field

    def _convert_path(self, texts: Mapping[str, str], kind: type[S]) -> S:
        """The fields of a path as a struct. Raises `msgspec.ValidationError`."""
        if "\0" in "".join(texts.values()):
            raise msgspec.ValidationError("A path contains NUL.")
        return msgspec.convert(with_integers(self._kind, texts), kind)

    def _path_fields_of(self, texts: Mapping[str, str]) -> dict[str, Any]:
        raw = with_integers(self._kind, texts)
        values: dict[str, Any] = {}
        for name, field in self._in_path.items():
            try:
                values[name] = read_field(field, raw[name])
            except ValueError as error:
                # An id that cannot exist is not found.
                raise NOT_FOUND(f"Nothing can have this address: {name} {error}.") from error
        return values

    def _read_fast(self, texts: Mapping[str, str], decoded: Any) -> Command:
        content = getattr(decoded, self._body_member) if self._body_member else decoded
        values = {name: getattr(content, name) for name in self._other_fields}
        if self._in_path:
            path = self._convert_path(texts, self._path_kind)
            values |= {name: getattr(path, name) for name in self._in_path}
        command = self._kind(**values)
        if errors := broken_rules(command):
            raise invalid(errors)
        return command

    def _read_query(self, path: Mapping[str, Any], texts: Mapping[str, str]) -> Command:
        """The command of a request whose other fields are in its query."""
        values = with_integers(self._kind, texts)
        if self._quick and path.keys().isdisjoint(values) and "\0" not in "".join(texts.values()):
            try:
                command = msgspec.convert({**values, **path}, self._kind)
            except msgspec.ValidationError:
                pass  # the slow path reports every error
            else:
                if not broken_rules(command):
                    return command
        return self._check(path, values)

    def _check(self, path: Mapping[str, Any], values: Mapping[str, Any]) -> Command:
        clash = {name for name in values.keys() & self._path_fields if not self._echoes_path_field(name, path, values)}
        if clash:
            raise invalid({name: ["unknown field: it is part of the path"] for name in clash})
        return check(self._kind, {**values, **path}, self._read_only)

    def _echoes_path_field(self, name: str, path: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
        """Whether a body repeats a field of the path with the value that an answer had."""
        return name in self._answer_fields and values[name] == path[name]

    def _unwrap(self, raw: dict[str, Any]) -> dict[str, Any]:
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


def query_parameters(operations: Operations) -> frozenset[str]:
    """The names of the query parameters that operations read.

    Only fields of queries: fields of bodies may be secrets, such as a password, and must not be in an address.
    """
    commands = (operation.command for operation in operations if operation.route and not operation.has_body_fields)
    return frozenset(field.name for command in commands for field in fields(command))


def routes(
    operations: Operations, runner: Runner, authenticate: Authenticate, limits: Limits, refuse: RenderProblem
) -> list[Route]:
    """The routes of the table of operations. `refuse` renders the problems of operations."""
    paths: dict[str, dict[str, OperationEndpoint]] = {}
    for operation in operations:
        if operation.route:
            endpoint = OperationEndpoint(operation, runner, authenticate, limits, refuse)
            paths.setdefault(operation.path, {})[operation.method] = endpoint
    return [Route(path, OperationsOfPath(methods), refuses_parameters=True) for path, methods in paths.items()]


class OperationsOfPath:
    """The operations of one path, by their methods. A path that answers GET also answers HEAD."""

    def __init__(self, methods: Mapping[str, "OperationEndpoint"]) -> None:
        self.methods = sorted({*methods, *({"HEAD"} if "GET" in methods else ())})
        # The server leaves out the body of the answer to HEAD.
        self._endpoints = {method: methods["GET" if method == "HEAD" else method] for method in self.methods}

    async def __call__(self, request: Request) -> Reply:
        if endpoint := self._endpoints.get(request.method):
            return await endpoint(request)
        raise method_not_allowed(request.path, request.method, self.methods)


class OperationEndpoint:
    """One operation over HTTP."""

    def __init__(
        self, operation: Operation, runner: Runner, authenticate: Authenticate, limits: Limits, refuse: RenderProblem
    ) -> None:
        self._operation = operation
        self._run = runner.run_with_link(operation)
        self._authenticate = authenticate
        self._limits = limits
        self._content_limit = operation.content_limit
        self._refuse = refuse
        self._access = Access.of(operation, runner)
        self._command = CommandReader(operation)
        self._read_only = ReadOnlyMembers(operation, runner)
        self._wraps_answer = not (operation.bare or operation.is_paginated)

    async def __call__(self, request: Request) -> Reply:
        return await handle(
            self._access,
            self._limits,
            partial(anonymous, request) if self._operation.public else partial(self._caller, request),
            partial(self._answer, request),
            lambda problem: self._refuse(problem, request),
        )

    def _caller(self, request: Request) -> Awaitable[Caller]:
        require_one_credential(request)
        return self._authenticate(credential(request.headers))

    async def _answer(self, request: Request, caller: Caller) -> Reply:
        operation = self._operation
        body = await read_body(request) if operation.has_body_fields else b""
        if operation.method_has_body and not operation.has_body_fields and has_body(request):
            require_empty(await read_body(request))
        command = self._command(request.fields, request.query, body)
        if self._operation.read_only_fields:
            await self._read_only.check(caller, command, self._command.members(body))
        if self._content_limit:
            limit = self._content_limit
            await self._limits.hit_shared(limit.name, limit.key(command), address(request.scope))
        key = idempotency_key(request.headers) if operation.takes_idempotency_key else None
        answer, link = await self._run(caller, command, key), ""
        if operation.has_link:
            answer, link = answer.body, answer.link
        content = b"" if answer is None else encode({"data": answer} if self._wraps_answer else answer)
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
