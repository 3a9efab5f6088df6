"""A refusal the caller can act on, and its one shape on every door.

Each service keeps a closed list of kinds (`docs/problems.md`). Clients branch on `code`, never on the text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Problem(Exception):
    """A request refused for a stated reason.

    `body()` is the error envelope: `error`, `code`, `hint`, and members of the single problem such as `errors` or
    `retry_after` (whole seconds, also sent as the `Retry-After` header).
    """

    def __init__(self, kind: "Kind", message: str, hint: str, extra: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.extra = extra

    @property
    def code(self) -> str:
        return self.kind.code

    @property
    def status(self) -> int:
        return self.kind.status

    @property
    def retry_after(self) -> int | None:
        return self.extra.get("retry_after")

    def body(self) -> dict[str, Any]:
        return {"error": self.message, "code": self.code, "hint": self.hint, **self.extra}


@dataclass(frozen=True, slots=True)
class Kind:
    """One code of the closed list. Calling it makes the problem: `raise NOT_FOUND("No event has the id 7.")`."""

    code: str
    status: int
    meaning: str
    hint: str

    def __call__(self, message: str | None = None, *, hint: str | None = None, **extra: Any) -> Problem:
        return Problem(self, message or self.meaning, hint or self.hint, extra)


BAD_REQUEST = Kind(
    "bad_request",
    400,
    "The request cannot be understood.",
    "Compare the request with the documentation and send it again.",
)
INVALID_JSON = Kind("invalid_json", 400, "The body is not valid JSON.", "Send one JSON object, encoded as UTF-8.")
MISSING_API_KEY = Kind(
    "missing_api_key",
    401,
    "This operation needs an API key.",
    "Send the key in the X-API-Key header or as Authorization: Bearer <API_KEY>.",
)
INVALID_API_KEY = Kind(
    "invalid_api_key",
    401,
    "The API key is unknown or has been revoked.",
    "Check the key for typing errors, or use another one.",
)
FORBIDDEN = Kind(
    "forbidden",
    403,
    "The API key is valid but may not do this.",
    "Use a key of the account that owns the resource, or an admin key.",
)
INSUFFICIENT_SCOPE = Kind(
    "insufficient_scope",
    403,
    "The API key or access token lacks a scope this needs.",
    "Use one that has the scopes named in `scope`.",
)
NOT_FOUND = Kind("not_found", 404, "Nothing is found here.", "Check the path and the ids in it.")
METHOD_NOT_ALLOWED = Kind(
    "method_not_allowed",
    405,
    "The path exists but does not answer this method.",
    "Use a method named in the Allow header.",
)
NOT_ACCEPTABLE = Kind(
    "not_acceptable",
    406,
    "None of the types in the Accept header can be sent.",
    "Send the header Accept: application/json, text/event-stream.",
)
PAYLOAD_TOO_LARGE = Kind(
    "payload_too_large", 413, "The request body is too large.", "Send a body of at most 1 MiB (1,048,576 bytes)."
)
UNSUPPORTED_MEDIA_TYPE = Kind(
    "unsupported_media_type",
    415,
    "The body is not declared as JSON.",
    "Send the header Content-Type: application/json.",
)
VALIDATION_FAILED = Kind(
    "validation_failed",
    422,
    "Some fields are missing or not acceptable.",
    "Correct the fields named in `errors` and send the request again.",
)
IDEMPOTENCY_KEY_REUSED = Kind(
    "idempotency_key_reused",
    422,
    "The Idempotency-Key was used before, for another request.",
    "Use a new key for a new request; repeat a request unchanged to get its answer again.",
)
RATE_LIMITED = Kind(
    "rate_limited", 429, "Too many requests.", "Wait for the number of seconds in Retry-After, then go on more slowly."
)
INTERNAL_ERROR = Kind(
    "internal_error",
    500,
    "The service failed to handle the request.",
    "Try again; if it persists, report the request_id to the operator.",
)
SERVICE_UNAVAILABLE = Kind(
    "service_unavailable",
    503,
    "The service cannot answer right now.",
    "Send the same request again after the number of seconds in Retry-After.",
)

ErrorBody = Callable[[Problem], dict[str, Any]]
"""A service's error envelope; most use `Problem.body`."""

EVERYWHERE: tuple[Kind, ...] = (
    BAD_REQUEST,
    INVALID_JSON,
    MISSING_API_KEY,
    INVALID_API_KEY,
    FORBIDDEN,
    INSUFFICIENT_SCOPE,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    NOT_ACCEPTABLE,
    PAYLOAD_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    VALIDATION_FAILED,
    RATE_LIMITED,
    INTERNAL_ERROR,
    SERVICE_UNAVAILABLE,
)
"""The kinds any operation of any service may answer with."""


def invalid(errors: Mapping[str, Sequence[str]]) -> Problem:
    """The 422 that names every failing field: `errors` maps a field to its messages."""
    fields = ", ".join(sorted(errors))
    return VALIDATION_FAILED(f"Not acceptable: {fields}.", errors=errors)
