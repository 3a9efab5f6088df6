"""What the discovery documents of every service are held to: the schemas of others, and the addresses inside."""

import re
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
BOOLEAN: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}
URL: Schema = {"type": "string", "pattern": r"^https?://[^\s{}]+$"}


def members(required: dict[str, Schema], **optional: Schema) -> Schema:
    """An object that has these members, may have those, and has no others."""
    properties = {**required, **optional}
    return {"type": "object", "required": [*required], "properties": properties, "additionalProperties": False}


def items(schema: Schema) -> Schema:
    """An array that has some of these."""
    return {"type": "array", "items": schema, "minItems": 1}


CARD_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
SERVER_CARD: Schema = members(
    {
        "$schema": {"const": CARD_SCHEMA},
        "name": {"type": "string", "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "version": {"type": "string", "maxLength": 255},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
    },
    title={"type": "string", "minLength": 1, "maxLength": 100},
    websiteUrl=URL,
    remotes=items(
        members(
            {"type": {"enum": ["streamable-http", "sse"]}, "url": URL},
            supportedProtocolVersions=TEXTS,
            headers=items(
                members(
                    {"name": TEXT},
                    description=TEXT,
                    value=TEXT,
                    isRequired=BOOLEAN,
                    isSecret=BOOLEAN,
                    variables={"type": "object", "additionalProperties": {"type": "object"}},
                )
            ),
        )
    ),
)
"""github.com/modelcontextprotocol/experimental-ext-server-card, schema.json: the parts a card of ours has."""

REQUIREMENTS: Schema = items(
    members({"schemes": {"type": "object", "additionalProperties": members({"list": TEXTS})}}),
)
AGENT_CARD: Schema = members(
    {
        "name": TEXT,
        "description": TEXT,
        "supportedInterfaces": items(
            members({"url": URL, "protocolBinding": TEXT, "protocolVersion": TEXT}, tenant=TEXT)
        ),
        "version": TEXT,
        "capabilities": members({}, streaming=BOOLEAN, pushNotifications=BOOLEAN, extendedAgentCard=BOOLEAN),
        "defaultInputModes": items(TEXT),
        "defaultOutputModes": items(TEXT),
        "skills": items(
            members(
                {"id": TEXT, "name": TEXT, "description": TEXT, "tags": items(TEXT)},
                **dict.fromkeys(("examples", "inputModes", "outputModes"), TEXTS),
                securityRequirements=REQUIREMENTS,
            )
        ),
        # What readers of 0.3 look for.
        "url": URL,
        "protocolVersion": {"const": "0.3.0"},
    },
    preferredTransport=TEXT,
    provider=members({"url": URL, "organization": TEXT}),
    documentationUrl=URL,
    iconUrl=URL,
    securityRequirements=REQUIREMENTS,
    securitySchemes={
        "type": "object",
        "additionalProperties": {
            "oneOf": [
                members({"httpAuthSecurityScheme": members({"scheme": TEXT}, description=TEXT, bearerFormat=TEXT)}),
                members(
                    {
                        "apiKeySecurityScheme": members(
                            {"location": {"enum": ["query", "header", "cookie"]}, "name": TEXT}, description=TEXT
                        )
                    }
                ),
            ]
        },
    },
)
"""github.com/a2aproject/A2A, specification/a2a.proto 1.0, as JSON; with what readers of 0.3 look for."""


def addresses(value: Any) -> Iterator[str]:
    """Every address in a document, be it JSON or a text."""
    match value:
        case str():
            yield from re.findall(r"https?://[^\s\"'<>`\\)|*$]*[^\s\"'<>`\\)|*$.,:;]", value)
        case dict():
            for member in value.values():  # pyright: ignore[reportUnknownVariableType]
                yield from addresses(member)
        case list():
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                yield from addresses(item)
        case _:
            pass
