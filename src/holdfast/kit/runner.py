"""How operations run: alone in a transaction, or together with everyone else who waits."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.kit.batch import Batcher
from holdfast.kit.database import Database, Tx
from holdfast.kit.operation import Call, Caller, Operation, Operations

Run = Callable[[Caller, Any], Awaitable[Any]]


class Runner:
    """Runs the operations of one service on its database, for every door.

    Reads (GET) take one connection and no transaction; everything else answers after its commit.
    """

    def __init__(self, operations: Operations, database: Database[Any]) -> None:
        self._database = database
        self._runs = {each.name: self._together(each) if each.many else self._alone(each) for each in operations}

    def __getitem__(self, operation: Operation) -> Run:
        """The function `(caller, command) -> answer` of an operation; it raises a `Problem`."""
        return self._runs[operation.name]

    def _together(self, operation: Operation) -> Run:
        async def run(calls: Sequence[Call[Any]]) -> Sequence[Any]:
            return await self._transact(operation, lambda tx: operation.run(tx, calls))

        submit = Batcher[Call[Any], Any](operation.name, run).submit
        return lambda caller, command: submit(Call(caller, command))

    def _alone(self, operation: Operation) -> Run:
        return lambda caller, command: self._transact(operation, lambda tx: operation.run(tx, caller, command))

    def _transact(self, operation: Operation, work: Callable[[Tx[Any]], Awaitable[Any]]) -> Awaitable[Any]:
        return self._database.read(work) if operation.method == "GET" else self._database.transact(work)
