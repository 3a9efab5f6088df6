"""Why a form is shown again instead of being accepted, in the words of a form.

The API says what a value must be: `must be an integer, not "abc"`. A form says what a person enters instead: `Enter a
number of places, such as 30.`
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from holdfast.kit.contract.messages import GroupedNumber, Message, Value, message
from holdfast.kit.contract.problems import VALIDATION_FAILED, Problem, ProblemType
from holdfast.kit.http.handler import Header, headers_of

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
    "a time such as 2030-01-31T18:00:00Z": message("Enter a date and a time, such as 2030-01-31T18:00."),
    "%(others)s or %(last)s": message("Choose one of the list."),
}
"""The instructions for a value of a kind, by the text of the kind in the messages of the API."""


def form_errors(
    errors: Mapping[str, Sequence[str]], instructions: Mapping[str, str] = NO_INSTRUCTIONS
) -> dict[str, list[str]]:
    """The same errors, each as a sentence that says what to enter. Messages that say more than a type stay as they are.

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
        case "must be %(wanted)s, not %(given)s" | "must be %(wanted)s":
            return instruction or _kind_message(values["wanted"])
        case "must be at least %(least)s, not %(given)s":
            least = _number(values["least"])
            if instruction:
                return message("%(instruction)s It must be at least %(least)s.", instruction=instruction, least=least)
            return message("Enter a number of at least %(least)s.", least=least)
        case "must be at most %(most)s, not %(given)s":
            most = _number(values["most"])
            if instruction:
                return message("%(instruction)s It must be at most %(most)s.", instruction=instruction, most=most)
            return message("Enter a number of at most %(most)s.", most=most)
        case "must have at least %(least)s characters, not %(length)s":
            return message("Enter at least %(least)s characters. This has %(length)s.", **_numbers(values))
        case "must have at most %(most)s characters, not %(length)s":
            return message("Enter at most %(most)s characters. This has %(length)s.", **_numbers(values))
        case _:
            return error


def _kind_message(kind: Value) -> str:
    """What to enter for a kind of value. `kind` is a noun, such as "an e-mail address such as ann@example.com"."""
    if isinstance(kind, Message) and kind.text == "%(wanted)s or null":
        kind = kind.values["wanted"]
    text = kind.text if isinstance(kind, Message) else str(kind)
    return _KINDS.get(text) or message("Enter %(wanted)s.", wanted=kind)


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
