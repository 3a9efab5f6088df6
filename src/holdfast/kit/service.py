"""A service: its table of operations over REST and MCP, its background work, its health checks."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from holdfast.kit import machines, mcp, metrics, rest
from holdfast.kit.database import Database
from holdfast.kit.draining import draining, is_draining
from holdfast.kit.ending import end
from holdfast.kit.handler import Handler
from holdfast.kit.jobs import Job, Periodic, named_twice, work
from holdfast.kit.keys import Authenticate
from holdfast.kit.leaders import Leaders
from holdfast.kit.limits import Limits
from holdfast.kit.operation import Operations
from holdfast.kit.pages.site import Site
from holdfast.kit.problems import SERVICE_UNAVAILABLE, ErrorBody, Problem
from holdfast.kit.runner import Runner
from holdfast.kit.streams import Streams

log = structlog.get_logger()

READY_SECONDS = 2
"""Seconds the database may take to answer `/readyz`; after that the process reports that it is not ready."""

PAUSE = 0.5
"""Seconds until a loop that failed is started again."""

LASTING = 60
"""A loop that fails again within so many seconds, for the same reason, has not worked in between."""

Loop = Callable[[Database[Any]], Awaitable[None]]


@dataclass(frozen=True)
class Service:
    """Everything that makes one service, as data.

    runner         runs its operations
    operations     its table
    routes         routes that are neither in the table nor `/mcp`
    authenticate   turns the credential of a request into its caller
    caches         contexts in which notifications keep the caches of this process up to date
    handlers       handlers of frequent paths, by path; they are looked up before the routes
    agents         the endpoint for agents, `/mcp`; None: there is none
    site           its pages; None: there are none
    streams        its open event streams
    error_body     its error envelope
    loops          work that runs as long as the process does; any number of processes may run it
    led            those of the loops that only their leader runs
    jobs           the jobs that do the tasks which transactions enqueue
    periodic       jobs on a timetable; one of the processes runs each
    closing        what is called when the process ends, such as to close connections to other services
    kept_by_each   what each machine keeps for itself, of which operators are warned
    drain_seconds  how long it serves on after SIGTERM
    """

    database: Database[Any]
    runner: Runner
    operations: Operations
    routes: Sequence[BaseRoute]
    authenticate: Authenticate
    limits: Limits
    caches: Sequence[Callable[[], contextlib.AbstractContextManager[None]]] = ()
    handlers: Mapping[str, ASGIApp] = field(default_factory=dict[str, ASGIApp])
    agents: mcp.Agents | None = None
    site: Site | None = None
    streams: Streams = field(default_factory=Streams)
    error_body: ErrorBody = Problem.body
    loops: Sequence[Loop] = ()
    led: Sequence[Loop] = ()
    jobs: Sequence[Job[Any]] = ()
    periodic: Sequence[Periodic] = ()
    closing: Sequence[Callable[[], Awaitable[None]]] = ()
    kept_by_each: Sequence[str] = ()
    drain_seconds: float = 0

    def __post_init__(self) -> None:
        if names := named_twice(self.jobs, self.periodic):
            raise ValueError(f"Several jobs have the name {', '.join(names)}; each needs a name of its own.")

    def app(self, *, background: bool = True) -> rest.Table:
        """The ASGI application: the table, and the other routes behind it.

        With `background` it also runs the loops and the jobs while it serves.
        """

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            with draining(self.drain_seconds, self.streams.close):
                async with self.opened(background=background):
                    yield

        def not_ready(message: str) -> Response:
            problem = SERVICE_UNAVAILABLE(message, retry_after=1)
            return JSONResponse(self.error_body(problem), 503, {"Retry-After": "1"})

        async def ready(_: Request) -> Response:
            if is_draining():
                return not_ready("This process is stopping. Ask another one.")
            try:
                async with asyncio.timeout(READY_SECONDS):
                    await self.database.read(lambda reader: reader.value("select 1"))
            except Exception:
                return not_ready("The database cannot be reached right now.")
            return PlainTextResponse("ready\n")

        unrouted = rest.unrouted(self.error_body)
        plain = Starlette(
            routes=[
                *self.routes,
                _page("/healthz", lambda: PlainTextResponse("alive\n")),
                Route("/readyz", ready),
                _page("/metrics", lambda: Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE)),
            ],
            lifespan=lifespan,
            exception_handlers={HTTPException: self.site.unrouted(unrouted) if self.site else unrouted},
        )
        plain.router.redirect_slashes = False
        return rest.Table(
            self.operations,
            self.runner,
            self.authenticate,
            self.limits,
            handlers={**_direct(self.routes), **self.handlers, **self._for_agents()},
            otherwise=plain,
            error_body=self.error_body,
        )

    def _for_agents(self) -> Mapping[str, ASGIApp]:
        if self.agents is None:
            return {}
        endpoint = mcp.Endpoint(
            self.agents,
            self.operations,
            self.runner,
            self.agents.authenticate or self.authenticate,
            self.limits,
            self.streams,
            self.error_body,
        )
        return {"/mcp": endpoint}

    @contextlib.asynccontextmanager
    async def opened(self, *, background: bool) -> AsyncGenerator[None]:
        """Open the database, and keep up with what changes in it, for as long as the block lasts.

        With `background` the loops and the jobs run meanwhile.
        """
        await self.database.open()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.database.close)
            stack.push_async_callback(self.limits.close)
            for close in self.closing:
                stack.push_async_callback(close)
            for cache in self.caches:
                stack.enter_context(cache())
            if self.kept_by_each:
                warning = asyncio.create_task(_forever(self._warn, self.database), name="machines")
                stack.push_async_callback(end, [warning])
            if background:
                await stack.enter_async_context(self.background())
            yield

    @contextlib.asynccontextmanager
    async def background(self) -> AsyncGenerator[None]:
        """Run the loops and the jobs for as long as the block lasts."""
        leaders = Leaders(self.database, [_name(each) for each in self.led])
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_forever(each, self.database), name=_name(each))
                for each in self.loops
                if each not in self.led
            ]
            if self.led:
                tasks.append(group.create_task(_forever(leaders.run, self.database), name="leaders"))
            for each in self.led:
                run = partial(_forever, each, self.database)
                tasks.append(group.create_task(leaders.lead(_name(each), run), name=f"leader of {_name(each)}"))
            if self.jobs or self.periodic:
                tasks.append(group.create_task(_forever(self._jobs, self.database), name="jobs"))
            try:
                yield
            finally:
                await end(tasks)

    async def _jobs(self, database: Database[Any]) -> None:
        await work(database, self.jobs, self.periodic)

    async def _warn(self, database: Database[Any]) -> None:
        await machines.warn(database, self.kept_by_each)


async def _forever(loop: Loop, database: Database[Any]) -> None:
    """Keep a loop running: if it fails, start it again soon. A failure that lasts is logged once."""
    failure = ""
    while True:
        started = time.monotonic()
        try:
            await loop(database)
        except Exception as error:
            if (task := asyncio.current_task()) and task.cancelling():
                return  # the loop was told to end, and failed at that
            lasts = failure == repr(error) and time.monotonic() < started + LASTING
            failure = repr(error)
            # The database logs when it is away, and when it is back.
            if not lasts and not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                log.error("background work failed; starting it again", loop=_name(loop), exc_info=error)
        await asyncio.sleep(PAUSE)


def _name(loop: Loop) -> str:
    return f"{loop.__module__.rpartition('.')[2]}.{loop.__name__}"


def _direct(routes: Sequence[BaseRoute]) -> dict[str, ASGIApp]:
    """Our own handlers among the routes, by their paths. They are found by a look-up, without the router."""
    ours = [each for each in routes if isinstance(each, Route) and isinstance(each.endpoint, Handler)]
    direct = {each.path: each.endpoint for each in ours if ":" not in each.path}
    assert len(direct) == sum(":" not in each.path for each in ours), "two routes of ours have the same path"
    return direct


def _page(path: str, respond: Callable[[], Response]) -> Route:
    async def answer(_: Request) -> Response:
        return respond()

    return Route(path, answer)
