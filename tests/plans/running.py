"""Runs everything that a service does, before and after its database is filled; of operations, nothing stays."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Container, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import psycopg

from holdfast.kit.background import row_work
from holdfast.kit.background.loops import Loop
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.application import Application
from holdfast.kit.postgres.database import Database
from holdfast.kit.running.operation import Batch, Batched, Call, Operation, Stepwise
from holdfast.kit.running.steps import Steps
from tests.plans.filling import filling, small_tables
from tests.plans.judging import findings_of
from tests.plans.recording import Recorder

SMALL = {
    "functions": "the schema",
    "mail_sender": "always empty: a lock",
    "mail_shares": "64 shares",
    "migrations": "the same",
    "procrastinate_events": "the job library's statements are its own",
    "procrastinate_jobs": "the same",
    "procrastinate_periodic_defers": "the same",
    "procrastinate_workers": "the same",
    "trusted_auth_keys": "a few keys",
}
"""Tables without many rows in either service, and why."""


class Working(Protocol):
    """A service on connections that have statements explained."""

    recorder: Recorder

    async def everything(self) -> None:
        """Run each operation and each job, turn each loop, and open each page."""
        ...


@asynccontextmanager
async def filled(
    app: Application, work: Working, url: str, fill: Callable[[psycopg.Connection[Any]], None]
) -> AsyncGenerator[None]:
    """Run everything once while there is little in the database, then fill it."""
    async with app.lifespan():
        await work.everything()
        with filling(url) as connection:
            fill(connection)
        yield


async def wrong(work: Working, exceptions: Container[str]) -> str:
    """Run everything, and return what reads more than it touches."""
    work.recorder.forget()
    await work.everything()
    return findings_of(work.recorder.plans, exceptions)


def analyze(url: str) -> None:
    """Let the statistics catch up."""
    with filling(url) as connection:
        connection.execute("analyze")


def not_filled(url: str, small: Mapping[str, str]) -> str:
    """What to do about tables that have less than a thousand rows, and are not said to be small."""
    names = small_tables(url, 1_000) - {*SMALL, *small}
    return (
        f"Fill {names} where the other tables are filled, or say in SMALL why there is little of it." if names else ""
    )


async def attempt(
    database: Database[Any], operation: Operation, caller: Caller, arguments: dict[str, Any]
) -> Problem | None:
    """Run an operation, and take back what it did, unless it works in steps. Returns why it is refused, if it is."""
    mode, command = operation.mode, check(operation.command, arguments)
    tenant = caller.tenant_id if database.tenancy else None

    async def work(tx: Any) -> None:
        if isinstance(mode, Batched):
            [answer] = await mode.function(tx, Batch(tenant or 0, [Call(caller, command)]))
            if isinstance(answer, Problem):
                raise answer
        else:
            await mode.function(tx, caller, command)

    try:
        if isinstance(mode, Stepwise):
            await mode.function(Steps(database, caller.tenant_id), caller, command)
        elif mode.reads:
            await database.read(work, tenant)
        else:
            await database.transact(work, tenant, keep=False)
    except Problem as problem:
        return problem
    return None


def pages(app: Application) -> list[str]:
    """The paths of all pages, and of what else is opened by GET, without streams: these do not end."""
    return [
        route.path
        for route in app.routes
        if "GET" in route.endpoint.methods
        and not route.refuses_parameters
        and "/stream" not in route.path
        and ":path}" not in route.path
    ]


async def at_rest(recorder: Recorder, seconds: float = 0.25) -> None:
    """When no statement was sent for so long: what runs in the background waits for something to happen."""
    while True:
        recorder.sent.clear()
        try:
            async with asyncio.timeout(seconds):
                await recorder.sent.wait()
        except TimeoutError:
            return


async def background(recorder: Recorder, service: Any, database: Database[Any]) -> None:
    """Run each loop, work on rows and sender of a service until it waits for something to happen.

    service    its module
    """
    for part in service.PARTS:
        for loop in part.loops:
            await turn(recorder, loop, database)
        for work in part.rows(database):
            await _turn(recorder, work.name, row_work.run(database, work))
        for name, sender in part.senders.items():
            await _turn(recorder, name, sender(database))


async def turn(recorder: Recorder, loop: Loop, database: Database[Any]) -> None:
    """Run a loop until it waits for something to happen."""
    await _turn(recorder, loop.name, loop.run(database))


async def _turn(recorder: Recorder, name: str, work: Coroutine[Any, Any, None]) -> None:
    recorder.doing = f"the loop {name}"
    task = asyncio.create_task(work)
    await at_rest(recorder)
    assert not task.done(), task.exception()
    await end_tasks([task])
    recorder.doing = ""
