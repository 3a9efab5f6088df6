"""Why a form is shown again instead of being accepted."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

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


async def try_form(work: Callable[[], Awaitable[A]], *also: ProblemType) -> A | FormRefusal:
    """Run the work of a form. Returns its result, or the refusal that the form shows. Raises every other problem.

    also    problems besides `validation_failed` that the page of the form explains
    """
    try:
        return await work()
    except Problem as problem:
        if problem.type is not VALIDATION_FAILED and problem.type not in also:
            raise
        return FormRefusal(problem.errors, problem.code, problem.status, headers_of(problem))
