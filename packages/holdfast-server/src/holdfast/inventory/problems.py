"""The problems of the inventory service: its codes beyond those of every service, and its error envelope."""

from typing import Any

from holdfast.kit.contract.problems import NOT_FOUND, Problem, ProblemType

INVALID_SIGNATURE = ProblemType(
    "invalid_signature",
    401,
    "The request is not signed by the storefront platform.",
    "Call through the app proxy of the shop; a signature is good for 90 seconds.",
)
INVALID_STREAM_TOKEN = ProblemType(
    "invalid_stream_token",
    401,
    "The address of the stream is unknown, or has expired.",
    "Ask /storefront/availability again; it gives a fresh stream_url.",
)
INVALID_REQUEST = ProblemType(
    "invalid_request",
    400,
    "The request cannot be understood.",
    "Compare it with the examples in /auth.md and send it again.",
)
UNSUPPORTED_IDENTITY_TYPE = ProblemType(
    "unsupported_identity_type",
    400,
    "This type of identity is not supported.",
    'Use the type "service_auth" with the shop\'s API key.',
)
UNSUPPORTED_GRANT_TYPE = ProblemType(
    "unsupported_grant_type",
    400,
    "This grant type is not supported.",
    "Use urn:ietf:params:oauth:grant-type:jwt-bearer with an identity assertion.",
)
INVALID_GRANT = ProblemType(
    "invalid_grant",
    400,
    "The assertion is invalid, or has expired.",
    "Get a fresh one with POST /api/agent/identity.",
)
INVALID_SCOPE = ProblemType(
    "invalid_scope",
    400,
    "The identity does not have this scope.",
    "Ask for scopes of the shop's API key, or leave out `scope` to get them all.",
)
INVALID_TARGET = ProblemType(
    "invalid_target",
    400,
    "The resource is not one of this service.",
    "Leave out `resource`, or name the address of the agent endpoint.",
)
PLATFORM_REFUSED = ProblemType(
    "platform_refused",
    400,
    "The storefront platform did not accept this.",
    "Begin again; a code of the platform works once.",
)
INSTALL_EXPIRED = ProblemType(
    "install_expired",
    400,
    "The installation was begun in another browser, or more than a minute ago.",
    "Begin again at /auth?shop=SHOP_DOMAIN, and agree within a minute.",
)
INVALID_SESSION_TOKEN = ProblemType(
    "invalid_session_token",
    401,
    "The session token is missing, is not for this app, or has expired.",
    "Get a fresh one from App Bridge and send it as Authorization: Bearer <token>.",
)
MISSING_SCOPES = ProblemType(
    "missing_scopes",
    403,
    "The shop has not granted all access scopes that the app needs.",
    "Install the app again and agree to all of them.",
)
SHOP_NOT_CONNECTED = ProblemType(
    "shop_not_connected",
    409,
    "The shop is not connected with the storefront platform.",
    "Its merchant opens /auth?shop=SHOP_DOMAIN of this service.",
)
PLATFORM_UNREACHABLE = ProblemType(
    "platform_unreachable",
    503,
    "The storefront platform did not answer.",
    "Try again after the number of seconds in Retry-After.",
)
PLATFORM_NOT_CONFIGURED = ProblemType(
    "platform_not_configured",
    503,
    "The app is not set up at the storefront platform.",
    "The operator sets INVENTORY_CLIENT_ID and INVENTORY_CLIENT_SECRET.",
)
STALE = ProblemType(
    "stale",
    409,
    "The pool has changed since you read it.",
    "Look at `current`, decide again, and send the present version or quantity.",
)
NOT_ENOUGH_STOCK = ProblemType(
    "not_enough_stock",
    409,
    "There is not as much as this would take.",
    "Take at most what is available, or allow the pool to go below zero with update_pool.",
)
IDEMPOTENCY_KEY_REUSED = ProblemType(
    "idempotency_key_reused",
    409,
    "The idempotency key was used before, with other arguments.",
    "Use a new key for a new call, or repeat the arguments unchanged.",
)
POOL_NOT_ACTIVE = ProblemType(
    "pool_not_active",
    409,
    "The pool is archived.",
    "Bring it back with restore_pool first.",
)
POOL_HAS_HOLDS = ProblemType("pool_has_holds", 409, "The pool has holds.", "End the holds with release_hold first.")
NAME_TAKEN = ProblemType("name_taken", 409, "Another pool of the shop has this name.", "Choose another name.")
ALREADY_REVERTED = ProblemType(
    "already_reverted", 409, "The entry was reverted before.", "Look at the history; there is nothing left to undo."
)
NOT_REVERTIBLE = ProblemType(
    "not_revertible",
    409,
    "This kind of entry cannot be reverted.",
    "End a hold with release_hold; correct anything else with adjust_pool_quantity.",
)
HOLD_ENDED = ProblemType(
    "hold_ended",
    409,
    "The hold was released or sold, or has expired.",
    "Take a new hold with hold_quantity if you need one.",
)
TOO_MANY_ENDPOINTS = ProblemType(
    "too_many_endpoints",
    409,
    "The shop has 20 endpoints of webhooks, and may have no more.",
    "Give one of them another address with set_webhook; list_webhooks has them.",
)

ALL: tuple[ProblemType, ...] = (
    INVALID_SIGNATURE,
    INVALID_STREAM_TOKEN,
    INVALID_REQUEST,
    UNSUPPORTED_IDENTITY_TYPE,
    UNSUPPORTED_GRANT_TYPE,
    INVALID_GRANT,
    INVALID_SCOPE,
    INVALID_TARGET,
    PLATFORM_REFUSED,
    INSTALL_EXPIRED,
    INVALID_SESSION_TOKEN,
    MISSING_SCOPES,
    SHOP_NOT_CONNECTED,
    PLATFORM_UNREACHABLE,
    PLATFORM_NOT_CONFIGURED,
    STALE,
    NOT_ENOUGH_STOCK,
    IDEMPOTENCY_KEY_REUSED,
    POOL_NOT_ACTIVE,
    POOL_HAS_HOLDS,
    NAME_TAKEN,
    ALREADY_REVERTED,
    NOT_REVERTIBLE,
    HOLD_ENDED,
    TOO_MANY_ENDPOINTS,
)


def no_pool(id: int) -> Problem:
    """The problem of a pool that the shop does not have. It may be another shop's."""
    return NOT_FOUND(f"No pool has the id {id}.", hint="list_pools shows the pools of the shop.")


def not_linked(variant_gid: str) -> Problem:
    """The problem of a variant that draws on no pool of the shop."""
    return NOT_FOUND(f"{variant_gid} is not linked to a pool.", hint="link_variants links a variant to a pool.")


def error_body(problem: Problem) -> dict[str, Any]:
    """The error envelope of the service: a stable slug, and a text with the next step."""
    return {"error": problem.code, "message": f"{problem.message} {problem.hint}"}


def oauth_body(problem: Problem) -> dict[str, Any]:
    """The error in the form of RFC 6749, for the token endpoint."""
    return {"error": problem.code, "error_description": f"{problem.message} {problem.hint}"}
