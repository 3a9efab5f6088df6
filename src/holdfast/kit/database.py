"""PostgreSQL: the pool, reads, and transactions that are retried whole. All SQL of a service goes through here."""

import asyncio
import contextlib
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, LiteralString, NamedTuple, TypeVar

import msgspec
import psycopg
from msgspec import Struct
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, errors
from psycopg.rows import AsyncRowFactory, kwargs_row, tuple_row

from holdfast.kit.commits import Commits, answered, is_lost, pipelined
from holdfast.kit.notices import SEND, Notices
from holdfast.kit.notifications import CHANNEL, Receiver, listener_name
from holdfast.kit.pool import AT_ONCE, KEEPALIVE, Pool
from holdfast.kit.tasks import CHANNEL as TASKS
from holdfast.kit.tasks import ENQUEUE, Enqueued, Task
from holdfast.kit.unavailable import CONFLICTS, in_time

A = TypeVar("A", bound=Struct)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
Params = Mapping[str, Any]

ATTEMPTS = 4
"""How often a transaction is run at most when it conflicts with others."""

SNAPSHOT: LiteralString = "begin isolation level repeatable read read only"


class _Open(NamedTuple):
    """A connection in use; with its pipeline inside a transaction."""

    connection: AsyncConnection[Any]
    pipeline: AsyncPipeline | None


class Reader(Generic[R_co]):
    """Runs statements that change nothing, with the resources of the service they belong to.

    Each statement is a transaction of its own; in a service with row-level security all of them share one snapshot.
    The first statement takes a connection from the pool: work without statements holds none.
    """

    def __init__(self, resources: R_co, connect: Callable[[], Awaitable[_Open]]) -> None:
        self.resources = resources
        self._connect = connect
        self.opened: _Open | None = None

    async def rows(self, into: type[T], sql: LiteralString, params: Params | None = None) -> list[T]:
        """Every row, each as `into(**columns)`."""
        return await (await self._answered(kwargs_row(into), sql, params)).fetchall()

    async def row(self, into: type[T], sql: LiteralString, params: Params | None = None) -> T | None:
        """The first row as `into(**columns)`, or None."""
        return await (await self._answered(kwargs_row(into), sql, params)).fetchone()

    async def tuples(self, sql: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Every row as a plain tuple: for frequent statements."""
        return await (await self._answered(tuple_row, sql, params)).fetchall()

    async def value(self, sql: LiteralString, params: Params | None = None) -> Any:
        """The first column of the first row, or None."""
        rows = await self.tuples(sql, params)
        return rows[0][0] if rows else None

    async def _execute(self, rows: AsyncRowFactory[T], sql: LiteralString, params: Params | None) -> AsyncCursor[T]:
        if self.opened is None:
            self.opened = await self._connect()
        cursor = self.opened.connection.cursor(row_factory=rows)
        await cursor.execute(sql, params)
        return cursor

    async def _answered(self, rows: AsyncRowFactory[T], sql: LiteralString, params: Params | None) -> AsyncCursor[T]:
        cursor = await self._execute(rows, sql, params)
        await answered(cursor.connection)
        return cursor


class Tx(Reader[R_co]):
    """A transaction. It begins with its first statement."""

    def __init__(self, resources: R_co, connect: Callable[[], Awaitable[_Open]], tenant: int | None) -> None:
        super().__init__(resources, connect)
        self.notifications: list[tuple[str, str]] = []
        self.revocations: list[tuple[str, str]] = []
        self._tenant = tenant

    async def run(self, sql: LiteralString, params: Params | None = None) -> None:
        """Run a statement without waiting for its result. An error is raised by a later statement or by the commit."""
        await self._execute(tuple_row, sql, params)

    async def confirm(self) -> None:
        """Make the commit wait until everything that was committed before is as durable as configured.

        A transaction that stores nothing would not wait. It is for answers that confirm what somebody stored before.
        """
        await self.run("select pg_logical_emit_message(true, 'holdfast', '')")

    async def notify(self, channel: str, payload: str = "") -> None:
        """Notify the listeners of every process soon after the commit; those of this process before `transact` returns.

        The notice may be sent with others, and is lost if the process is killed just then: whoever listens also looks
        now and then. The database also notifies this process, so its listeners are called twice; the second call must
        do no harm.
        """
        self.notifications.append((channel, payload))

    async def revoke(self, channel: str, payload: str = "") -> None:
        """As `notify`, and the notice is part of the commit: no process can be killed in between.

        Until it is through, nobody else's notices are sent. So it is for what ends credentials, and for that alone.
        """
        self.revocations.append((channel, payload))
        await self.run(f"select pg_notify('{CHANNEL}', %(notice)s)", {"notice": f"{channel} {payload}"})

    async def enqueue(self, task: Task[A], arguments: A, *, delay: float = 0, tenant: int | None = None) -> int:
        """Store a job for a task; return its id. It runs after this transaction has committed and `delay` seconds.

        It is restricted to the tenant of this transaction. One that has none may name the `tenant` of the job.
        """
        if self._tenant is not None and tenant not in {None, self._tenant}:
            raise ValueError("A transaction of a tenant enqueues no work of another.")
        stored = msgspec.json.encode(Enqueued(tenant or self._tenant, arguments)).decode()
        if delay > 0:
            await self.notify(TASKS)
        return await self.value(ENQUEUE, {"name": task.name, "arguments": stored, "delay": delay})


class Database(Generic[R]):
    """The database of one service, shared by everything that runs in a process.

    resources  what operations and jobs use besides the database
    tenancy    the statement that restricts a transaction to one tenant, `%(tenant)s`, until it ends: row-level
               security then shows it only the rows of that tenant. None: the service has no row-level security
    """

    def __init__(self, url: str, resources: R, *, size: int, name: str, tenancy: LiteralString | None = None) -> None:
        self.url = url
        self.resources = resources
        self.name = name
        self.tenancy: LiteralString | None = tenancy
        self._receiver = Receiver(url, listener_name(name), KEEPALIVE, self._lost)
        self.listen = self._receiver.listen
        self.pool = Pool.sized(url, size, name)
        self._commits = Commits()
        self.notices = Notices(self._send)
        self._check: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self.pool.open()
        self._receiver.open()

    async def close(self) -> None:
        await self._receiver.close()
        await self._commits.close()
        await self.notices.close()
        await self.pool.close()

    def across_tenants(self) -> "Database[R]":
        """The same database, for work that is no tenant's, such as signing in: it is not restricted to one.

        It has the connections of this one, which is opened and closed.
        """
        database = copy.copy(self)
        database.tenancy = None
        return database

    def _lost(self) -> asyncio.Task[None]:
        """Replace the connections of the pool that were lost too, before a request gets one of them."""
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(self.pool.check())
        return self._check

    def _tell(self, tx: Tx[Any]) -> None:
        """Tell the listeners of this process at once what a transaction has changed, and all others soon."""
        for notice in (*tx.revocations, *tx.notifications):
            self._receiver.deliver(*notice)
        self.notices.add(tx.notifications)

    async def _send(self, notices: Sequence[str]) -> None:
        await self.read(lambda reader: reader.value(SEND, {"notices": list(notices)}))

    def _connection(self) -> contextlib.AbstractAsyncContextManager[AsyncConnection[Any]]:
        """A connection of the pool. While the database is away, nobody waits for one."""
        return self.pool.connection(timeout=AT_ONCE if self._receiver.away else None)

    @contextlib.asynccontextmanager
    async def transaction(self, tenant: int | None = None, begin: LiteralString = "begin") -> AsyncGenerator[Tx[R]]:
        """A transaction, committed when the block ends and rolled back when it raises.

        Its statements are pipelined: BEGIN and statements whose result is not read are sent with the next one.
        """
        async with contextlib.AsyncExitStack() as stack:

            async def connect() -> _Open:
                connection = await stack.enter_async_context(self._connection())
                opened = _Open(connection, await stack.enter_async_context(pipelined(connection, begin)))
                if self.tenancy is not None and tenant is not None:
                    await AsyncCursor(connection).execute(self.tenancy, {"tenant": str(tenant)})
                return opened

            tx = Tx(self.resources, connect, tenant)
            yield tx
            if opened := tx.opened:
                # From here on, nothing ends the transaction but its commit.
                await self._commits.finish(opened.connection, stack.pop_all(), lambda: self._tell(tx))
            else:
                self._tell(tx)

    async def transact(
        self, work: Callable[[Tx[R]], Awaitable[T]], tenant: int | None = None, *, keep: bool = True
    ) -> T:
        """Run `work` in a transaction and return its result after the commit.

        After a conflict, and if the connection was lost before the COMMIT was sent, all of it is run again. A COMMIT
        that was sent goes on, also if the caller stops waiting. With `tenant`, in a service with row-level security, it
        sees only that tenant's rows. With `keep` false the transaction is rolled back, and the result says what would
        have happened. Raises `service_unavailable` when the database cannot be reached or takes too long; it is then
        unknown whether anything was stored.
        """
        return await self._tried(lambda: self._attempt(work, tenant, keep))

    async def read(self, work: Callable[[Reader[R]], Awaitable[T]], tenant: int | None = None) -> T:
        """Run `work` with each statement in a transaction of its own: for reads, and for short locks.

        With `tenant`, in a service with row-level security, it sees only that tenant's rows, and all statements read
        the same snapshot. Raises `service_unavailable` when the database cannot be reached or takes too long.
        """
        return await self._tried(lambda: self._look(work, tenant))

    async def _tried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Do something, and again after a conflict, or if the connection was lost before anything was committed."""
        async with in_time(lambda: self._receiver.away):
            for _ in range(ATTEMPTS - 1):
                try:
                    return await attempt()
                except CONFLICTS:
                    pass
                except (psycopg.OperationalError, errors.ReadOnlySqlTransaction) as error:
                    if not is_lost(error):
                        raise
                    await asyncio.shield(self._lost())
            return await attempt()

    async def _look(self, work: Callable[[Reader[R]], Awaitable[T]], tenant: int | None) -> T:
        async with contextlib.AsyncExitStack() as stack:
            if self.tenancy is not None and tenant is not None:
                return await work(await stack.enter_async_context(self.transaction(tenant, SNAPSHOT)))

            async def connect() -> _Open:
                return _Open(await stack.enter_async_context(self._connection()), None)

            return await work(Reader(self.resources, connect))

    async def _attempt(self, work: Callable[[Tx[R]], Awaitable[T]], tenant: int | None, keep: bool) -> T:
        answers: list[T] = []
        with contextlib.suppress(_RollBack):
            async with self.transaction(tenant) as tx:
                answers.append(await work(tx))
                if not keep:
                    # Wait for statements whose results were not read, so that their errors are raised here.
                    await tx.run("set constraints all immediate")
                    await tx.value("select true")
                    raise _RollBack
        return answers[0]


class _RollBack(Exception):
    """Raised to roll back a transaction that is not to be kept."""
