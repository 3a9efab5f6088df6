"""Run modes of an operation's function: for one call, for a batch of calls, or in steps; read-only or not.

The type checker checks that the function fits its mode; its annotations are the command and the answer.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from msgspec import Struct

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import Problem, ProblemType
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast.kit.running.steps import Conclusion, Steps

A = TypeVar("A")

C = TypeVar("C", bound=Command)

R = TypeVar("R")


class Call(Struct, Generic[C], frozen=True):
    """One of the calls that share a statement."""

    caller: Caller
    command: C


class Batch(Struct, Generic[C], frozen=True):
    """The calls that share a statement, in order of arrival.

    tenant_id  the tenant of all calls, in a service with row-level security; else 0: they may have several tenants
    waits      whether the statement waits for rows that other transactions have locked. If not, each call that needs
               such a row is answered with `LockedRow`
    """

    tenant_id: int
    calls: Sequence[Call[C]]
    waits: bool = True


@dataclass(frozen=True)
class RunMode(Generic[C, A]):
    """The function of an operation, with the types of its command and its answer.

    reads    whether it changes nothing, and so needs no transaction
    """

    function: Callable[..., Awaitable[Any]]
    reads: bool = False

    @cached_property
    def _types(self) -> tuple[Any, Any]:
        """The annotations of the last parameter and of the answer."""
        hints = get_type_hints(self.function, include_extras=True)
        return hints[[*inspect.signature(self.function).parameters][-1]], hints["return"]

    @cached_property
    def command(self) -> type[C]:
        return self._types[0]

    @cached_property
    def answer(self) -> Any:
        """The type of one answer; None for an empty one."""
        return _none(self._types[1])

    @property
    def refuses(self) -> tuple[ProblemType, ...]:
        """The problems that the function declares."""
        return getattr(self.function, "__refuses__", ())


class Single(RunMode[C, A]):
    """`(tx, caller, command) -> answer`"""


Completion = Callable[[Database[Any], bool, Sequence[Any]], Awaitable[Sequence[Any]]]
"""`(database, have_keys, answers) -> answers`: completes the answers of a batch after its commit.

Among them are problems and `LockedRow`. If the calls have idempotency keys, the answers were stored incomplete, and
stored ones come as `msgspec.Raw`. Each must become the same every time, whatever the others are.
"""


@dataclass(frozen=True)
class Batched(RunMode[C, A]):
    """`(tx, batch) -> answers`, one for each call; a `Problem` among them refuses only its own call.

    A call that is answered with `LockedRow` is run again in a batch that waits.

    complete         adds to the answers, after the commit, what the statement did not return; None: nothing is missing
    collect_seconds  seconds that a call may wait for others, if calls come one by one in short succession
    """

    complete: Completion | None = None
    collect_seconds: float = 0.0

    @cached_property
    def command(self) -> type[C]:
        return get_args(self._types[0])[0]

    @cached_property
    def answer(self) -> Any:
        (answers,) = get_args(self._types[1])
        return _none(next(member for member in get_args(answers) if member not in (Problem, LockedRow)))


class Stepwise(RunMode[C, A]):
    """`(steps, caller, command) -> concluded`"""

    @cached_property
    def answer(self) -> Any:
        return _none(get_args(self._types[1])[0])


AnyMode = Single[Any, Any] | Batched[Any, Any] | Stepwise[Any, Any]


def read(function: Callable[[Reader[R], Caller, C], Awaitable[A]]) -> Single[C, A]:
    """Run without a transaction, for a function that changes nothing."""
    return Single(function, reads=True)


def single(function: Callable[[Tx[R], Caller, C], Awaitable[A]]) -> Single[C, A]:
    """Run in a separate transaction."""
    return Single(function)


def read_batched(function: Callable[[Reader[R], Batch[C]], Awaitable[Sequence[A | Problem]]]) -> Batched[C, A]:
    """Run once for all waiting calls, without a transaction, for a function that changes nothing."""
    return Batched(function, reads=True)


def batched(
    function: Callable[[Tx[R], Batch[C]], Awaitable[Sequence[A | Problem | LockedRow]]],
    complete: Completion | None = None,
    *,
    collect_seconds: float = 0.0,
) -> Batched[C, A]:
    """Run once for all waiting calls, in one transaction. After it, `complete` completes the answers."""
    return Batched(function, complete=complete, collect_seconds=collect_seconds)


def steps(function: Callable[[Steps[R], Caller, C], Awaitable[Conclusion[A]]]) -> Stepwise[C, A]:
    """Run in steps: the function opens its own transactions, and works outside the database between them."""
    return Stepwise(function)


def _none(answer: Any) -> Any:
    return None if answer is type(None) else answer
