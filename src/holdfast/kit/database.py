"""PostgreSQL: the pool, transactions that are retried whole, and LISTEN/NOTIFY.

All SQL of a service goes through `Tx`, which is handed to every operation.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from typing import Any, Generic, LiteralString, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection, AsyncCursor, errors
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
UNREACHABLE = (psycopg.OperationalError, PoolTimeout, PoolClosed, TooManyRequests)
EVERYTHING: LiteralString = "holdfast"
"""The one PostgreSQL channel; a notice is the name of ours, a space, and the payload."""

KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "connect_timeout": 5,
}


class Tx(Generic[S]):
    """A transaction, with the settings of the service it belongs to.

    It begins with its first statement: work that needs no database holds no connection.
    """

    def __init__(self, settings: S, connect: Callable[[], Awaitable[AsyncConnection[Any]]]) -> None:
        self.settings = settings
        self.notices: list[tuple[str, str]] = []
        self._connect = connect
        self._connection: AsyncConnection[Any] | None = None

    async def rows(self, into: type[T], sql: LiteralString, params: Params | None = None) -> list[T]:
        """Every row, each as `into(**columns)`."""
        return await (await self._execute(kwargs_row(into), sql, params)).fetchall()

    async def row(self, into: type[T], sql: LiteralString, params: Params | None = None) -> T | None:
        """The first row as `into(**columns)`, or None."""
        return await (await self._execute(kwargs_row(into), sql, params)).fetchone()

    async def tuples(self, sql: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Every row as a plain tuple: for hot statements."""
        return await (await self._execute(tuple_row, sql, params)).fetchall()

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
        if self._connection is None:
            self._connection = await self._connect()
        cursor = self._connection.cursor(row_factory=rows)
        await cursor.execute(sql, params)
        return cursor


class Database(Generic[S]):
    """One service's database, shared by all the work of a process."""

    def __init__(self, url: str, settings: S, *, size: int, name: str) -> None:
        self.url = url
        self.settings = settings
        self.name = name
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
    async def transaction(self) -> AsyncGenerator[Tx[S]]:
        """A transaction, committed when the block ends and rolled back when it raises.

        Its statements are pipelined: they wait for an answer only where one is read, and at the end for the commit.
        """
        async with contextlib.AsyncExitStack() as stack:

            async def begin() -> AsyncConnection[Any]:
                connection = await stack.enter_async_context(self.pool.connection())
                await stack.enter_async_context(connection.pipeline())
                await stack.enter_async_context(connection.transaction())
                return connection

            yield Tx(self.settings, begin)

    async def transact(self, work: Callable[[Tx[S]], Awaitable[T]]) -> T:
        """Run `work` in a transaction; run it again, whole, when it lost a race. Answers after the commit.

        Raises `service_unavailable` when the database cannot be reached; then nothing is known to be stored.
        """
        with _unreachable_is_a_problem():
            for _ in range(ATTEMPTS - 1):
                with contextlib.suppress(*CONFLICTS):
                    return await self._attempt(work)
            return await self._attempt(work)

    async def _attempt(self, work: Callable[[Tx[S]], Awaitable[T]]) -> T:
        async with self.transaction() as tx:
            answer = await work(tx)
        for notice in tx.notices:
            self._tell(*notice)
        return answer

    async def read(self, work: Callable[[Tx[S]], Awaitable[T]]) -> T:
        """Run `work` with every statement a transaction of its own: for reads, and for locks of a moment.

        Raises `service_unavailable` when the database cannot be reached.
        """
        with _unreachable_is_a_problem():
            async with contextlib.AsyncExitStack() as stack:
                return await work(Tx(self.settings, lambda: stack.enter_async_context(self.pool.connection())))

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
            except psycopg.OperationalError as error:
                log.warning("listener lost its connection", error=str(error).strip())
            await asyncio.sleep(0.5)

    def _tell(self, channel: str, payload: str) -> None:
        for heard in tuple(self._heard.get(channel, ())):
            try:
                heard(payload)
            except Exception as error:
                log.error("a listener failed", channel=channel, exc_info=error)


@contextlib.contextmanager
def _unreachable_is_a_problem() -> Generator[None]:
    try:
        yield
    except CONFLICTS as error:
        raise SERVICE_UNAVAILABLE("Too many others are changing the same thing.", retry_after=1) from error
    except UNREACHABLE as error:
        log.warning("database unavailable", error=str(error).strip())
        raise SERVICE_UNAVAILABLE("The database cannot be reached right now.", retry_after=1) from error
    except psycopg.Error as error:
        # The details below the first line quote rows: addresses and hashes do not belong into logs.
        error.args = (str(error).split("\n", 1)[0],)
        raise


async def _configure(connection: AsyncConnection[Any]) -> None:
    # A process that stalls inside a transaction must not keep others waiting for its locks.
    await connection.execute(
        "set timezone = 'UTC'; set idle_in_transaction_session_timeout = '10s'; set statement_timeout = '30s'"
    )
