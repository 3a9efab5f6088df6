"""The checks of a part. Several run at the same time, each with a time limit.

A check is a function of an `Inspection`, or a query: then conditions judge each row, and sentences with its columns say
what is wrong. Findings with the status "ok" are dropped if the check also finds a fault.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from string import Formatter
from typing import Any, LiteralString, NamedTuple, TypeVar, cast

from psycopg import errors

from holdfast.kit.environment.logs import first_line
from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres.database import OpenConnection, Reader
from holdfast.kit.process.checks.inspection import (
    CHECK_TIMEOUT_SECONDS,
    CheckStatus,
    DatabaseUnreachable,
    Finding,
    Inspection,
    failure_reason,
)
from holdfast_verify.terminal import names_text


class Fault(NamedTuple):
    """A condition on a row of a query, and the finding if it holds. The sentences have columns as fields."""

    condition: LiteralString
    message: str
    remedy: str
    status: CheckStatus = "wrong"


@dataclass(frozen=True)
class FaultQuery:
    """A query that is a check.

    sql       its parameters are attributes of the inspection or of the settings
    faults    the conditions that each row is judged by
    ok        the sentence if there is no fault; its fields are columns of the first row
    """

    sql: LiteralString
    faults: Sequence[Fault]
    ok: str

    def statement(self, inspection: Inspection[Any]) -> tuple[LiteralString, dict[str, Any]]:
        """The statement that finds the faults of each row, and its parameters."""
        conditions: LiteralString = ", ".join(f"({fault.condition})" for fault in self.faults)
        statement: LiteralString = f"select *, array[{conditions}] as conditions from ({self.sql}) as facts"
        names = re.findall(r"%\((\w+)\)s", statement)
        return statement, {
            name: getattr(inspection if hasattr(inspection, name) else inspection.settings, name) for name in names
        }

    async def __call__(self, inspection: Inspection[Any]) -> None:
        variables = {"service": inspection.name, "database_url": inspection.variable("database_url")}
        rows = await inspection.database.rows(dict[str, Any], *self.statement(inspection))
        for row in rows:
            for fault, is_met in zip(self.faults, row["conditions"], strict=True):
                if is_met:
                    message, remedy = (
                        SENTENCE_FORMATTER.format(text, **variables, **row) for text in (fault.message, fault.remedy)
                    )
                    inspection.add(fault.status, message, remedy)
        inspection.ok(SENTENCE_FORMATTER.format(self.ok, **(rows or [{}])[0]))


class _SentenceFormatter(Formatter):
    """Puts columns into sentences: intervals as durations, numbers with their noun: `{count:1 mail was|mails were}`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, timedelta):
            return duration(value.total_seconds())
        if isinstance(value, list):
            return names_text(cast("list[str]", value))
        one, separator, several = format_spec.partition("|")
        if separator:
            return one if value == 1 else f"{value} {several}"
        return super().format_field(value, format_spec)


SENTENCE_FORMATTER = _SentenceFormatter()


def duration(seconds: float) -> str:
    """A duration in words, in its largest unit."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length * 0.95:
            number = max(1, round(seconds / length))
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return f"{seconds:.0f} seconds"


def overdue(work: str) -> tuple[Fault, Fault]:
    """The faults of work that has been due for long, by the column `age`.

    work    names the work, at the beginning of a sentence
    """
    return (
        Fault(
            "age > interval '1 minute' and %(process_count)s = 0",
            f"{work} for {{age}}. No process of the service runs.",
            "Start one: holdfast {service} serve",
            status="warning",
        ),
        Fault(
            "age > interval '1 minute' and %(process_count)s > 0",
            f"{work} for {{age}}.",
            "Look in the log of the processes for the reason. If they do no background work, start: "
            "holdfast {service} worker",
        ),
    )


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
