"""Operations as MCP tools: the list of tools with JSON Schemas, arguments as commands, answers and refusals as results.

Schemas are as short as possible: an agent reads all of them before its first call. The schema of arguments has the
bounds of each member, and the description of the member says them too, since some clients drop the bounds. It leaves
out the minimum of ids and pages, the bounds of what the database stores, patterns, which the description explains, and
defaults that are false, zero or an empty text. The schema of an answer is an outline: its members. The answer shows the
rest.

Some vendors refuse all tools if one of their schemas has a keyword that they do not know. So each member has one type;
a list of types, a choice with null and `uniqueItems` are left out. A member that can be emptied is named by `clear`.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, cast

import msgspec
from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import NOTHING_READ_ONLY, Command, Errors, broken_rules, check, has_times
from holdfast.kit.contract.problems import (
    DAILY_LIMIT_REACHED,
    FORBIDDEN,
    NOT_FOUND,
    VALIDATION_FAILED,
    Problem,
    invalid,
)
from holdfast.kit.http.handler import Access, admit
from holdfast.kit.mcp import jsonrpc as rpc
from holdfast.kit.operations.operation import Operation, Operations
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.read_only import ReadOnlyMembers
from holdfast.kit.operations.runner import Runner

Schema = dict[str, Any]

REF = "#/$defs/"
TYPES = {str: "string", bool: "boolean", int: "integer"}
LEFT_OUT = {"title", "examples", "pattern", "uniqueItems"}
STORED_BOUNDS = [("minimum", -(2**63)), ("maximum", 2**63 - 1), ("maximum", 2**31 - 1), ("maximum", 10**12 - 1)]
"""The bounds of what the database stores, which are left out because they do not help an agent."""

PAGE_FIELDS = {"offset", "limit"}
"""The arguments that say which page of a list is meant."""

CLEAR = "clear"
"""The argument of a tool that names the members to be emptied. The command has null for them."""


def command_schema(kind: Any) -> Schema:
    """The schema of a command. It does not mention that null means an absent member."""
    root, shared = _schema(kind)
    schema = _object(root, shared)
    if names := clearable(kind):
        items = {"type": "string", "enum": [*names]}
        schema["properties"][CLEAR] = {"description": "Members to set to null.", "type": "array", "items": items}
    return schema


@cache
def clearable(kind: Any) -> Sequence[str]:
    """The members of a command that null empties: an absent one leaves the stored value as it is."""
    return [
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if field.default is UNSET and {"type": "null"} in msgspec.json.schema(field.type).get("anyOf", ())
    ]


def answer_outline(kind: Any) -> Schema:
    """The members of an answer."""
    root, _ = _schema(kind)
    members: Schema = {"properties": {name: {} for name in root["properties"]}}
    return {"type": "object", **(members if root["properties"] else {})}


def _schema(kind: Any) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a type whose values are objects, and the schemas that it refers to."""
    (root,), shared = msgspec.json.schema_components([kind], ref_template=REF + "{name}")
    root = shared.get(root.get("$ref", "").removeprefix(REF), root)
    if "properties" not in root:
        raise TypeError(f"a tool takes and answers JSON objects, not {kind}")
    return root, shared


def _object(schema: Schema, shared: dict[str, Schema]) -> Schema:
    required = {"required": schema["required"]} if schema["required"] else {}
    return {
        "type": "object",
        "properties": {
            name: _argument(_without_minimum(member) if has_unsaid_minimum(name) else member, shared)
            for name, member in schema["properties"].items()
        },
        **required,
        "additionalProperties": False,
    }


def has_unsaid_minimum(name: str) -> bool:
    """Whether a member is an id, or says which page of a list is meant: that it is not negative goes without saying."""
    return name == "id" or name.endswith("_id") or name in PAGE_FIELDS


def _without_minimum(schema: Schema) -> Schema:
    choices = {"anyOf": [_without_minimum(choice) for choice in schema["anyOf"]]} if "anyOf" in schema else {}
    return {name: value for name, value in schema.items() if name != "minimum"} | choices


def _argument(schema: Schema, shared: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _object(shared[schema["$ref"].removeprefix(REF)], shared)
    short = {
        name: value for name, value in schema.items() if name not in LEFT_OUT and (name, value) not in STORED_BOUNDS
    }
    if "anyOf" in short:
        [inner] = [choice for choice in short.pop("anyOf") if choice != {"type": "null"}]
        return _argument({**inner, **short}, shared)
    if "items" in short:
        short["items"] = _argument(short["items"], shared)
        # The description of the list is enough.
        short["items"].pop("description", None)
    if "enum" in short:
        short["type"] = TYPES[type(short["enum"][0])]
    if not short.get("default", True):
        # False, zero or an empty text: an agent takes an absent argument for this anyway.
        del short["default"]
    if description := " ".join(filter(None, [short.get("description"), bounds_in_words(short)])):
        short["description"] = description
    return short


def bounds_in_words(schema: Schema) -> str:
    """The bounds of a member as a sentence; empty if they go without saying, such as that an id is at least 1."""
    minimum, maximum = schema.get("minimum", 0), schema.get("maximum")
    if maximum is not None and minimum not in {0, 1}:
        return f"{minimum} to {maximum}."
    longest = schema.get("items", {}).get("maxLength")
    of_each = f" of up to {longest} characters" if longest else ""
    for bound, noun in (
        (maximum, ""),
        (schema.get("maxLength"), " characters"),
        (schema.get("maxItems"), f" items{of_each}"),
    ):
        if bound is not None:
            return f"Up to {bound}{noun}."
    return ""


class TextContent(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class ToolResult(rpc.Result, kw_only=True, rename="camel"):
    """The result of a tool call. The text repeats the structured content, for clients that read only texts."""

    content: tuple[TextContent]
    structured_content: Raw | UnsetType = UNSET
    is_error: bool = False


class ToolList(rpc.CacheableResult, kw_only=True, rename="camel"):
    tools: Raw


class Tools:
    """The tools of a service."""

    def __init__(self, operations: Operations, runner: Runner, limits: Limits) -> None:
        self._tools = {operation.name: Tool(operation, runner) for operation in operations if operation.tool}
        self._scopes = frozenset(tool.operation.scope for tool in self._tools.values())
        self._listed: dict[frozenset[str | None], Raw] = {}
        self._limits = limits
        self.methods: rpc.Methods = {"tools/list": self.list_tools, "tools/call": self.admit_call}

    async def list_tools(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        """The tools that a caller may call, in the order of the table."""
        if params.cursor is not None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, "This list has a single page: leave out the cursor.")
        held_scopes = frozenset(filter(caller.has, self._scopes))
        return rpc.completed_request(
            "tools/list", ToolList(tools=self._listed.get(held_scopes) or self._list(held_scopes))
        )

    def _list(self, scopes: frozenset[str | None]) -> Raw:
        allowed_operations = [tool.operation for tool in self._tools.values() if tool.operation.scope in scopes]
        return self._listed.setdefault(scopes, Raw(rpc.encode(definitions(allowed_operations))))

    async def admit_call(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        """Admit a call of one tool; `rpc.perform` runs it. Raises `insufficient_scope` and `rate_limited`."""
        name = rpc.required_param(params.name, "name")
        tool = self._tools.get(name)
        if tool is None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"Unknown tool: {name}")
        await admit(tool.access, self._limits, caller)
        return rpc.AdmittedRequest(tool.access, partial(tool.call, caller, params.arguments))


class Tool:
    """One operation as a tool."""

    def __init__(self, operation: Operation, runner: Runner) -> None:
        self.operation = operation
        self.access = Access.of(operation, runner)
        # Built when the service starts, so that an answer type that is no object is found at that time.
        self.definition = definition(operation)
        self._run = runner.run_of(operation)
        self._read_only = ReadOnlyMembers(operation, runner)
        self._command = ArgumentReader(operation.tool_command, operation.read_only_fields)

    async def call(self, caller: Caller, arguments: Raw) -> rpc.CallResult:
        try:
            command = self._command(arguments)
            if self.operation.read_only_fields:
                await self._read_only.check(caller, command, msgspec.json.decode(arguments) or {})
            answer = await self._run(caller, command)
        except Problem as problem:
            if problem.type in rpc.HTTP_STATUS_PROBLEMS:
                raise
            return error_result(problem)
        content = b"{}" if answer is None else rpc.encode({"data": answer} if self.operation.answers_list else answer)
        return rpc.CallResult(ToolResult(content=(TextContent(content.decode()),), structured_content=Raw(content)))


def error_result(problem: Problem) -> rpc.CallResult:
    """A problem as a tool result with `isError`, which models can read and act on."""
    # Without such a time, only the operator can help, as when a setting is missing.
    retryable = problem.retry_after is not None
    members = {"code": problem.code, "message": problem.message, "hint": problem.hint, "retryable": retryable}
    text = rpc.encode({**members, **problem.extra}).decode()
    return rpc.CallResult(ToolResult(content=(TextContent(text),), is_error=True), problem.status)


class ArgumentReader:
    """Reads the command of one tool from its arguments.

    Like `rest.CommandReader`: the fast path stops at the first error, the slow path then finds every failing field.
    """

    def __init__(self, kind: type[Command], read_only: Mapping[str, Any] = NOTHING_READ_ONLY) -> None:
        self._kind = kind
        self._read_only = read_only
        self._clearable = clearable(kind)
        self._decode: Callable[[bytes], Command] = msgspec.json.Decoder(self._kind).decode
        # Only the slow path converts times to UTC.
        self._has_fast_path = not has_times(self._kind)

    def __call__(self, arguments: Raw) -> Command:
        """The command in the arguments. Raises `validation_failed`, and `RpcError` if they are no JSON object."""
        text = bytes(arguments)
        if self._has_fast_path and b"\\u0000" not in text:
            with contextlib.suppress(MsgspecError, RecursionError):
                command = self._decode(text)
                if errors := broken_rules(command):
                    raise invalid(errors)
                return command
        values = rpc.decode_json(arguments)
        if not isinstance(values, dict | None):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "`params.arguments` must be an object.")
        try:
            arguments_with_nulls, errors = self._with_nulls(cast(dict[str, Any], values or {}))
            return check(self._kind, arguments_with_nulls, self._read_only, errors)
        except RecursionError as error:
            raise rpc.RpcError(rpc.PARSE_ERROR, "`params.arguments` is nested too deeply.") from error

    def _with_nulls(self, values: dict[str, Any]) -> tuple[dict[str, Any], Errors]:
        """The arguments with null for each member that `clear` names, and what is wrong with `clear`."""
        if not self._clearable or CLEAR not in values:
            return values, {}
        rest = {name: value for name, value in values.items() if name != CLEAR}
        names: Any = [] if values[CLEAR] is None else values[CLEAR]
        if not isinstance(names, list) or not all(name in self._clearable for name in cast(list[Any], names)):
            return rest, {CLEAR: [f"must be an array of names, each one of {', '.join(self._clearable)}"]}
        if clashes := sorted(name for name in cast(list[str], names) if rest.get(name) is not None):
            return rest, {CLEAR: [f"names {clashes[0]}, which has a value too: leave out one of them"]}
        return {**rest, **dict.fromkeys(cast(list[str], names))}, {}


def definitions(operations: Operations) -> list[Schema]:
    """The definitions of operations for `tools/list`.

    An answer type that several tools share is outlined once. An argument is explained again only if the last tool that
    explains one with its name says something else; the instructions say so.
    """
    first_with_answer: dict[Any, str] = {}
    last_descriptions: dict[str, str] = {}
    schemas: list[Schema] = []
    for operation in operations:
        first_name = first_with_answer.setdefault(operation.answer, operation.name)
        is_first = first_name == operation.name or operation.answer is None
        tool = definition(operation)
        output = tool["outputSchema"] if is_first else {"type": "object", "description": f"As {first_name}."}
        schemas.append(
            {**tool, "inputSchema": _without_repeats(tool["inputSchema"], last_descriptions), "outputSchema": output}
        )
    return schemas


def _without_repeats(schema: Schema, last_descriptions: dict[str, str]) -> Schema:
    """The schema of arguments without the descriptions that the tools before it gave last. It adds its own to them."""
    members: Schema = {}
    for name, member in schema["properties"].items():
        is_repeated = last_descriptions.get(name) == member.get("description")
        members[name] = {key: value for key, value in member.items() if not (is_repeated and key == "description")}
        last_descriptions[name] = member.get("description", "")
    return {**schema, "properties": members}


@cache
def definition(operation: Operation) -> Schema:
    """The full definition of a tool."""
    hints = operation.tool
    assert hints
    annotations = {"title": operation.title, "readOnlyHint": hints.read_only}
    if not hints.read_only:
        # The protocol gives these two no meaning for a tool that only reads. Absent, the second is false.
        annotations |= {"destructiveHint": hints.destructive}
        annotations |= {"idempotentHint": True} if hints.idempotent else {}
    annotations["openWorldHint"] = hints.reaches_outside
    return {
        "name": operation.name,
        # On one line: breaks are tokens too.
        "description": " ".join((operation.description + _refusals(operation)).split()),
        "inputSchema": command_schema(operation.tool_command),
        "outputSchema": answer_outline(answer_type(operation)),
        "annotations": annotations,
    }


def _refusals(operation: Operation) -> str:
    """The codes of the problems of this tool, without those that its description explains, or the instructions name."""
    types = {*operation.mode.refuses} - {VALIDATION_FAILED, NOT_FOUND, FORBIDDEN, DAILY_LIMIT_REACHED}
    codes = sorted(type.code for type in types if f"`{type.code}`" not in operation.description)
    return f" Errors: {', '.join(codes)}." if codes else ""


class EmptyAnswer(Struct, forbid_unknown_fields=True):
    """The answer of an operation without an answer."""


def answer_type(operation: Operation) -> Any:
    """The type of a tool's answer, which is always an object."""
    if operation.answer is None:
        return EmptyAnswer
    return msgspec.defstruct("Items", [("data", operation.answer)]) if operation.answers_list else operation.answer
