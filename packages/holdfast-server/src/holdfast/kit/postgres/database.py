"""PostgreSQL: the pool, reads, and transactions that are retried as a whole. The queue of tasks has its own."""

import asyncio
import contextlib
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, LiteralString, NamedTuple, TypeVar

import msgspec
import psycopg
from msgspec import Struct
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, errors
from psycopg.rows import AsyncRowFactory, tuple_row

from holdfast.kit.compat.psycopg_pipeline import wait_for_answer
from holdfast.kit.environment.logs import first_line
from holdfast.kit.postgres.connection_pool import KEEPALIVE, OUTAGE_TIMEOUT_SECONDS, Pool
from holdfast.kit.postgres.notifications import NOTIFICATION, POSTGRES_CHANNEL, Notices, Receiver, listener_name
from holdfast.kit.postgres.row_structs import pair_of, row_of
from holdfast.kit.postgres.transactions import (
    CALLER_TIMEOUT_SECONDS,
    CONFLICTS,
    ENQUEUE_TASK,
    JOBS_CHANNEL,
    TASKS_CHANNEL,
    Commits,
    EnqueuedTask,
    Task,
    UncertainCommit,
    is_connection_lost,
    pipelined_transaction,
    problem_of,
)

T = TypeVar("T")
A = TypeVar("A", bound=Struct)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Params = Mapping[str, Any]

MAX_ATTEMPTS = 4
"""Attempts of a transaction that conflicts with others."""

SNAPSHOT: LiteralString = "begin isolation level repeatable read read only"


class OpenConnection(NamedTuple):
    """A connection in use, with its pipeline if it is in a transaction."""

    connection: AsyncConnection[Any]
    pipeline: AsyncPipeline | None


class Reader(Generic[R_co]):
    """Runs statements outside a transaction, with the resources of their service.

    Each statement has a snapshot of its own. In a service with row-level security, statements for a tenant share one.
    The first statement takes a connection from the pool: work without statements holds none.
    """

    def __init__(self, resources: R_co, connect: Callable[[], Awaitable[OpenConnection]]) -> None:
        self.resources = resources
        self._connect = connect
        self.opened: OpenConnection | None = None

    async def rows(self, into: type[T], sql: LiteralString, params: Params | None = None) -> list[T]:
        """Every row, each as `into(**columns)`."""
        return await (await self._execute_and_wait(row_of(into), sql, params)).fetchall()

    async def pairs(
        self, first: type[T], second: type[A], sql: LiteralString, params: Params | None = None
    ) -> list[tuple[T, A]]:
        """Every row as two structures: the last columns, as many as `second` has fields, and those before them."""
        return await (await self._execute_and_wait(pair_of(first, second), sql, params)).fetchall()

    async def row(self, into: type[T], sql: LiteralString, params: Params | None = None) -> T | None:
        """The first row as `into(**columns)`, or None."""
        return await (await self._execute_and_wait(row_of(into), sql, params)).fetchone()

    async def tuples(self, sql: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Every row as a plain tuple: for frequent statements."""
        return await (await self._execute_and_wait(tuple_row, sql, params)).fetchall()

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

    async def _execute_and_wait(
        self, rows: AsyncRowFactory[T], sql: LiteralString, params: Params | None
    ) -> AsyncCursor[T]:
        cursor = await self._execute(rows, sql, params)
        await wait_for_answer(cursor.connection)
        return cursor


class Writer(Reader[R_co]):
    """Runs statements that write, outside a transaction. Each commits by itself, and must be repeatable."""


class Tx(Reader[R_co]):
    """A transaction. It begins with its first statement.

    commit    commits the statements so far before the block of the transaction ends; None: it must not commit early
    """

    def __init__(
        self,
        resources: R_co,
        connect: Callable[[], Awaitable[OpenConnection]],
        tenant: int | None,
        commit: Callable[["Tx[Any]"], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(resources, connect)
        self._commit = commit
        self.notices: list[tuple[str, str]] = []
        self.revocations: list[tuple[str, str]] = []
        self._tenant = tenant

    async def run(self, sql: LiteralString, params: Params | None = None) -> None:
        """Run a statement without waiting for its result: it may not have taken its locks when this returns.

        An error is raised by a later statement or by the commit.
        """
        await self._execute(tuple_row, sql, params)

    async def tuples_and_commit(self, sql: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Every row of the last statement, after the commit, which is sent with the statement.

        So PostgreSQL does not wait for this process before it commits. Later statements are in another transaction.
        In a transaction that must not commit early, this only runs the statement; the commit follows at the end.
        """
        if self._commit is None:
            return await self.tuples(sql, params)
        cursor = await self._execute(tuple_row, sql, params)
        await self._commit(self)
        return await cursor.fetchall()

    async def wait_for_earlier_commits(self) -> None:
        """Make the commit wait until all earlier commits are as durable as configured.

        A transaction that stores nothing would not wait. This is for answers that confirm earlier commits.
        """
        await self.run("select pg_logical_emit_message(true, 'holdfast', '')")

    async def notify(self, channel: str, payload: str = "") -> None:
        """Notify the listeners of every process soon after the commit; those of this process before `transact` returns.

        The notice may be sent together with others, and is lost if the process is killed before that: so listeners also
        poll. The database notifies this process too, so its listeners are called twice and must be idempotent.
        """
        self.notices.append((channel, payload))

    async def revoke(self, channel: str, payload: str = "") -> None:
        """Like `notify`, but the notice is part of the commit, so that a killed process cannot lose it.

        Until the commit ends, no other notices are sent. So this is only for the revocation of credentials.
        """
        self.revocations.append((channel, payload))
        await self.run(f"select pg_notify('{POSTGRES_CHANNEL}', %(notice)s)", {"notice": f"{channel} {payload}"})

    async def enqueue(self, task: Task[A], arguments: A, *, delay: float = 0, tenant: int | None = None) -> int:
        """Store a job for a task; return its id. It runs after this transaction has committed and `delay` seconds.

        It is restricted to the tenant of this transaction. A transaction without a tenant may give the job's `tenant`.
        """
        if self._tenant is not None and tenant not in {None, self._tenant}:
            raise ValueError("A transaction of a tenant enqueues no work of another.")
        task_json = msgspec.json.encode(EnqueuedTask(tenant or self._tenant, arguments)).decode()
        if delay > 0:
            await self.notify(TASKS_CHANNEL)
        return await self.value(ENQUEUE_TASK, {"name": task.name, "arguments": task_json, "delay": delay})


class Database(Generic[R]):
    """The database of one service, shared by everything that runs in a process.

    resources  the objects that operations and jobs use besides the database
    tenancy    the statement that restricts a transaction to one tenant, `%(tenant)s`, until it ends: row-level
               security then shows it only the rows of that tenant. None: the service has no row-level security
    """

    def __init__(self, url: str, resources: R, *, size: int, name: str, tenancy: LiteralString | None = None) -> None:
        self.url = url
        self.resources = resources
        self.name = name
        self.tenancy: LiteralString | None = tenancy
        self._receiver = Receiver(url, listener_name(name), KEEPALIVE, self._replace_lost_connections, (JOBS_CHANNEL,))
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
        """The database without the restriction to a tenant, for work such as signing in.

        It shares the connections of this database, and only this one is opened and closed.
        """
        database = copy.copy(self)
        database.tenancy = None
        return database

    def _replace_lost_connections(self) -> asyncio.Task[None]:
        """Replace other lost connections of the pool, before a request gets one of them."""
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(self.pool.check())
        return self._check

    def _deliver_notices(self, tx: Tx[Any]) -> None:
        """Deliver the notices of a transaction to the listeners of this process now, and to all others soon."""
        for notice in (*tx.revocations, *tx.notices):
            self._receiver.deliver(*notice)
        self.notices.add(tx.notices)
        tx.revocations, tx.notices = [], []

    async def _send(self, notices: Sequence[str]) -> None:
        await self.autocommit(lambda writer: writer.value(NOTIFICATION, {"notices": list(notices)}))

    async def _get_connection(self) -> AsyncConnection[Any]:
        """A connection of the pool. The context of one would also commit, which has nothing to do here.

        It waits less long while the database is unreachable.
        """
        return await self.pool.getconn(OUTAGE_TIMEOUT_SECONDS if self._receiver.is_unreachable else None)

    @contextlib.asynccontextmanager
    async def transaction(
        self, tenant: int | None = None, begin: LiteralString = "begin", *, can_commit_early: bool = False
    ) -> AsyncGenerator[Tx[R]]:
        """A transaction, committed when the block ends and rolled back when it raises.

        Its statements are pipelined: BEGIN and statements whose result is not read are sent with the next one.

        can_commit_early    whether the block may send the commit together with its last statement (`tuples_and_commit`)
        """
        async with contextlib.AsyncExitStack() as stack:

            async def connect() -> OpenConnection:
                connection = await self._get_connection()
                stack.push_async_callback(self.pool.putconn, connection)
                open_connection = OpenConnection(
                    connection, await stack.enter_async_context(pipelined_transaction(connection, begin))
                )
                if self.tenancy is not None and tenant is not None:
                    await AsyncCursor(connection).execute(self.tenancy, {"tenant": str(tenant)})
                return open_connection

            async def commit(tx: Tx[Any]) -> None:
                if open_connection := tx.opened:
                    # From here on, only the commit ends the transaction.
                    tx.opened = None
                    await self._commits.commit(
                        open_connection.connection, stack.pop_all(), lambda: self._deliver_notices(tx)
                    )
                else:
                    self._deliver_notices(tx)

            tx = Tx(self.resources, connect, tenant, commit if can_commit_early else None)
            yield tx
            await commit(tx)

    async def transact(
        self,
        work: Callable[[Tx[R]], Awaitable[T]],
        tenant: int | None = None,
        *,
        is_dry_run: bool = False,
        can_commit_early: bool = False,
    ) -> T:
        """Run `work` in a transaction and return its result after the commit.

        After a conflict, and if the connection was lost before the COMMIT was sent, `work` is run again. A COMMIT that
        was sent continues even if the caller stops waiting. With `tenant`, in a service with row-level security, `work`
        sees only that tenant's rows. A dry run is rolled back, and its result says what would have happened. If
        `can_commit_early`, `work` may commit with its last statement. Raises `service_unavailable` if the database
        cannot be reached or takes too long; then it is unknown whether the changes were stored.
        """
        return await self._retry(lambda: self._attempt(work, tenant, is_dry_run, can_commit_early))

    async def read(self, work: Callable[[Reader[R]], Awaitable[T]], tenant: int | None = None) -> T:
        """Run `work`, which reads, with each statement in its own transaction.

        With `tenant`, in a service with row-level security, it sees only that tenant's rows, and all statements read
        the same snapshot. Raises `service_unavailable` if the database cannot be reached or takes too long.
        """
        return await self._retry(lambda: self._read_once(work, tenant))

    async def autocommit(self, work: Callable[[Writer[R]], Awaitable[T]]) -> T:
        """Run `work`, of which each statement commits by itself: for single statements that write, and for short locks.

        Retried like `transact`.
        """
        return await self._retry(lambda: self._autocommit_once(work))

    async def _retry(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Make an attempt, and retry after a conflict, or if the connection was lost before the commit.

        Raises `service_unavailable` for temporary errors, and after `CALLER_TIMEOUT_SECONDS`.
        """
        try:
            async with asyncio.timeout(CALLER_TIMEOUT_SECONDS):
                for _ in range(MAX_ATTEMPTS - 1):
                    try:
                        return await attempt()
                    except CONFLICTS:
                        pass
                    except (psycopg.OperationalError, errors.ReadOnlySqlTransaction) as error:
                        if not is_connection_lost(error):
                            raise
                        await asyncio.shield(self._replace_lost_connections())
                return await attempt()
        except (psycopg.Error, TimeoutError, UncertainCommit) as error:
            if problem := problem_of(error, is_outage_logged=self._receiver.is_unreachable):
                raise problem from error
            # The lines after the first one quote rows, and so addresses and hashes, which must not be logged.
            error.args = (first_line(error),)
            raise

    async def _read_once(self, work: Callable[[Reader[R]], Awaitable[T]], tenant: int | None) -> T:
        if self.tenancy is not None and tenant is not None:
            async with self.transaction(tenant, SNAPSHOT) as tx:
                return await work(tx)
        return await self._autocommit_once(work)

    async def _autocommit_once(self, work: Callable[[Writer[R]], Awaitable[T]]) -> T:
        async def connect() -> OpenConnection:
            return OpenConnection(await self._get_connection(), None)

        writer = Writer(self.resources, connect)
        try:
            return await work(writer)
        finally:
            if writer.opened:
                await self.pool.putconn(writer.opened.connection)

    async def _attempt(
        self, work: Callable[[Tx[R]], Awaitable[T]], tenant: int | None, is_dry_run: bool, can_commit_early: bool
    ) -> T:
        answers: list[T] = []
        with contextlib.suppress(_RollBack):
            async with self.transaction(tenant, can_commit_early=can_commit_early and not is_dry_run) as tx:
                answers.append(await work(tx))
                if is_dry_run:
                    # Wait for statements whose results were not read, so that their errors are raised here.
                    await tx.run("set constraints all immediate")
                    await tx.value("select true")
                    raise _RollBack
        return answers[0]


class _RollBack(Exception):
    """Raised to roll back a dry run."""
