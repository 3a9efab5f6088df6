"""Runs everything that a service does, before and after its database is filled; of operations, nothing stays."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import httpx2

from holdfast.accounts.agents.requests import AgentRequests
from holdfast.kit.background import row_work
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.operation import Batch, Batched, Call, Operation, Stepwise
from holdfast.kit.operations.steps import Steps
from holdfast.kit.postgres.database import Database
from holdfast.kit.process.part import Part
from holdfast.kit.process.service_process import ServiceProcess
from tests.plans.filling import filling_database, small_tables
from tests.plans.judging import findings_of
from tests.plans.recording import Recorder

SMALL = {
    "functions": "the schema",
    "mail_rate": "one row",
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


class PlanWork(ABC):
    """A service on connections that have statements explained, and a person in whose browser its pages are opened."""

    def __init__(
        self, process: ServiceProcess[Any, Any], parts: Sequence[Part[Any]], settings: Any, cookies: httpx2.Cookies
    ) -> None:
        self.recorder = Recorder()
        self.database: Database[Any] = self.recorder.attend(process.database(settings))
        self.parts = parts
        self.app = process.build(self.database).app(background=False)
        self.browser = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app),
            base_url=settings.base_url,
            cookies=cookies,
            headers={"Accept": "text/html"},
        )

    @abstractmethod
    async def run_all(self) -> None:
        """Run each operation and each job, turn each loop, and open each page."""

    @abstractmethod
    async def page(self, path: str) -> None:
        """Open a page, whose path may have parameters."""

    @asynccontextmanager
    async def filled(self, fill: Callable[[Any], None]) -> AsyncGenerator[Self]:
        """Run everything once while there is little in the database, then fill it."""
        async with self.app.lifespan():
            await self.run_all()
            with filling_database(self.database.url) as connection:
                fill(connection)
            yield self

    async def wrong(self, exceptions: Container[str]) -> str:
        """Run everything, and return what reads more than it touches."""
        self.recorder.begin()
        await self.run_all()
        return findings_of(self.recorder.plans, exceptions)

    async def pages(self) -> None:
        """Open all pages, and what else is opened by GET, without streams: these do not end."""
        for route in self.app.routes:
            is_endless = "/stream" in route.path or ":path}" in route.path
            if "GET" in route.endpoint.methods and not route.refuses_parameters and not is_endless:
                await self.page(route.path)

    async def ask_first(
        self, gate: AgentRequests, operation: Operation, caller: Caller, arguments: dict[str, Any]
    ) -> None:
        """Store what an agent asks a person for, and the mail about it, which is due at once."""
        self.recorder.doing = "a request of an agent"
        command = check(operation.command, arguments)
        tenant = caller.tenant_id if self.database.tenancy else None
        every = self.database.across_tenants() if self.database.tenancy else self.database
        await every.transact(
            lambda tx: tx.run("update agent_limits set mail_at = null where key_id = %(id)s", {"id": caller.id})
        )
        await self.database.transact(lambda tx: gate.request_approval(tx, operation, caller, command, None), tenant)
        await every.transact(
            lambda tx: tx.run(
                "update mails set due_at = now()"
                " where thread >= 'agent requests ' and thread < 'agent requests~' and ended_at is null"
            )
        )

    async def get(self, path: str, statuses: Container[int] = (200,), **options: Any) -> None:
        self.recorder.doing = f"GET {path}"
        answer = await self.browser.get(path, **options)
        assert answer.status_code in statuses, (path, answer.status_code, answer.text[:500])
        assert not answer.headers.get("location", "").startswith("/sign-in"), path

    async def timed(self) -> None:
        """Run what runs on a timetable."""
        for timed_task in (task for part in self.parts for task in part.timed_tasks):
            self.recorder.doing = f"the job {timed_task.name}"
            await timed_task.run(Steps(self.database))
        self.recorder.doing = ""

    async def background(self) -> None:
        """Run each loop, work on rows and sender until it waits for something to happen."""
        for part in self.parts:
            for loop in part.loops:
                await self.turn(loop.name, loop.run(self.database))
            for work in part.row_work(self.database):
                await self.turn(work.name, row_work.run(self.database, work))
            for name, sender in part.senders.items():
                await self.turn(name, sender(self.database))

    async def turn(self, name: str, work: Awaitable[None]) -> None:
        """Run a loop until it waits for something to happen."""
        self.recorder.doing = f"the loop {name}"
        task = asyncio.ensure_future(work)
        await self.recorder.at_rest()
        assert not task.done(), task.exception()
        await end_tasks([task])
        self.recorder.doing = ""


def analyze(url: str) -> None:
    """Let the statistics catch up."""
    with filling_database(url) as connection:
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
            await database.transact(work, tenant, is_dry_run=True)
    except Problem as problem:
        return problem
    return None
