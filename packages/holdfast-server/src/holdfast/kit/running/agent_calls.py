"""Calls of agents: what they did is stored with it, and what a person must approve first is stored until then."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import Problem
from holdfast.kit.postgres.database import Tx
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import Call

Claim = Callable[[Tx[Any]], Awaitable[None]]
"""Marks a request as done, in the transaction that does it. Raises if it does not wait for a person any more."""


class ApprovalGate(Protocol):
    """Stores the calls that a person must approve."""

    def covers(self, operation: Operation) -> bool:
        """Whether calls of this operation wait for a person."""
        ...

    async def ask(
        self, tx: Tx[Any], operation: Operation, caller: Caller, command: Command, key: str | None
    ) -> Problem | str:
        """Store a request, unless the call is already one. Returns what refuses the call.

        Returns the key of the stored answer instead, if a person has approved the call.

        key    the idempotency key of the call; None: it has none, and is the same request as the same call before
        """
        ...


class AgentLog(Protocol):
    """Stores what agents did, in the transaction that does it."""

    def covers(self, operation: Operation) -> bool:
        """Whether calls of this operation are stored."""
        ...

    async def version(self, tx: Tx[Any], operation: Operation, command: Any) -> str | None:
        """The version of what a call is about: a call that leaves it as it is has changed nothing.

        None: `store` itself leaves out calls that have changed nothing.
        """
        ...

    async def store(self, tx: Tx[Any], operation: Operation, done: Sequence[tuple[Call[Any], Any]]) -> None:
        """Store the calls of agents that were done, each with its answer."""
        ...
