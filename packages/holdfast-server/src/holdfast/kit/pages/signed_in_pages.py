"""Pages of a signed-in person: the command in the path, and the answer about things of other accounts."""

from typing import Any, TypeVar

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, check, with_integers
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Request
from holdfast.kit.running.runner import Run

C = TypeVar("C", bound=Command)


def command_in_path(kind: type[C], request: Request) -> C:
    """The command in the path of a request. Raises `not_found` for fields that cannot exist."""
    try:
        return check(kind, with_integers(kind, request.scope["path_params"]))
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise


def hide_forbidden(run: Run) -> Run:
    """The same operation, which answers `forbidden` as `not_found`: other accounts' things look like missing ones."""

    async def run_on_own(caller: Caller, command: Any, key: str | None = None) -> Any:
        try:
            return await run(caller, command, key)
        except Problem as problem:
            if problem.type is FORBIDDEN:
                raise NOT_FOUND() from problem
            raise

    return run_on_own
