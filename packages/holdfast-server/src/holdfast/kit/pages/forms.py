"""Forms of pages: reads them, refuses those that another site or a program has forged, and shows wrong ones again.

A form has a signed token with the time at which it was shown, so it needs no cookie. The time comes from the clock of
the process: it decides only whether the form is shown again. A browser reports the site that a form was sent from; a
form of another site is refused. Some forms work only once, even if they are sent twice by a second click, or by
reloading the answer.

The API says what a value must be: `must be an integer, not "abc"`. A form says what a person enters instead: `Enter a
number of places, such as 30.`
"""

import hashlib
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Raw, Struct

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, check, with_integers
from holdfast.kit.contract.messages import GroupedNumber, Message, Value, message
from holdfast.kit.contract.problems import BAD_REQUEST, FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, Problem, ProblemType
from holdfast.kit.http.body import read_body
from holdfast.kit.http.handler import Header, Request, headers_of
from holdfast.kit.operations.runner import RunOperation
from holdfast.kit.security.service_secret import HmacSigner

FOREIGN_FORM = ProblemType(
    "foreign_form", 403, "The form was sent from another site.", "Open the page itself and use its form."
)
ANOTHERS_FORM = ProblemType(
    "anothers_form", 403, "The form was shown to another visitor.", "Open the page again and send its form."
)
"""Refusals that do not depend on the fields of a form. Only pages answer with these problems."""

FORM_TYPE = "application/x-www-form-urlencoded"

FORM_TTL_SECONDS = 2 * 3600
"""Seconds that a form may be open before it is shown again."""


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, without the spaces around their values. Refuses a field that is given twice."""
    body = await read_body(request, FORM_TYPE)
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=50, encoding="utf-8", errors="strict")
    except ValueError as error:
        raise BAD_REQUEST("The form cannot be read.", hint="Open the page again and send its form.") from error
    fields = {name: value.strip() for name, value in pairs}
    if len(fields) != len(pairs):
        raise BAD_REQUEST("A field of the form is given more than once.", hint="Open the page again.")
    return fields


def require_same_site(request: Request, base_url: str) -> None:
    """Raise `foreign_form` if a browser reports that a form was sent from a page of another site.

    A program that sends neither header is accepted: it has no visitor's cookies, and still needs a token.
    """
    site = request.headers.get(b"sec-fetch-site")
    origin = request.headers.get(b"origin")
    if site is not None:
        allowed = site in {b"same-origin", b"none"}
    elif origin is not None:
        # A proxy may request the page under another host name than the browser did.
        named = {urlsplit(base_url).netloc.lower(), request.headers.get(b"host", b"").decode("latin-1").lower()}
        allowed = origin.decode("latin-1").lower().partition("://")[2] in named - {""}
    else:
        allowed = True
    if not allowed:
        raise FOREIGN_FORM()


@dataclass(frozen=True)
class FormTokens:
    """Issues and checks the tokens of forms."""

    signer: HmacSigner

    def issue(self, purpose: str, now: float | None = None) -> str:
        """A token for a form with a purpose, such as `register for 7`."""
        minute = int(time.time() if now is None else now) // 60
        return f"{minute}-{self.signer.sign(f'{purpose} {minute}')}"

    def check(self, purpose: str, token: str, now: float | None = None) -> Literal["good", "old", "forged"]:
        """Whether a token was issued for a purpose, and not too long ago."""
        minute, _, signature = token.partition("-")
        if not (minute.isascii() and minute.isdigit() and len(minute) < 12):
            return "forged"
        if not self.signer.accepts(f"{purpose} {minute}", signature):
            return "forged"
        age = (time.time() if now is None else now) - 60 * int(minute)
        return "good" if -120 < age < FORM_TTL_SECONDS else "old"


A = TypeVar("A")


class FormRefusal(NamedTuple):
    """The errors of a form that is shown again.

    errors     error messages, by field
    code       the code of the problem
    status     the HTTP status of the problem and the answer
    headers    further headers of the answer, such as Retry-After
    """

    errors: Mapping[str, Sequence[str]]
    code: str = VALIDATION_FAILED.code
    status: int = VALIDATION_FAILED.status
    headers: Sequence[Header] = ()


NOT_REFUSED = FormRefusal({}, "", 200)
"""The form is shown for the first time."""


NO_INSTRUCTIONS: Mapping[str, str] = {}

_KINDS: Mapping[str, str] = {
    "an integer": message("Enter a whole number, such as 10."),
    "a number": message("Enter a number, such as 12.5."),
    "true or false": message("Choose yes or no."),
    "a time such as 2030-01-31T18:00:00Z": message("Enter a date and a time."),
    "%(others)s or %(last)s": message("Choose one from the list."),
}
"""The instructions for a value of a kind, by the text of the kind in the messages of the API."""


def form_errors(
    errors: Mapping[str, Sequence[str]], instructions: Mapping[str, str] = NO_INSTRUCTIONS
) -> dict[str, list[str]]:
    """The errors, each as a sentence that says what to enter. Messages that say more than a type stay as they are.

    instructions    by field, what to enter, with an example: "Enter a number of seats, such as 30."
    """
    return {
        name: [_form_message(error, instructions.get(name)) for error in messages] for name, messages in errors.items()
    }


def _form_message(error: str, instruction: str | None) -> str:
    """A message of the API as a form says it."""
    if not isinstance(error, Message):
        return error
    values = error.values
    match error.text:
        case "is required" | "must not be empty":
            return instruction or message("Fill this in.")
        case "must be %(expected)s, not %(value)s" | "must be %(expected)s":
            return instruction or _kind_message(values["expected"])
        case "must be at least %(least)s, not %(value)s":
            least = _number(values["least"])
            if instruction:
                return message("%(instruction)s It must be at least %(least)s.", instruction=instruction, least=least)
            return message("Enter a number of at least %(least)s.", least=least)
        case "must be at most %(most)s, not %(value)s":
            maximum = _number(values["most"])
            if instruction:
                return message("%(instruction)s It must be at most %(most)s.", instruction=instruction, most=maximum)
            return message("Enter a number of at most %(most)s.", most=maximum)
        case "must have at least %(least)s characters, not %(length)s":
            return message("Enter at least %(least)s characters. This has %(length)s.", **_numbers(values))
        case "must have at most %(most)s characters, not %(length)s":
            return message("Enter at most %(most)s characters. This has %(length)s.", **_numbers(values))
        case _:
            return error


def _kind_message(kind: Value) -> str:
    """What to enter for a kind of value. `kind` is a noun, such as "an e-mail address such as ann@example.com"."""
    if isinstance(kind, Message) and kind.text == "%(expected)s or null":
        kind = kind.values["expected"]
    text = kind.text if isinstance(kind, Message) else str(kind)
    return _KINDS.get(text) or message("Enter %(expected)s.", expected=kind)


def _number(value: Value) -> Value:
    """A number that a page writes with separators. Other values, such as 0.5, stay as they are."""
    text = str(value)
    return GroupedNumber(text) if text.removeprefix("-").isdecimal() else value


def _numbers(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: _number(value) for name, value in values.items()}


async def try_form(
    work: Callable[[], Awaitable[A]], *also: ProblemType, instructions: Mapping[str, str] = NO_INSTRUCTIONS
) -> A | FormRefusal:
    """Run the work of a form. Returns its result, or the refusal that the form shows. Raises every other problem.

    also            problems besides `validation_failed` that the page of the form explains
    instructions    by field, what to enter, with an example
    """
    try:
        return await work()
    except Problem as problem:
        if problem.type is not VALIDATION_FAILED and problem.type not in also:
            raise
        return FormRefusal(form_errors(problem.errors, instructions), problem.code, problem.status, headers_of(problem))


S = TypeVar("S", bound=Struct)

_SHAPE = re.compile(r"[A-Za-z0-9_-]{22}")


def new_token() -> str:
    """A new value for the hidden field `once` of a form."""
    return secrets.token_urlsafe(16)


async def run_once(work: RunOperation, caller: Caller, command: Command, fields: Mapping[str, str], kind: type[S]) -> S:
    """Run the work of a form. If it ran before, return its first answer."""
    answer: Any = await work(caller, command, _key(fields))
    return msgspec.json.decode(answer, type=kind) if isinstance(answer, Raw) else answer


def _key(fields: Mapping[str, str]) -> str:
    """The idempotency key of a form. A form that is changed and sent again has another key."""
    once = fields.get("once", "")
    if not _SHAPE.fullmatch(once):
        raise BAD_REQUEST("The form is not complete.", hint="Open the page again and send its form.")
    content = repr(sorted(fields.items()))
    return f"{once}-{hashlib.sha256(content.encode()).hexdigest()}"


C = TypeVar("C", bound=Command)


def command_in_path(kind: type[C], request: Request) -> C:
    """The command in the path of a request. Raises `not_found` for fields that cannot exist."""
    try:
        return check(kind, with_integers(kind, request.fields))
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise


def hide_forbidden(run: RunOperation) -> RunOperation:
    """An operation that answers `forbidden` as `not_found`: other accounts' things look like missing ones."""

    async def run_on_own(caller: Caller, command: Any, key: str | None = None) -> Any:
        try:
            return await run(caller, command, key)
        except Problem as problem:
            if problem.type is FORBIDDEN:
                raise NOT_FOUND() from problem
            raise

    return run_on_own
