"""Why a form is shown again instead of being done."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from holdfast.kit.handler import Header, headers_of
from holdfast.kit.problems import VALIDATION_FAILED, Problem, ProblemType

A = TypeVar("A")


class Refusal(NamedTuple):
    """What a form says that is shown again.

    errors     what is wrong, by field
    code       the code of the problem
    status     the status of the answer: that of the problem
    headers    what the answer says besides, such as Retry-After
    """

    errors: Mapping[str, Sequence[str]]
    code: str = VALIDATION_FAILED.code
    status: int = VALIDATION_FAILED.status
    headers: Sequence[Header] = ()


NOT_REFUSED = Refusal({}, "", 200)
"""The form is shown for the first time."""


async def tried(work: Callable[[], Awaitable[A]], *also: ProblemType) -> A | Refusal:
    """Do what a form asks for, or return why it cannot be done as it was typed. Raises every other problem.

    also    problems besides `validation_failed` that the page of the form explains
    """
    try:
        return await work()
    except Problem as problem:
        if problem.type is not VALIDATION_FAILED and problem.type not in also:
            raise
        return Refusal(problem.errors, problem.code, problem.status, headers_of(problem))
