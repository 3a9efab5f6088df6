"""PostgreSQL: the pool, transactions that are retried whole, and LISTEN/NOTIFY.

All SQL of a service goes through `Tx`, which is handed to every operation.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from typing import Any, Generic, LiteralString, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection, errors
from psycopg.rows import kwargs_row, tuple_row
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
    """An open transaction, with the settings of the service it belongs to."""

    def __init__(self, connection: AsyncConnection[Any], settings: S) -> None:
        self.connection = connection
        self.settings = settings
        self.notices: list[tuple[str, str]] = []

    async def rows(self, into: type[T], sql: LiteralString, params: Params | None = None) -> list[T]:
        """Every row, each as `into(**columns)`."""
        async with self.connection.cursor(row_factory=kwargs_row(into)) as cursor:
            await cursor.execute(sql, params)
            return await cursor.fetchall()

    async def row(self, into: type[T], sql: LiteralString, params: Params | None = None) -> T | None:
        """The first row as `into(**columns)`, or None."""
        async with self.connection.cursor(row_factory=kwargs_row(into)) as cursor:
            await cursor.execute(sql, params)
            return await cursor.fetchone()

    async def tuples(self, sql: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Every row as a plain tuple: for hot statements."""
        async with self.connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(sql, params)
            return await cursor.fetchall()

    async def value(self, sql: LiteralString, params: Params | None = None) -> Any:
        """The first column of the first row, or None."""
        rows = await self.tuples(sql, params)
        return rows[0][0] if rows else None

    async def run(self, sql: LiteralString, params: Params | None = None) -> int:
        """Run a statement for its effect; the number of rows it touched."""
        async with self.connection.cursor() as cursor:
            await cursor.execute(sql, params)
            return cursor.rowcount

    @contextlib.asynccontextmanager
    async def pipeline(self) -> AsyncGenerator[None]:
        """Statements inside travel together: one network round trip for all of them."""
        async with self.connection.pipeline():
            yield

    async def notify(self, channel: str, payload: str = "") -> None:
        """Tell every process that listens, once this transaction has committed; this one before it answers."""
        self.notices.append((channel, payload))
        await self.run(f"select pg_notify('{EVERYTHING}', %(notice)s)", {"notice": f"{channel} {payload}"})


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
        """A transaction, committed when the block ends and rolled back when it raises."""
        async with self.pool.connection() as connection, connection.transaction():
            yield Tx(connection, self.settings)

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
            async with self.pool.connection() as connection:
                return await work(Tx(connection, self.settings))

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
                        self._tell(*notice.payload.split(" ", 1))
            except psycopg.OperationalError as error:
                log.warning("listener lost its connection", error=str(error).strip())
            await asyncio.sleep(0.5)

    def _tell(self, channel: str, payload: str) -> None:
        for heard in self._heard.get(channel, ()):
            heard(payload)


@contextlib.contextmanager
def _unreachable_is_a_problem() -> Generator[None]:
    try:
        yield
    except UNREACHABLE as error:
        log.warning("database unavailable", error=str(error).strip())
        raise SERVICE_UNAVAILABLE("The database cannot be reached right now.", retry_after=1) from error


async def _configure(connection: AsyncConnection[Any]) -> None:
    # A process that stalls inside a transaction must not keep others waiting for its locks.
    await connection.execute(
        "set timezone = 'UTC'; set idle_in_transaction_session_timeout = '10s'; set statement_timeout = '30s'"
    )
