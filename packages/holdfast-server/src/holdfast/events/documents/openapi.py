"""Builds the OpenAPI 3.1 document from the table of operations."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast.kit.contract.command import body_type, with_descriptions
from holdfast.kit.contract.problems import ProblemType
from holdfast.kit.operations.operation import Operation, Operations
from holdfast.kit.webhooks.model import MessageType, subject_of


def document(
    title: str,
    version: str,
    description: str,
    base_url: str,
    operations: Operations,
    problems: Sequence[ProblemType],
    messages: Sequence[MessageType] = (),
) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a service. `messages`: those that its webhooks send."""
    described = {operation: _OperationEntry(operation) for operation in operations if operation.route}
    types = [type_ for entry in described.values() for type_ in entry.types]
    types += {type(message.example): None for message in messages}
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    components = {_name(name): with_descriptions(_with_document_names(schema)) for name, schema in components.items()}
    schemas = [_with_document_names(schema) for schema in schemas]
    by_type = {id(type_): schema for type_, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for operation, entry in described.items():
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry.entry(by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "description": description},
        "servers": [{"url": base_url}],
        "paths": paths,
        "webhooks": {message.name: _message_entry(message, by_type) for message in messages},
        "components": {
            "schemas": {**components, "Error": _error_schema(problems)},
            "securitySchemes": {
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "bearer": {"type": "http", "scheme": "bearer", "description": "The same API keys as bearer tokens."},
            },
        },
        "security": [{"apiKey": []}, {"bearer": []}],
    }


def _name(component: str) -> str:
    """The name of a component in the document. A generic type gets a readable name: UserPage for Page_User_."""
    return f"{component[5:-1]}Page" if component.startswith("Page_") else component


def _with_document_names(schema: Any) -> Any:
    """The schema with the component names of the document in its references and titles."""
    match schema:
        case {"$ref": str(reference)}:
            folder, _, component = reference.rpartition("/")
            return {**schema, "$ref": f"{folder}/{_name(component)}"}
        case {"title": str(title), **rest} if title.startswith("Page["):
            return {"title": f"{title[5:-1]}Page", **_with_document_names(rest)}
        case dict():
            return {name: _with_document_names(value) for name, value in cast(dict[str, Any], schema).items()}
        case list():
            return [_with_document_names(item) for item in cast(list[Any], schema)]
        case _:
            return schema


IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "description": "Any text of your own, best a random UUID. If the same request comes again with this key within 24 "
    "hours, it is done only once and gets the same answer.",
}


RETRY_AFTER = {
    "schema": {"type": "integer", "minimum": 0},
    "description": "Seconds to wait. Without it, waiting does not help.",
}
LINK = {"schema": {"type": "string"}, "description": "What belongs to the answer, such as a proof (RFC 8288)."}
CHALLENGE = {"schema": {"type": "string"}, "description": "How to authenticate (RFC 6750)."}
HEADERS: Mapping[int, Mapping[str, Any]] = {
    401: {"WWW-Authenticate": CHALLENGE},
    404: {"Retry-After": RETRY_AFTER, "Link": LINK},
    429: {"Retry-After": RETRY_AFTER},
    503: {"Retry-After": RETRY_AFTER},
}
"""The headers of responses for problems, by status."""

MEMBERS = {
    "invalid_token": {
        "valid": {"type": "boolean", "description": "false with `invalid_token`."},
        "reason": {"type": "string", "description": "With `invalid_token`: what is wrong with the token."},
    }
}
"""Further members of errors, by their code."""


MESSAGE_HEADERS = [
    {"name": name, "in": "header", "required": True, "schema": {"type": "string"}, "description": description}
    for name, description in {
        "webhook-id": "The same each time that the message is sent.",
        "webhook-timestamp": "Seconds since 1970: when it was sent.",
        "webhook-signature": "Signatures, with a space between them: `v1,` or `v1a,` and base64.",
    }.items()
]
"""The headers of a message of a webhook, as Standard Webhooks 1.0.0 has them."""


def _message_entry(message: MessageType, by_type: Mapping[int, Any]) -> dict[str, Any]:
    """The entry of a message that is sent to endpoints of webhooks."""
    schema = {
        "type": "object",
        "required": ["type", "timestamp", "subject", "number", "data"],
        "properties": {
            "type": {"const": message.name},
            "timestamp": {"type": "string", "format": "date-time", "description": "When it happened."},
            "subject": {"type": "string", "description": "What it is about. Messages about it are numbered."},
            "number": {"type": "integer", "description": "Of this subject, at this endpoint: 1, 2, 3 ..."},
            "data": by_type[id(type(message.example))],
        },
    }
    example = {
        "type": message.name,
        "timestamp": "2027-05-01T18:00:00.000Z",
        "subject": subject_of(message.example),
        "number": 1,
        "data": msgspec.to_builtins(message.example),
    }
    return {
        "post": {
            "summary": message.description,
            "parameters": MESSAGE_HEADERS,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": schema, "example": example}},
            },
            "responses": {"2XX": {"description": "The message is delivered. With any other answer it is sent again."}},
        }
    }


class _OperationEntry:
    """Builds the entry of one operation."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        fields = msgspec.structs.fields(operation.command)
        self.path = [field for field in fields if field.name in operation.path_fields]
        rest = [field for field in fields if field.name not in operation.path_fields]
        has_body = operation.has_body_fields
        self.query = [] if has_body else rest
        self.body: Any = (
            body_type(
                operation.command,
                operation.path_fields,
                operation.body_member,
                published=True,
                read_only=operation.read_only_fields,
            )
            if has_body
            else None
        )
        self.answer: Any = operation.answer
        self.types = [type_ for type_ in (self.body, self.answer) if type_ is not None]

    def entry(self, by_type: dict[int, Any]) -> dict[str, Any]:
        operation = self.operation
        entry: dict[str, Any] = {
            "operationId": operation.name,
            "summary": operation.summary,
            "description": operation.description,
            "tags": [operation.noun],
            "parameters": [self._parameter(field, "path") for field in self.path]
            + [self._parameter(field, "query") for field in self.query]
            + ([IDEMPOTENCY_KEY] if operation.takes_idempotency_key else []),
            "responses": {str(operation.status): self._success(by_type), **self._failures()},
        }
        if operation.public:
            entry["security"] = []
        if self.body is not None:
            content = {"application/json": {"schema": by_type[id(self.body)]}}
            entry["requestBody"] = {"required": True, "content": content}
        return entry

    def _parameter(self, field: msgspec.structs.FieldInfo, location: str) -> dict[str, Any]:
        schema = msgspec.json.schema(field.type)
        description = schema.pop("description", None)
        if not field.required:
            schema["default"] = field.default
        parameter = {"name": field.name, "in": location, "required": field.required, "schema": schema}
        return {**parameter, "description": description} if description else parameter

    def _success(self, by_type: dict[int, Any]) -> dict[str, Any]:
        if self.answer is None:
            return {"description": "Done; there is no body."}
        schema = by_type[id(self.answer)]
        if not (self.operation.bare or self.operation.is_paginated):
            schema = {"type": "object", "properties": {"data": schema}, "required": ["data"]}
        headers = {"headers": {"Link": LINK}} if self.operation.has_link else {}
        return {"description": self.operation.summary, **headers, "content": {"application/json": {"schema": schema}}}

    def _failures(self) -> dict[str, Any]:
        """The responses for problems by status, with the codes and their meanings."""
        by_status: dict[int, list[ProblemType]] = {}
        for problem in self.operation.refuses:
            by_status.setdefault(problem.status, []).append(problem)
        return {
            str(status): {
                "description": " ".join(f"`{problem.code}`: {problem.meaning}" for problem in types),
                **({"headers": HEADERS[status]} if status in HEADERS else {}),
                "content": {"application/json": {"schema": _error_of([problem.code for problem in types])}},
            }
            for status, types in by_status.items()
        }


def _error_of(codes: Sequence[str]) -> dict[str, Any]:
    """The schema of an error whose code is one of these."""
    members = {name: schema for code in codes for name, schema in MEMBERS.get(code, {}).items()}
    properties = {"code": {"enum": [*codes]}, **members}
    return {"allOf": [{"$ref": "#/components/schemas/Error"}, {"properties": properties}]}


def codes_of(response: Mapping[str, Any]) -> Sequence[str]:
    """The codes in a documented error response."""
    return response["content"]["application/json"]["schema"]["allOf"][1]["properties"]["code"]["enum"]


def _error_schema(problems: Sequence[ProblemType]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Branch on `code`; `error` and `hint` are for reading.",
        "required": ["error", "code", "hint"],
        "properties": {
            "error": {"type": "string", "description": "What went wrong."},
            "code": {"type": "string", "enum": sorted({problem.code for problem in problems})},
            "hint": {"type": "string", "description": "What to do next."},
            "errors": {
                "type": "object",
                "description": "With the status 422: messages by field.",
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
            },
            "retry_after": {"type": "integer", "description": "Seconds to wait, as in the Retry-After header."},
        },
    }


def resolver(spec: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema, or the schema that its reference names."""
        name = schema.get("$ref", "").rpartition("/")[2]
        return spec["components"]["schemas"][name] if name else schema

    return resolve


def answer_schemas(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas of answers and of the objects inside them. Inputs are documented with their operation."""
    schemas = spec["components"]["schemas"]
    return {name: schema for name, schema in schemas.items() if not name.endswith(("Body", "Request"))}


def in_words(schema: Mapping[str, Any]) -> str:
    """A short description of a type and its limits: `string or null`, `array of PriceChange`, `integer, at least 1`."""
    return ", ".join([type_in_words(schema), *limits_in_words(schema)])


def type_in_words(schema: Mapping[str, Any]) -> str:
    """A type without its limits: `string or null`, `array of PriceChange`, `always false`."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "enum" in schema:
        values = [value if isinstance(value, str) else json.dumps(value) for value in schema["enum"]]
        return f"one of {', '.join(values)}" if len(values) > 1 else f"always {values[0]}"
    if "anyOf" in schema:
        return " or ".join(type_in_words(choice) for choice in schema["anyOf"])
    if schema.get("type") == "array":
        return f"array of {type_in_words(schema['items'])}"
    return schema.get("format") or schema.get("type") or "any"


def limits_in_words(schema: Mapping[str, Any]) -> list[str]:
    """The limits of a value: `at least 1`, `1 to 300 characters`. For a list, the limits of its items."""
    bounded = [schema, *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
    return [
        f"{limits}{unit}"
        for choice in bounded
        for least, most, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"))
        if (limits := _limits(choice.get(least), choice.get(most, _NO_LIMIT)))
    ]


def _limits(least: int | None, most: int) -> str:
    if most >= _NO_LIMIT:
        return "" if least is None else f"at least {least}"
    return f"at most {most}" if least is None else f"{least} to {most}"


_NO_LIMIT = 2**31 - 1
"""The largest number of a column: no limit that a reader must know."""
