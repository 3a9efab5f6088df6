"""The problems of OAuth, with the codes of RFC 6749, 7591 and 8707."""

import re
from typing import Any

from holdfast.kit.contract.problems import BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED, Problem, ProblemType

INVALID_REQUEST = ProblemType(
    "invalid_request",
    400,
    "The OAuth request cannot be understood.",
    "Compare it with RFC 6749 and the metadata at /.well-known/oauth-authorization-server.",
)
INVALID_CLIENT = ProblemType(
    "invalid_client",
    400,
    "The client is unknown, or its registration has ended.",
    "Register at /oauth/register, or use the https address of a client ID metadata document as client_id.",
)
INVALID_GRANT = ProblemType(
    "invalid_grant",
    400,
    "The code or the refresh token is unknown, or has expired.",
    "Ask the person again at /oauth/authorize.",
)
UNSUPPORTED_GRANT_TYPE = ProblemType(
    "unsupported_grant_type",
    400,
    "This grant type is not supported.",
    "Use authorization_code or refresh_token.",
)
UNSUPPORTED_RESPONSE_TYPE = ProblemType(
    "unsupported_response_type", 400, "This response type is not supported.", "Use response_type=code."
)
INVALID_SCOPE = ProblemType(
    "invalid_scope",
    400,
    "None of these scopes can be granted.",
    "Ask for scopes that the metadata lists, and later for no more than was granted.",
)
INVALID_TARGET = ProblemType(
    "invalid_target",
    400,
    "The resource is not one of this service.",
    "Leave out `resource`, or name the address of the agent endpoint.",
)
ACCESS_DENIED = ProblemType("access_denied", 403, "The person refused.", "Do not ask again without being told to.")
INVALID_REDIRECT_URI = ProblemType(
    "invalid_redirect_uri",
    400,
    "The client cannot use this redirect address.",
    "Use https, http on localhost or a loopback address, or the scheme of an app; without user and fragment.",
)
INVALID_CLIENT_METADATA = ProblemType(
    "invalid_client_metadata",
    400,
    "The metadata of the client is not acceptable.",
    "Send JSON with redirect_uris and without a secret: clients use PKCE.",
)

ALL = (
    INVALID_REQUEST,
    INVALID_CLIENT,
    INVALID_GRANT,
    UNSUPPORTED_GRANT_TYPE,
    UNSUPPORTED_RESPONSE_TYPE,
    INVALID_SCOPE,
    INVALID_TARGET,
    ACCESS_DENIED,
    INVALID_REDIRECT_URI,
    INVALID_CLIENT_METADATA,
)

UNREADABLE = frozenset({BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED})
"""The problems that the kit raises for a body or a query that it cannot read."""

_NOT_IN_DESCRIPTIONS = re.compile(r'[^ -~]|["\\]')


def description(problem: Problem) -> str:
    """The text of a problem, in the characters that RFC 6749 allows."""
    return _NOT_IN_DESCRIPTIONS.sub("'", f"{problem.message} {problem.hint}")


def error_body(problem: Problem) -> dict[str, Any]:
    """The error envelope of RFC 6749 and 7591."""
    return {"error": problem.code, "error_description": description(problem)}
