"""A service put together: its table behind its doors, its background work, its health."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.kit import jobs, keys, metrics, openapi, rest
from holdfast.kit.database import Database
from holdfast.kit.limits import Limits
from holdfast.kit.operation import Operations
from holdfast.kit.problems import EVERYWHERE, SERVICE_UNAVAILABLE, Kind
from holdfast.kit.runner import Runner

log = structlog.get_logger()

READY_SECONDS = 2
"""How long the database may take to answer before the process no longer calls itself ready."""

Loop = Callable[[Database[Any]], Awaitable[None]]


@dataclass(frozen=True)
class Service:
    """Everything that makes one service, as data.

    loops      work that runs for as long as the process does, and may run in any number of processes
    periodic   jobs on a timetable, run once for all processes
    """

    title: str
    version: str
    description: str
    base_url: str
    operations: Operations
    problems: Sequence[Kind]
    routes: Sequence[BaseRoute]
    find_keys: keys.Find
    limits: Limits
    loops: Sequence[Loop] = ()
    periodic: tuple[jobs.Periodic, ...] = ()

    def app(self, database: Database[Any], *, background: bool = True) -> rest.Table:
        """The ASGI application: the table, and plain routes behind it.

        With `background` it also runs the loops and the jobs while it serves.
        """
        ring = keys.KeyRing(database, self.find_keys)
        spec = openapi.document(
            self.title, self.version, self.description, self.base_url, self.operations, (*EVERYWHERE, *self.problems)
        )
        readable = openapi.page(spec)

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            await database.open()
            async with contextlib.AsyncExitStack() as stack:
                stack.push_async_callback(database.close)
                stack.push_async_callback(self.limits.close)
                stack.enter_context(ring.hearing())
                if background:
                    await stack.enter_async_context(self.background(database))
                yield

        async def ready(_: Request) -> Response:
            try:
                async with asyncio.timeout(READY_SECONDS):
                    await database.read(lambda tx: tx.value("select 1"))
            except Exception:
                problem = SERVICE_UNAVAILABLE("The database cannot be reached right now.", retry_after=1)
                return JSONResponse(problem.body(), 503, {"Retry-After": "1"})
            return PlainTextResponse("ready\n")

        plain = Starlette(
            routes=[
                *self.routes,
                _page("/openapi.json", lambda: JSONResponse(spec)),
                _page("/docs", lambda: HTMLResponse(readable)),
                _page("/healthz", lambda: PlainTextResponse("alive\n")),
                Route("/readyz", ready),
                _page("/metrics", lambda: Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE)),
            ],
            lifespan=lifespan,
            exception_handlers={HTTPException: rest.refused},
        )
        plain.router.redirect_slashes = False
        return rest.Table(self.operations, Runner(self.operations, database), ring, self.limits, otherwise=plain)

    @contextlib.asynccontextmanager
    async def background(self, database: Database[Any]) -> AsyncGenerator[None]:
        """Run the loops and the jobs for as long as the block lasts."""
        async with asyncio.TaskGroup() as group:
            work = [group.create_task(_forever(loop, database), name=_name(loop)) for loop in self.loops]
            if self.periodic:
                work.append(group.create_task(_forever(self._jobs, database), name="jobs"))
            try:
                yield
            finally:
                for task in work:
                    task.cancel()

    async def _jobs(self, database: Database[Any]) -> None:
        await jobs.work(database, self.periodic)


async def _forever(loop: Loop, database: Database[Any]) -> None:
    """Keep a loop running: one that fails is started again a second later."""
    while True:
        try:
            await loop(database)
        except Exception as error:
            log.error("background work failed; starting it again", loop=_name(loop), exc_info=error)
        await asyncio.sleep(1)


def _name(loop: Loop) -> str:
    return f"{loop.__module__.rpartition('.')[2]}.{loop.__name__}"


def _page(path: str, respond: Callable[[], Response]) -> Route:
    async def answer(_: Request) -> Response:
        return respond()

    return Route(path, answer)
