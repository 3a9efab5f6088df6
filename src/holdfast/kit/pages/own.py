"""What a page for somebody who is signed in names in its address, and the answer for what belongs to others."""

from typing import Any, TypeVar

from holdfast.kit.caller import Caller
from holdfast.kit.command import Command, check, numbered
from holdfast.kit.handler import Request
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.runner import Run

C = TypeVar("C", bound=Command)


def named(kind: type[C], request: Request) -> C:
    """The command in the path of a request. Raises `not_found` if it names nothing that could exist."""
    try:
        return check(kind, numbered(kind, request.scope["path_params"]))
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise


def on_own(run: Run) -> Run:
    """The same operation. What belongs to somebody else, it answers like what does not exist."""

    async def run_on_own(caller: Caller, command: Any, key: str | None = None) -> Any:
        try:
            return await run(caller, command, key)
        except Problem as problem:
            if problem.type is FORBIDDEN:
                raise NOT_FOUND() from problem
            raise

    return run_on_own
