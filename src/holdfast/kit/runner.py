"""How operations run: alone in a transaction, or together with everyone else who waits."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.kit.batch import Batcher
from holdfast.kit.database import Database, Tx
from holdfast.kit.operation import Call, Caller, Operation, Operations

Run = Callable[[Caller, Any], Awaitable[Any]]


class Runner:
    """Runs the operations of one service on its database, for every door.

    Reads take one connection and no transaction; everything else answers after its commit. A transaction belongs to
    one tenant; where row-level security guards the tenants, so does a batch.
    """

    def __init__(self, operations: Operations, database: Database[Any]) -> None:
        self._database = database
        self._runs = {each.name: self._together(each) if each.many else self._alone(each) for each in operations}

    def __getitem__(self, operation: Operation) -> Run:
        """The function `(caller, command) -> answer` of an operation; it raises a `Problem`."""
        return self._runs[operation.name]

    def _together(self, operation: Operation) -> Run:
        lanes: dict[int | None, Batcher[Call[Any], Any]] = {}

        def lane(tenant: int | None) -> Batcher[Call[Any], Any]:
            async def run(calls: Sequence[Call[Any]]) -> Sequence[Any]:
                return await self._transact(operation, lambda tx: operation.run(tx, calls), tenant)

            return Batcher(operation.name, run)

        async def submit(caller: Caller, command: Any) -> Any:
            tenant = caller.tenant_id if self._database.tenancy else None
            mine = lanes.get(tenant) or lanes.setdefault(tenant, lane(tenant))
            try:
                return await mine.submit(Call(caller, command))
            finally:
                if mine.idle and lanes.get(tenant) is mine:
                    del lanes[tenant]

        return submit

    def _alone(self, operation: Operation) -> Run:
        return lambda caller, command: self._transact(
            operation, lambda tx: operation.run(tx, caller, command), caller.tenant_id
        )

    def _transact(
        self, operation: Operation, work: Callable[[Tx[Any]], Awaitable[Any]], tenant: int | None
    ) -> Awaitable[Any]:
        return self._database.read(work, tenant) if operation.reads else self._database.transact(work, tenant)
