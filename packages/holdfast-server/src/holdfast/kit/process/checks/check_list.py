"""The checks of a part. Several run at the same time, each with a time limit.

A check is a function of an `Inspection`, or a query. Its findings with the status "ok" are dropped if it also finds a
fault.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString, TypeVar

from psycopg import errors

from holdfast.kit.environment.logs import first_line
from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres.database import OpenConnection, Reader
from holdfast.kit.process.checks.inspection import (
    CHECK_TIMEOUT_SECONDS,
    DatabaseUnreachable,
    Finding,
    Inspection,
    failure_reason,
)
from holdfast.kit.process.checks.queries import Fault, FaultQuery

S = TypeVar("S", bound=Settings)

MAX_CONCURRENT_CONNECTIONS = 2
"""Connections to the database at the same time: few may be left."""

Run = Callable[[Inspection[Any]], Awaitable[None]]


@dataclass(frozen=True)
class Check:
    """Looks at a point of a service, within `seconds`."""

    point: str
    run: Run
    seconds: float


class CheckList(list[Check]):
    """The checks of a part, in the order in which they are shown."""

    def point(self, name: str, seconds: float = CHECK_TIMEOUT_SECONDS) -> Callable[[Run], Check]:
        """Make a function a check."""

        def add(run: Run) -> Check:
            self.append(Check(name, run, seconds))
            return self[-1]

        return add

    def query(
        self, point: str, sql: LiteralString, *faults: Fault, ok: str, seconds: float = CHECK_TIMEOUT_SECONDS
    ) -> None:
        """Make a query a check."""
        self.append(Check(point, FaultQuery(sql, faults, ok), seconds))


async def run_checks(inspection: Inspection[S], checks: Sequence[Check]) -> list[Finding]:
    """Run checks at the same time. Returns their findings in the order of the checks."""
    connections = asyncio.Semaphore(MAX_CONCURRENT_CONNECTIONS)
    results = await asyncio.gather(*(_run(inspection, check, connections) for check in checks))
    return [
        replace(finding, point=check.point, service=inspection.name)
        for check, findings in zip(checks, results, strict=True)
        for finding in [finding for finding in findings if finding.status != "ok"] or findings
    ]


async def _run(shared: Inspection[S], check: Check, connections: asyncio.Semaphore) -> list[Finding]:
    limit = asyncio.timeout(check.seconds)
    async with contextlib.AsyncExitStack() as stack:

        async def connect() -> OpenConnection:
            # Other checks may take long: the time of this one begins when it may connect.
            limit.reschedule(None)
            await stack.enter_async_context(connections)
            limit.reschedule(asyncio.get_running_loop().time() + check.seconds)
            return await stack.enter_async_context(shared.connection(check.seconds))

        database = Reader(None, connect) if shared.url else shared.database
        inspection = replace(shared, database=database, findings=[])
        try:
            async with limit:
                await check.run(inspection)
        except Exception as error:
            # One check that fails must not hide the others.
            inspection.findings.clear()
            _explain(error, inspection, check)
        return inspection.findings


def _explain(error: Exception, inspection: Inspection[Any], check: Check) -> None:
    match error:
        case DatabaseUnreachable():
            inspection.skipped("the database cannot be reached")
        case TimeoutError() | errors.QueryCanceled():
            inspection.wrong(
                f"This took longer than {check.seconds:g} seconds.",
                "Look at the network, and at the load of what is asked here; then run the check again.",
            )
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.UndefinedFunction():
            inspection.skipped("the schema of the database is not that of this version; see migrations and schema")
        case errors.InsufficientPrivilege():
            inspection.wrong(
                f"The user of the database may not read this: {first_line(error)}.",
                "Let the user that made the tables be the user in the URL of the database.",
            )
        case _:
            is_file = isinstance(error, OSError)
            remedy = "Run the check as the user of the service." if is_file else "Run the check again; see its message."
            inspection.wrong(f"This could not be looked at: {failure_reason(error)}.", remedy)
