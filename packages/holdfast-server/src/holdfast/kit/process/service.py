"""A service: all its parts as data, and what is made of them: the ASGI application, and the background work.

The routes are those of its operations, of its pages, of `/mcp`, and of the health checks and metrics of every service.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from holdfast.kit import mcp
from holdfast.kit.background import row_work
from holdfast.kit.background.leaders import Leaders
from holdfast.kit.background.loops import Loop, keep_running
from holdfast.kit.background.tasks import TaskHandler, TimedTask, duplicate_names, run_tasks
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, ErrorBody, Problem
from holdfast.kit.http import rest
from holdfast.kit.http.answers import NO_PARAMETERS, PlainEndpoint, always
from holdfast.kit.http.application import Application
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.http.handler import NO_STORE, Reply, Request, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.http.sockets import drain_on_sigterm, is_draining
from holdfast.kit.operations.operation import Operations
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.site import PROGRAM_PATHS, Site
from holdfast.kit.postgres.database import Database
from holdfast.kit.postgres.notifications import LISTENERS, listeners
from holdfast.kit.process.database_health import watch_database
from holdfast.kit.process.metrics_route import TEXT, metrics_route
from holdfast.kit.process.part import Endpoints, Part
from holdfast.kit.security.api_keys import Authenticate

log = structlog.get_logger()


@dataclass(frozen=True)
class Service:
    """All parts of one service, as data.

    runner               runs its operations
    operations           its table of operations
    parts                its parts, which say its background work and its keys
    endpoints            what answers requests besides the operations: the endpoints of its parts
    authenticate         turns the credential of a request into its caller
    agents               the endpoint for agents, `/mcp`; None: there is none
    site                 its pages; None: there are none
    streams              its open event streams
    error_body           its error envelope
    keeps_slash          the prefixes of paths that are not redirected if they end with a slash
    per_machine_state    descriptions of state that each machine keeps for itself, for warnings to operators
    drain_seconds        the seconds for which it serves after SIGTERM
    metrics_token        the token for its metrics; empty: only programs on the same machine may read them
    """

    database: Database[Any]
    runner: Runner
    operations: Operations
    authenticate: Authenticate
    limits: Limits
    streams: Streams
    parts: Sequence[Part[Any]] = ()
    endpoints: Endpoints = field(default_factory=Endpoints)
    agents: mcp.EndpointConfig | None = None
    site: Site | None = None
    error_body: ErrorBody = Problem.body
    keeps_slash: tuple[str, ...] = ()
    per_machine_state: Sequence[str] = ()
    drain_seconds: float = 0
    metrics_token: str = ""

    def __post_init__(self) -> None:
        if names := duplicate_names(self.tasks, self.timed_tasks):
            raise ValueError(f"Several tasks have the name {', '.join(names)}; each needs a name of its own.")

    @property
    def loops(self) -> Sequence[Loop]:
        return [loop for part in self.parts for loop in part.loops]

    @property
    def tasks(self) -> Sequence[TaskHandler[Any]]:
        return [task for part in self.parts for task in part.tasks]

    @property
    def timed_tasks(self) -> Sequence[TimedTask]:
        return [task for part in self.parts for task in part.timed_tasks]

    def app(self, *, background: bool = True) -> Application:
        """The ASGI application. With `background` it also does the background work while it serves."""

        @contextlib.asynccontextmanager
        async def lifespan() -> AsyncGenerator[None]:
            with drain_on_sigterm(self.drain_seconds, self.streams.close):
                async with self.opened(background=background):
                    yield

        refuse = envelope(self.error_body)
        site_parameters = self.site.parameters if self.site else NO_PARAMETERS
        return Application(
            self.all_routes(),
            lifespan,
            self.site.unrouted(refuse) if self.site else refuse,
            parameters=frozenset({*rest.query_parameters(self.operations), *site_parameters, "lang"}),
            keeps_slash=self.keeps_slash,
            pages=[route.path for route in self.endpoints.routes if "GET" in route.endpoint.methods]
            if self.site
            else (),
            program_prefixes=PROGRAM_PATHS,
        )

    def all_routes(self) -> Sequence[Route]:
        """The routes of the service, of its operations, and those that every service has."""
        refuse = envelope(self.error_body)
        operations = rest.routes(self.operations, self.runner, self.authenticate, self.limits, refuse)
        return [
            *operations,
            *self.endpoints.routes,
            *self._agent_routes(),
            Route("/healthz", always(b"alive\n", TEXT, NO_STORE)),
            Route("/readyz", PlainEndpoint(self._ready)),
            metrics_route(self.metrics_token),
        ]

    def _ready(self, request: Request) -> Reply:
        # The database is not asked: while it is away, every process would be taken out of service at once. So
        # clients would get the words of the proxy, and no process would count the refused requests.
        if is_draining():
            problem = SERVICE_UNAVAILABLE("This process is stopping. Ask another one.", retry_after=1)
            return envelope(self.error_body)(problem, request)  # also for browsers: proxies read it
        return Reply(200, b"ready\n", [NO_STORE], TEXT)

    def _agent_routes(self) -> Sequence[Route]:
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
        """Open the database, and listen for its notices, while the block lasts.

        With `background`, it also does the background work.
        """
        await self.database.open()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.database.close)
            stack.push_async_callback(self.limits.close)
            for close in self.endpoints.closing:
                stack.push_async_callback(close)
            for cache in self.endpoints.caches:
                stack.enter_context(cache())
            watch = partial(watch_database, self.database)
            health = asyncio.create_task(keep_running("database_health.watch_database", watch), name="database health")
            stack.push_async_callback(end_tasks, [health])
            if self.per_machine_state:
                warning = asyncio.create_task(keep_running("service._warn", self._warn), name="machines")
                stack.push_async_callback(end_tasks, [warning])
            if background:
                await stack.enter_async_context(self.background())
            yield

    @contextlib.asynccontextmanager
    async def background(self) -> AsyncGenerator[None]:
        """Do the background work while the block lasts."""
        leaders = Leaders(self.database, [loop.name for loop in self.loops])
        runs: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        for part in self.parts:
            runs += [(work.name, partial(row_work.run, self.database, work)) for work in part.row_work(self.database)]
            runs += [(name, partial(sender, self.database)) for name, sender in part.senders.items()]
        if self.loops:
            runs.append(("loops.run", partial(leaders.run, self.database)))
        if self.tasks or self.timed_tasks:
            runs.append(("service._jobs", partial(run_tasks, self.database, self.tasks, self.timed_tasks)))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(keep_running(name, run), name=name) for name, run in runs]
            for loop in self.loops:
                run = partial(keep_running, loop.name, partial(loop.run, self.database))
                tasks.append(group.create_task(leaders.lead(loop.name, run), name=f"leader of {loop.name}"))
            tasks.append(group.create_task(self._make_keys(), name="signing keys"))
            try:
                yield
            finally:
                await end_tasks(tasks)

    async def _make_keys(self) -> None:
        """Create the first keys, so that no request waits for them. If this fails, they are created when needed."""
        with contextlib.suppress(Problem):
            for part in self.parts:
                for keys in part.keys:
                    await self.database.transact(keys.read_or_create)

    async def _warn(self) -> None:
        await warn_of_several_machines(self.database, self.per_machine_state)


async def warn_of_several_machines(database: Database[Any], unshared: Sequence[str]) -> None:
    """Warn whenever this process starts to listen while a process on another machine listens too, until cancelled.

    The process that starts last sees the other one.

    unshared    descriptions of the state that each machine keeps for itself, and of the setting to share it
    """
    connected = asyncio.Event()
    with database.listen("machines", lambda _: connected.set()):
        while True:
            await connected.wait()
            connected.clear()
            if await count_machines(database) > 1:
                for description in unshared:
                    log.warning(f"several machines use this database, but {description}")


async def count_machines(database: Database[Any]) -> int:
    """How many machines have a process of this service that listens."""
    [(_, machines)] = await database.read(lambda reader: reader.tuples(LISTENERS, listeners(database.name)))
    return machines
