"""Operations as tools: how they are listed, how arguments become commands, what answers and refusals look like."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import msgspec
from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType

from holdfast.kit.command import Command, broken_rules, check
from holdfast.kit.limits import Limits
from holdfast.kit.mcp.jsonrpc import INVALID_PARAMS, PARSE_ERROR, Fault, Params, anything, encode
from holdfast.kit.mcp.methods import OVER_HTTP, Cacheable, Methods, Outcome, Result, Work, done, require_scope, required
from holdfast.kit.openapi import explained
from holdfast.kit.operation import Caller, Operation, Operations
from holdfast.kit.problems import Problem, invalid
from holdfast.kit.runner import Run, Runner


class Text(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class ToolResult(Result, kw_only=True, rename="camel"):
    """What a call of a tool comes to. The text is the structured content once more, for clients that know no other."""

    content: tuple[Text]
    structured_content: Raw | UnsetType = UNSET
    is_error: bool = False


class ToolList(Cacheable, kw_only=True, rename="camel"):
    tools: Raw


class Tools:
    """The tools of a service.

    limit    the rate limit that every call counts against, by name
    """

    def __init__(self, operations: Operations, runner: Runner, limits: Limits, limit: str | None) -> None:
        self._tools = {each.name: Tool(each, runner[each]) for each in operations if each.tool}
        self._scopes = frozenset(tool.operation.scope for tool in self._tools.values())
        self._listed: dict[frozenset[str | None], Raw] = {}
        self._limits = limits
        self._limit = limit
        self.methods: Methods = {"tools/list": self.index, "tools/call": self.call}

    async def index(self, caller: Caller, params: Params) -> Work:
        """The tools a caller may call, in the order of the table."""
        if params.cursor is not None:
            raise Fault(INVALID_PARAMS, "This list has a single page: leave out the cursor.")
        held = frozenset(filter(caller.has, self._scopes))
        return done("tools/list", ToolList(tools=self._listed.get(held) or self._list(held)))

    def _list(self, scopes: frozenset[str | None]) -> Raw:
        listed = encode([tool.definition for tool in self._tools.values() if tool.operation.scope in scopes])
        return self._listed.setdefault(scopes, Raw(listed))

    async def call(self, caller: Caller, params: Params) -> Work:
        """A call of one tool. Raises `insufficient_scope` and `rate_limited`."""
        name = required(params.name, "name")
        tool = self._tools.get(name)
        if tool is None:
            raise Fault(INVALID_PARAMS, f"Unknown tool: {name}")
        require_scope(caller, tool.operation)
        for limit in (self._limit, tool.operation.limit):
            if limit:
                await self._limits.hit(limit, caller.counted_as)
        return Work(name, partial(tool.call, caller, params.arguments))


class Tool:
    """One operation as a tool."""

    def __init__(self, operation: Operation, run: Run) -> None:
        self.operation = operation
        self.definition = definition(operation)
        self._run = run
        self._command = ArgumentReader(operation.command)

    async def call(self, caller: Caller, arguments: Raw) -> Outcome:
        try:
            answer = await self._run(caller, self._command(arguments))
        except Problem as problem:
            if problem.kind in OVER_HTTP:
                raise
            return told(problem)
        content = b"{}" if answer is None else encode({"data": answer} if self.operation.listed else answer)
        return Outcome(ToolResult(content=(Text(content.decode()),), structured_content=Raw(content)))


def told(problem: Problem) -> Outcome:
    """A refusal as a result, which models read and act on."""
    retryable = problem.retry_after is not None or problem.status == 503
    members = {"code": problem.code, "message": problem.message, "hint": problem.hint, "retryable": retryable}
    text = encode({**members, **problem.extra}).decode()
    return Outcome(ToolResult(content=(Text(text),), is_error=True), problem.status)


class ArgumentReader:
    """Reads the command of one tool out of its arguments.

    Like `decode.CommandReader`: the quick way stops at the first fault, the careful way then finds every failing field.
    """

    def __init__(self, kind: type[Command]) -> None:
        self._kind = kind
        self._decode: Callable[[bytes], Command] = msgspec.json.Decoder(kind).decode
        # Times need conversion to UTC, which only the careful way does.
        self._quick = "date-time" not in str(msgspec.json.schema(kind))

    def __call__(self, arguments: Raw) -> Command:
        """Raises `validation_failed`, and `Fault` for what is no JSON object."""
        text = bytes(arguments)
        if self._quick and b"\\u0000" not in text:
            with contextlib.suppress(MsgspecError, RecursionError):
                command = self._decode(text)
                if errors := broken_rules(command):
                    raise invalid(errors)
                return command
        values = anything(arguments)
        if not isinstance(values, dict | None):
            raise Fault(INVALID_PARAMS, "`params.arguments` must be an object.")
        try:
            return check(self._kind, cast(dict[str, Any], values or {}))
        except RecursionError as error:
            raise Fault(PARSE_ERROR, "`params.arguments` is nested too deeply.") from error


def definition(operation: Operation) -> dict[str, Any]:
    """A tool as lists show it."""
    hints = operation.tool
    assert hints
    annotations = {
        "title": operation.title,
        "readOnlyHint": hints.read_only,
        "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent,
        "openWorldHint": hints.open_world,
    }
    return {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "inputSchema": schema(operation.command),
        "outputSchema": schema(answer_type(operation)),
        "annotations": annotations,
    }


class Nothing(Struct, forbid_unknown_fields=True):
    """The answer of an operation that has none."""


def answer_type(operation: Operation) -> Any:
    """What a tool answers with, which is always an object."""
    if operation.answer is None:
        return Nothing
    return msgspec.defstruct("Items", [("data", operation.answer)]) if operation.listed else operation.answer


def schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type whose values are objects, with an object at its root as the protocol wants it."""
    (root,), shared = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    name = root.get("$ref", "").removeprefix("#/$defs/")
    root = {"type": "object", **shared.pop(name, root)}
    if root["type"] != "object":
        raise TypeError(f"a tool takes and answers JSON objects, not {kind}")
    # The name of a class tells an agent nothing, and the description of the tool stands beside it.
    root = {key: value for key, value in root.items() if key not in {"title", "description"}}
    root = explained(root)
    return {**root, "$defs": {name: explained(each) for name, each in shared.items()}} if shared else root
