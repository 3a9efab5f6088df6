"""Problems: refusals that the caller can act on, with the same members in REST and MCP.

Each service has a closed list of problem types (`docs/problems.md`). Clients branch on `code`, never on the text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from holdfast.kit.contract.messages import Message, message

F = TypeVar("F", bound=Callable[..., object])

CountedOwner = Literal["network", "account", ""]


class Problem(Exception):
    """Raised to refuse a request. It has a code, a message and a hint.

    `body()` is the error envelope: `error`, `code`, `hint`, and further members of some problems, such as `errors` or
    `retry_after` (whole seconds, also sent as the `Retry-After` header).

    errors     the messages of `errors` for pages, which translate them into the language of the visitor
    allow      with `method_not_allowed`: the methods of the Allow header
    link       the value of the Link header; empty: there is none
    counted    with `rate_limited`: the kind of owner whose requests were counted, for pages; empty: another kind
    """

    def __init__(
        self,
        type: "ProblemType",
        message: str,
        hint: str,
        extra: Mapping[str, Any],
        *,
        allow: str = "",
        link: str = "",
        counted: CountedOwner = "",
    ) -> None:
        super().__init__(message)
        self.type = type
        self.message = str(message)
        self.hint = hint
        self.errors: Mapping[str, Sequence[str]] = extra.get("errors", {})
        self.extra: Mapping[str, Any] = {**extra, "errors": _plain(self.errors)} if self.errors else extra
        self.allow = allow
        self.link = link
        self.counted = counted

    @property
    def code(self) -> str:
        return self.type.code

    @property
    def status(self) -> int:
        return self.type.status

    @property
    def retry_after(self) -> int | None:
        return self.extra.get("retry_after")

    def body(self) -> dict[str, Any]:
        return {"error": self.message, "code": self.code, "hint": self.hint, **self.extra}


class CannotStart(Exception):
    """A command cannot run, or a service cannot start. The message says what the operator must do first."""


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One code of the closed list. Calling it creates a problem: `raise NOT_FOUND("No event has the id 7.")`.

    field    with the status 422: the field that `errors` names, unless a problem has `errors` of its own
    """

    code: str
    status: int
    meaning: str
    hint: str
    field: str | None = None

    def __call__(
        self,
        text: str | None = None,
        *,
        hint: str | None = None,
        allow: str = "",
        link: str = "",
        counted: CountedOwner = "",
        **extra: Any,
    ) -> Problem:
        text = text if isinstance(text, Message) else message(text or self.meaning)
        errors = {"errors": {self.field: [text]}} if self.field else {}
        extra = {**errors, **extra}
        return Problem(self, text, hint or self.hint, extra, allow=allow, link=link, counted=counted)


BAD_REQUEST = ProblemType(
    "bad_request",
    400,
    "The request cannot be understood.",
    "Compare the request with the documentation.",
)
INVALID_JSON = ProblemType(
    "invalid_json", 400, "The body is not valid JSON.", "Send one JSON object, encoded as UTF-8."
)
MISSING_API_KEY = ProblemType(
    "missing_api_key",
    401,
    "This operation needs an API key.",
    "Send the key in the X-API-Key header or as Authorization: Bearer <API_KEY>.",
)
INVALID_API_KEY = ProblemType(
    "invalid_api_key",
    401,
    "The API key is unknown or has been revoked.",
    "Check the key, or use another one.",
)
FORBIDDEN = ProblemType(
    "forbidden",
    403,
    "The API key is valid but may not do this.",
    "Use a key of the account that owns the resource, or an admin key.",
)
INSUFFICIENT_SCOPE = ProblemType(
    "insufficient_scope",
    403,
    "The API key or access token lacks a scope this needs.",
    "Use one that has the scopes named in `scope`.",
)
NOT_FOUND = ProblemType("not_found", 404, "Nothing is found here.", "Check the path and the ids in it.")
METHOD_NOT_ALLOWED = ProblemType(
    "method_not_allowed",
    405,
    "The path exists but does not answer this method.",
    "Use a method named in the Allow header.",
)
NOT_ACCEPTABLE = ProblemType(
    "not_acceptable",
    406,
    "None of the types in the Accept header can be sent.",
    "Send the header Accept: application/json, text/event-stream.",
)
PAYLOAD_TOO_LARGE = ProblemType(
    "payload_too_large", 413, "The request body is too large.", "Send a body of at most 1 MiB (1,048,576 bytes)."
)
REQUEST_TIMEOUT = ProblemType(
    "request_timeout", 408, "The request took too long to arrive.", "Send the headers within 10 seconds."
)
HEADERS_TOO_LARGE = ProblemType(
    "headers_too_large",
    431,
    "Address and headers of the request are too large.",
    "Send at most 64 KiB (65,536 bytes) before the body.",
)
UNSUPPORTED_MEDIA_TYPE = ProblemType(
    "unsupported_media_type",
    415,
    "The body is not declared as JSON.",
    "Send the header Content-Type: application/json.",
)
VALIDATION_FAILED = ProblemType(
    "validation_failed",
    422,
    "Some fields are missing or not acceptable.",
    "Correct the fields named in `errors`.",
)
IDEMPOTENCY_KEY_REUSED = ProblemType(
    "idempotency_key_reused",
    422,
    "The Idempotency-Key was used before, for another request.",
    "Use a new key for a new request, or repeat the request unchanged.",
    "Idempotency-Key",
)
RATE_LIMITED = ProblemType(
    "rate_limited",
    429,
    "Too many requests.",
    "Wait for the number of seconds in Retry-After, then continue more slowly.",
)
DAILY_LIMIT_REACHED = ProblemType(
    "daily_limit_reached",
    429,
    "The daily limit that a person has set for this API key or app is reached.",
    "Wait until `starts_again_at`, or ask the person. Only a person can change the limit, in the console.",
)
APPROVAL_REQUIRED = ProblemType(
    "approval_required",
    409,
    "A person must approve this first. Nothing was changed.",
    "Give the person `approve_url`. Repeat the same call, with the same idempotency key, to learn the result.",
)
APPROVAL_DECLINED = ProblemType(
    "approval_declined",
    403,
    "A person has declined this. Nothing was changed.",
    "Do not repeat the call. Ask the person what to do instead.",
)
INTERNAL_ERROR = ProblemType(
    "internal_error",
    500,
    "The service failed to handle the request.",
    "Try again, or report the request_id to the operator.",
)
SERVICE_UNAVAILABLE = ProblemType(
    "service_unavailable",
    503,
    "The service cannot answer right now.",
    "Send the same request again after the number of seconds in Retry-After.",
)

ErrorBody = Callable[[Problem], dict[str, Any]]
"""A service's error envelope; most use `Problem.body`."""

COMMON_PROBLEMS = tuple(
    value for value in [*globals().values()] if isinstance(value, ProblemType) and value is not IDEMPOTENCY_KEY_REUSED
)
"""The problem types that every service has."""


def _plain(errors: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """A copy of the errors, with plain texts as messages."""
    return {field: [*map(str, messages)] for field, messages in errors.items()}


def invalid(errors: Mapping[str, Sequence[str]]) -> Problem:
    """The 422 that names every failing field: `errors` maps a field to its messages."""
    fields = ", ".join(sorted(errors))
    return VALIDATION_FAILED(f"Not acceptable: {fields}.", errors=errors)


def refuses(*types: ProblemType) -> Callable[[F], F]:
    """Declare the problems that a function raises or returns. The documents of its operation list them."""

    def declare(function: F) -> F:
        function.__refuses__ = types  # type: ignore[attr-defined]
        return function

    return declare
