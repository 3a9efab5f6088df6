"""PostgreSQL: the pool, transactions that are retried whole, and LISTEN/NOTIFY.

All SQL of a service goes through `Tx`, which is handed to every operation.
"""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from typing import Any, Generic, LiteralString, NamedTuple, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, errors
from psycopg.rows import AsyncRowFactory, kwargs_row, tuple_row
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from holdfast.kit.problems import SERVICE_UNAVAILABLE

S = TypeVar("S")
T = TypeVar("T")
Params = Mapping[str, Any]

ATTEMPTS = 4
"""How often a transaction is run before a conflict with others is given up on."""

log = structlog.get_logger()

CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
UNREACHABLE = (psycopg.OperationalError, errors.ReadOnlySqlTransaction, PoolTimeout, PoolClosed, TooManyRequests)
SNAPSHOT: LiteralString = "begin isolation level repeatable read read only"
EVERYTHING: LiteralString = "holdfast"
"""The one PostgreSQL channel; a notice is the name of ours, a space, and the payload."""

KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": 5,
}

SESSION: LiteralString = """
    set timezone = 'UTC';
    set statement_timeout = '30s';
    -- A process that stalls, or whose machine dies, must not keep others waiting for its locks.
    set idle_in_transaction_session_timeout = '10s';
    set tcp_keepalives_idle = 10;
    set tcp_keepalives_interval = 5;
    set tcp_keepalives_count = 3
"""

DEADLINE = 40
"""Seconds a caller is kept waiting for the database at most."""


class Tx(Generic[S]):
    """A transaction, with the settings of the service it belongs to.

    It begins with its first statement: work that needs no database holds no connection.
    """

    def __init__(self, settings: S, connect: Callable[[], Awaitable["Line"]]) -> None:
        self.settings = settings
        self.notices: list[tuple[str, str]] = []
        self._connect = connect
        self._line: Line | None = None

    async def rows(self, into: type[T], sql: LiteralString, params: Params | None = None) -> list[T]:
        """Every row, each as `into(**columns)`."""
        return await (await self._answered(kwargs_row(into), sql, params)).fetchall()

    async def row(self, into: type[T], sql: LiteralString, params: Params | None = None) -> T | None:
        """The first row as `into(**columns)`, or None."""
        return await (await self._answered(kwargs_row(into), sql, params)).fetchone()

    async def tuples(self, sql: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Every row as a plain tuple: for hot statements."""
        return await (await self._answered(tuple_row, sql, params)).fetchall()

    async def value(self, sql: LiteralString, params: Params | None = None) -> Any:
        """The first column of the first row, or None."""
        rows = await self.tuples(sql, params)
        return rows[0][0] if rows else None

    async def run(self, sql: LiteralString, params: Params | None = None) -> None:
        """Run a statement for its effect. It travels with the next one; should it fail, that or the commit says so."""
        await self._execute(tuple_row, sql, params)

    async def notify(self, channel: str, payload: str = "") -> None:
        """Tell every process that listens, once this transaction has committed; this one before it answers.

        This process hears it a second time from the database, so listeners must not mind.
        """
        self.notices.append((channel, payload))
        await self.run(f"select pg_notify('{EVERYTHING}', %(notice)s)", {"notice": f"{channel} {payload}"})

    async def _execute(self, rows: AsyncRowFactory[T], sql: LiteralString, params: Params | None) -> AsyncCursor[T]:
        if self._line is None:
            self._line = await self._connect()
        cursor = self._line.connection.cursor(row_factory=rows)
        await cursor.execute(sql, params)
        return cursor

    async def _answered(self, rows: AsyncRowFactory[T], sql: LiteralString, params: Params | None) -> AsyncCursor[T]:
        cursor = await self._execute(rows, sql, params)
        if self._line and self._line.pipeline:
            # Without a Sync the server would not know that it waits for us, and never cut off a process that stalls.
            await self._line.pipeline.sync()
        return cursor


class Line(NamedTuple):
    """A connection in use; with its pipeline inside a transaction."""

    connection: AsyncConnection[Any]
    pipeline: AsyncPipeline | None


class Database(Generic[S]):
    """One service's database, shared by all the work of a process.

    tenancy    the statement by which a transaction enters a tenant, `%(tenant)s`, for good: from then on row-level
               security shows it that tenant's rows and no others. None: the service has no such wall
    """

    def __init__(self, url: str, settings: S, *, size: int, name: str, tenancy: LiteralString | None = None) -> None:
        self.url = url
        self.settings = settings
        self.name = name
        self.tenancy: LiteralString | None = tenancy
        self._heard: dict[str, list[Callable[[str], None]]] = {}
        self._listener: asyncio.Task[None] | None = None
        self.pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            url,
            min_size=2,
            max_size=size,
            timeout=5,
            open=False,
            configure=_configure,
            name=name,
            kwargs={"autocommit": True, "application_name": name, **KEEPALIVE},
        )

    async def open(self) -> None:
        await self.pool.open()
        self._listener = asyncio.create_task(self._listen(), name=f"{self.name} listener")

    async def close(self) -> None:
        if self._listener:
            self._listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listener
        await self.pool.close()

    @contextlib.asynccontextmanager
    async def transaction(self, tenant: int | None = None, begin: LiteralString = "begin") -> AsyncGenerator[Tx[S]]:
        """A transaction, committed when the block ends and rolled back when it raises.

        Its statements are pipelined: BEGIN travels with the first that is read, COMMIT with the last that is not.
        """
        async with contextlib.AsyncExitStack() as stack:

            async def connect() -> Line:
                connection = await stack.enter_async_context(self.pool.connection())
                line = Line(connection, await stack.enter_async_context(_pipelined(connection, begin)))
                if self.tenancy is not None and tenant is not None:
                    await connection.execute(self.tenancy, {"tenant": str(tenant)})
                return line

            yield Tx(self.settings, connect)

    async def transact(self, work: Callable[[Tx[S]], Awaitable[T]], tenant: int | None = None) -> T:
        """Run `work` in a transaction; run it again, whole, when it lost a race. Answers after the commit.

        With `tenant` it sees that tenant's rows only, where the service has row-level security. Raises
        `service_unavailable` when the database cannot be reached or takes too long; then nothing is known to be stored.
        """
        async with _in_time():
            for _ in range(ATTEMPTS - 1):
                with contextlib.suppress(*CONFLICTS):
                    return await self._attempt(work, tenant)
            return await self._attempt(work, tenant)

    async def conclude(self, work: Callable[[Tx[S]], Awaitable[T]]) -> T:
        """The last transaction of an operation that makes its transactions itself: what it returns is the answer.

        For a request with an Idempotency-Key the answer is stored with it; see `runner.Once`.
        """
        return await self.transact(work)

    async def _attempt(self, work: Callable[[Tx[S]], Awaitable[T]], tenant: int | None) -> T:
        async with self.transaction(tenant) as tx:
            answer = await work(tx)
        for notice in tx.notices:
            self._tell(*notice)
        return answer

    async def read(self, work: Callable[[Tx[S]], Awaitable[T]], tenant: int | None = None) -> T:
        """Run `work` with every statement a transaction of its own: for reads, and for locks of a moment.

        With `tenant`, where the service has row-level security, it sees that tenant's rows only, and all of them as
        they were at one moment. Raises `service_unavailable` when the database cannot be reached or takes too long.
        """
        async with _in_time(), contextlib.AsyncExitStack() as stack:
            if self.tenancy is not None and tenant is not None:
                return await work(await stack.enter_async_context(self.transaction(tenant, SNAPSHOT)))

            async def connect() -> Line:
                return Line(await stack.enter_async_context(self.pool.connection()), None)

            return await work(Tx(self.settings, connect))

    @contextlib.contextmanager
    def hearing(self, channel: str, heard: Callable[[str], None]) -> Generator[None]:
        """Call `heard(payload)` for every notification on a channel while the block lasts.

        `heard("")` is also called after each (re)connection, since anything may have been missed before it.
        """
        self._heard.setdefault(channel, []).append(heard)
        try:
            yield
        finally:
            self._heard[channel].remove(heard)

    async def _listen(self) -> None:
        while True:
            try:
                async with await AsyncConnection.connect(
                    self.url, autocommit=True, application_name=f"{self.name} listener", **KEEPALIVE
                ) as connection:
                    await connection.execute(f"listen {EVERYTHING}")
                    for channel in self._heard:
                        self._tell(channel, "")
                    async for notice in connection.notifies():
                        channel, _, payload = notice.payload.partition(" ")
                        self._tell(channel, payload)
            except Exception as error:
                log.warning("listener lost its connection", error=first_line(error))
            await asyncio.sleep(0.5)

    def _tell(self, channel: str, payload: str) -> None:
        for heard in tuple(self._heard.get(channel, ())):
            try:
                heard(payload)
            except Exception as error:
                log.error("a listener failed", channel=channel, exc_info=error)


@contextlib.asynccontextmanager
async def _pipelined(connection: AsyncConnection[Any], begin: LiteralString) -> AsyncGenerator[AsyncPipeline]:
    """A transaction on a connection, its statements in one pipeline."""
    try:
        async with connection.pipeline() as pipeline:
            await connection.execute(begin)
            yield pipeline
            commit = await connection.execute("commit")
        if commit.statusmessage != "COMMIT":
            # Somebody swallowed the error of a statement; PostgreSQL then rolls back without another word.
            raise psycopg.InternalError("the transaction was rolled back")
    except BaseException:
        if not connection.closed:
            await connection.rollback()
        raise


@contextlib.asynccontextmanager
async def _in_time() -> AsyncGenerator[None]:
    """Turn what only waiting can help with into `service_unavailable`, and wait no longer than a caller would."""
    try:
        async with asyncio.timeout(DEADLINE):
            yield
    except CONFLICTS as error:
        raise SERVICE_UNAVAILABLE("Too many others are changing the same thing.", retry_after=1) from error
    except (TimeoutError, errors.QueryCanceled) as error:
        log.error("the database took too long", error=first_line(error))
        raise SERVICE_UNAVAILABLE("The database took too long.", retry_after=5) from error
    except UNREACHABLE as error:
        log.warning("database unavailable", error=first_line(error))
        raise SERVICE_UNAVAILABLE("The database cannot be reached right now.", retry_after=1) from error
    except psycopg.Error as error:
        # What follows the first line quotes rows: addresses and hashes do not belong into logs.
        error.args = (first_line(error),)
        raise


def transacts_itself(work: Callable[..., Awaitable[Any]]) -> bool:
    """Whether a function is given the `database`, to make transactions between what it does elsewhere, and no `tx`."""
    return "database" in inspect.signature(work).parameters


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).split("\n", 1)[0]


async def _configure(connection: AsyncConnection[Any]) -> None:
    await connection.execute(SESSION)
