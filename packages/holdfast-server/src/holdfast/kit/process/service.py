"""A service: its table of operations over REST and MCP, its background work, its health checks."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from holdfast.kit import mcp
from holdfast.kit.background.loops import Leaders
from holdfast.kit.background.tasks import Job, PeriodicJob, duplicate_names, run_jobs
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, ErrorBody, Problem
from holdfast.kit.http import rest
from holdfast.kit.http.answers import PlainEndpoint, always
from holdfast.kit.http.application import Application
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.http.handler import NO_STORE, Reply, Request, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.http.query_parameters import NO_PARAMETERS
from holdfast.kit.http.sockets import drain_on_sigterm, is_draining
from holdfast.kit.pages.site import PROGRAM_PATHS, Site
from holdfast.kit.postgres import machines
from holdfast.kit.postgres.database import Database
from holdfast.kit.process import metrics_page
from holdfast.kit.process.database_health import watch_database
from holdfast.kit.process.part import Doors, Loop, Part
from holdfast.kit.running.operation import Operations
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.runner import Runner
from holdfast.kit.security.api_keys import Authenticate

log = structlog.get_logger()

TEXT = b"text/plain; charset=utf-8"

RESTART_SECONDS = 0.5
"""Seconds until a failed loop is restarted."""

REPEATED_FAILURE_SECONDS = 60
"""Seconds within which the same failure of a loop counts as a repetition, and is not logged again."""


@dataclass(frozen=True)
class Service:
    """All parts of one service, as data.

    runner         runs its operations
    operations     its table of operations
    parts          what runs in the background: loops, jobs, keys
    doors          what answers requests besides the operations: the doors of its parts
    authenticate   turns the credential of a request into its caller
    agents         the endpoint for agents, `/mcp`; None: there is none
    site           its pages; None: there are none
    streams        its open event streams
    error_body     its error envelope
    keeps_slash    the prefixes of paths that are not redirected if they end with a slash
    kept_by_each   descriptions of state that each machine keeps for itself, for warnings to operators
    drain_seconds  the seconds for which it serves after SIGTERM
    metrics_token  the token for its metrics; empty: only programs on the same machine may read them
    """

    database: Database[Any]
    runner: Runner
    operations: Operations
    authenticate: Authenticate
    limits: Limits
    streams: Streams
    parts: Sequence[Part[Any]] = ()
    doors: Doors = field(default_factory=Doors)
    agents: mcp.EndpointConfig | None = None
    site: Site | None = None
    error_body: ErrorBody = Problem.body
    keeps_slash: tuple[str, ...] = ()
    kept_by_each: Sequence[str] = ()
    drain_seconds: float = 0
    metrics_token: str = ""

    def __post_init__(self) -> None:
        if names := duplicate_names(self.tasks, self.timed):
            raise ValueError(f"Several jobs have the name {', '.join(names)}; each needs a name of its own.")

    @property
    def tasks(self) -> Sequence[Job[Any]]:
        """The jobs that run the tasks which transactions enqueue."""
        return [job for part in self.parts for job in part.tasks]

    @property
    def timed(self) -> Sequence[PeriodicJob]:
        """The jobs on a timetable."""
        return [job for part in self.parts for job in part.timed]

    def app(self, *, background: bool = True) -> Application:
        """The ASGI application. With `background` it also runs the loops and the jobs while it serves."""

        @contextlib.asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            with drain_on_sigterm(self.drain_seconds, self.streams.close):
                async with self.opened(background=background):
                    yield

        refuse = envelope(self.error_body)
        site_parameters = self.site.parameters if self.site else NO_PARAMETERS
        return Application(
            self.all_routes(),
            opened,
            self.site.unrouted(refuse) if self.site else refuse,
            parameters=frozenset({*rest.query_parameters(self.operations), *site_parameters, "lang"}),
            keeps_slash=self.keeps_slash,
            pages=[route.path for route in self.doors.routes if "GET" in route.endpoint.methods] if self.site else (),
            program_prefixes=PROGRAM_PATHS,
        )

    def all_routes(self) -> Sequence[Route]:
        """Its routes, those of its operations, and those that every service has."""
        refuse = envelope(self.error_body)
        operations = rest.routes(self.operations, self.runner, self.authenticate, self.limits, refuse)
        return [
            *operations,
            *self.doors.routes,
            *self._for_agents(),
            Route("/healthz", always(b"alive\n", TEXT, NO_STORE)),
            Route("/readyz", PlainEndpoint(self._ready)),
            metrics_page.route(self.metrics_token),
        ]

    def _ready(self, request: Request) -> Reply:
        # The database is not asked: while it is away, every process would be taken out of service at once. So
        # clients would get the words of the proxy, and no process would count the refused requests.
        if is_draining():
            raise SERVICE_UNAVAILABLE("This process is stopping. Ask another one.", retry_after=1)
        return Reply(200, b"ready\n", [NO_STORE], TEXT)

    def _for_agents(self) -> Sequence[Route]:
        if self.agents is None:
            return ()
        endpoint = mcp.McpEndpoint(
            self.agents,
            self.operations,
            self.runner,
            self.agents.authenticate or self.authenticate,
            self.limits,
            self.streams,
            self.error_body,
        )
        return (Route("/mcp", endpoint),)

    @contextlib.asynccontextmanager
    async def opened(self, *, background: bool) -> AsyncGenerator[None]:
        """Open the database, and listen for its notifications, while the block lasts.

        With `background`, it also runs the loops and the jobs.
        """
        await self.database.open()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.database.close)
            stack.push_async_callback(self.limits.close)
            for close in self.doors.closing:
                stack.push_async_callback(close)
            for cache in self.doors.caches:
                stack.enter_context(cache())
            health = asyncio.create_task(_keep_running(watch_database, self.database), name="database health")
            stack.push_async_callback(end_tasks, [health])
            if self.kept_by_each:
                warning = asyncio.create_task(_keep_running(self._warn, self.database), name="machines")
                stack.push_async_callback(end_tasks, [warning])
            if background:
                await stack.enter_async_context(self.background())
            yield

    @contextlib.asynccontextmanager
    async def background(self) -> AsyncGenerator[None]:
        """Run the loops and the jobs while the block lasts."""
        led = [loop for part in self.parts for loop in part.led]
        leaders = Leaders(self.database, [_name(loop) for loop in led])
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_keep_running(loop, self.database), name=_name(loop))
                for part in self.parts
                for loop in part.loops
            ]
            if led:
                tasks.append(group.create_task(_keep_running(leaders.run, self.database), name="leaders"))
            for loop in led:
                run = partial(_keep_running, loop, self.database)
                tasks.append(group.create_task(leaders.lead(_name(loop), run), name=f"leader of {_name(loop)}"))
            if self.tasks or self.timed:
                tasks.append(group.create_task(_keep_running(self._jobs, self.database), name="jobs"))
            tasks.append(group.create_task(self._make_keys(), name="signing keys"))
            try:
                yield
            finally:
                await end_tasks(tasks)

    async def _jobs(self, database: Database[Any]) -> None:
        await run_jobs(database, self.tasks, self.timed)

    async def _make_keys(self) -> None:
        """Create the first keys, so that no request waits for them. If this fails, they are created when needed."""
        with contextlib.suppress(Problem):
            for part in self.parts:
                for keys in part.keys:
                    await self.database.transact(keys.read)

    async def _warn(self, database: Database[Any]) -> None:
        await machines.warn_of_several_machines(database, self.kept_by_each)


async def _keep_running(loop: Loop, database: Database[Any]) -> None:
    """Run a loop, and restart it after a failure. A repeated failure is logged once."""
    failure = ""
    while True:
        started = time.monotonic()
        try:
            await loop(database)
        except Exception as error:
            if (task := asyncio.current_task()) and task.cancelling():
                return  # the loop was cancelled, and failed while it ended
            lasts = failure == repr(error) and time.monotonic() < started + REPEATED_FAILURE_SECONDS
            failure = repr(error)
            # The database logs when it is unreachable, and when it is back.
            if not lasts and not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                log.error("background work failed; starting it again", loop=_name(loop), exc_info=error)
        await asyncio.sleep(RESTART_SECONDS)


def _name(loop: Loop) -> str:
    return f"{loop.__module__.rpartition('.')[2]}.{loop.__name__}"
