"""What a page of the console names in its address, and the answer for what belongs to others."""

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


async def on_own(run: Run, caller: Caller, command: Command) -> Any:
    """Run an operation. What belongs to somebody else is answered like what does not exist."""
    try:
        return await run(caller, command)
    except Problem as problem:
        if problem.type is FORBIDDEN:
            raise NOT_FOUND() from problem
        raise
