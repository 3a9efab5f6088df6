"""Transactions: their statements in one pipeline, their commits, the tasks that they enqueue, and what their errors
mean for the caller.

A COMMIT that was sent is never cancelled, and is confirmed only if it is as durable as configured. With a synchronous
standby, PostgreSQL commits at once and then waits for the standby. Cancelling that wait makes the change visible,
although the standby may not have it.

The code that enqueues a task gives the task and its arguments. The `part.py` of its noun names its function.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, LiteralString, TypeVar

import psycopg
import structlog
from msgspec import Struct
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, errors
from psycopg.errors import Diagnostic
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.environment.logs import first_line

CLOSE_TIMEOUT_SECONDS = 5
"""Seconds that an ending process waits for commits in progress."""

CALLER_TIMEOUT_SECONDS = 40
"""Seconds that a caller waits for the database."""

CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
UNREACHABLE = (psycopg.OperationalError, errors.ReadOnlySqlTransaction, PoolTimeout, PoolClosed, TooManyRequests)

log = structlog.get_logger()


class UncertainCommit(Exception):
    """A COMMIT was sent, but it is unknown whether its transaction was stored, or was stored durably."""


class Commits:
    """The commits of a process in progress. Each of them completes even if its caller no longer waits."""

    def __init__(self) -> None:
        self._in_progress: dict[asyncio.Task[None], AsyncConnection[Any]] = {}

    async def commit(
        self,
        connection: AsyncConnection[Any],
        stack: contextlib.AsyncExitStack,
        after_commit_attempt: Callable[[], None],
    ) -> None:
        """Commit and return the connection to the pool, by leaving the contexts of the transaction.

        `after_commit_attempt` is called after a commit, and also if its result is unknown, even if no caller waits.
        """
        # The task sets the future itself. With `asyncio.shield` the caller goes on one turn of the event loop later.
        commit_future = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(_commit(stack, after_commit_attempt, commit_future))
        self._in_progress[task] = connection
        task.add_done_callback(partial(self._forget, commit_future))
        await commit_future

    def _forget(self, commit_future: asyncio.Future[None], task: asyncio.Task[None]) -> None:
        """Forget a commit that has ended, and give its error to the caller."""
        del self._in_progress[task]
        error = None if task.cancelled() else task.exception()
        if not commit_future.done():  # else the caller has the result, or no longer waits
            if error:
                commit_future.set_exception(error)
            else:
                commit_future.cancel()

    async def close(self) -> None:
        """Wait for the commits, then shut the sockets of the remaining ones. PostgreSQL continues these commits."""
        if self._in_progress:
            await asyncio.wait(self._in_progress, timeout=CLOSE_TIMEOUT_SECONDS)
        for connection in self._in_progress.values():
            _shut_socket(connection)
        if self._in_progress:
            await asyncio.wait(self._in_progress, timeout=CLOSE_TIMEOUT_SECONDS)
        await end_tasks(self._in_progress)


async def _commit(
    stack: contextlib.AsyncExitStack, after_commit_attempt: Callable[[], None], commit_future: asyncio.Future[None]
) -> None:
    try:
        await stack.aclose()
    except UncertainCommit:
        after_commit_attempt()
        raise
    after_commit_attempt()
    if not commit_future.done():
        commit_future.set_result(None)


def _shut_socket(connection: AsyncConnection[Any]) -> None:
    """Shut the socket of a connection. Its waiters see a lost connection, and no statement is cancelled."""
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)


@contextlib.asynccontextmanager
async def pipelined_transaction(
    connection: AsyncConnection[Any], begin: LiteralString
) -> AsyncGenerator[AsyncPipeline]:
    """A transaction on a connection, with its statements in one pipeline. Raises `UncertainCommit`."""
    warnings: list[str] = []

    def collect_warning(notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary or "")

    commit_sent = False
    try:
        async with connection.pipeline() as pipeline:
            await AsyncCursor(connection).execute(begin)
            yield pipeline
            connection.add_notice_handler(collect_warning)
            commit_sent = True
            commit = await AsyncCursor(connection).execute("commit")
        if commit.statusmessage != "COMMIT":
            # The block caught the error of a statement and continued; then COMMIT rolls back without an error.
            raise psycopg.InternalError("the transaction was rolled back")
    except BaseException as error:
        if isinstance(error, errors.ReadOnlySqlTransaction):
            await connection.close()  # the server was demoted: no transaction can succeed on it
        elif commit_sent and is_connection_lost(error):
            raise UncertainCommit(str(error)) from error
        elif not connection.closed:
            await connection.rollback()
        raise
    finally:
        if commit_sent:
            connection.remove_notice_handler(collect_warning)
    if warnings:
        # PostgreSQL warns during COMMIT when the wait for the standby was cancelled. Any warning is taken as that.
        raise UncertainCommit(warnings[0])


def is_connection_lost(error: BaseException) -> bool:
    """Whether a connection was lost or leads to a demoted server, so that another connection may work."""
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return True
    if not isinstance(error, psycopg.OperationalError) or isinstance(error, PoolTimeout | PoolClosed | TooManyRequests):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def problem_of(error: Exception, *, is_outage_logged: bool) -> Problem | None:
    """What a caller is told of a temporary error of the database; None: it is not temporary. Logs what is unexpected.

    is_outage_logged    whether the log already says that the database is unreachable
    """
    if isinstance(error, CONFLICTS):
        return SERVICE_UNAVAILABLE("Too many others are changing the same thing.", retry_after=1)
    if isinstance(error, errors.LockNotAvailable):
        return SERVICE_UNAVAILABLE("Another caller is still changing the same thing.", retry_after=1)
    if isinstance(error, TimeoutError | errors.QueryCanceled):
        # A statement was too slow, or the database hangs.
        outage = {"is_outage": True} if isinstance(error, TimeoutError) else {}
        log.error("the database took too long", error=first_line(error), **outage)
        return SERVICE_UNAVAILABLE("The database took too long.", retry_after=5)
    if isinstance(error, UncertainCommit):
        log.error("it is not known whether a transaction was stored", error=first_line(error))
        return SERVICE_UNAVAILABLE(
            "The database has not confirmed this. It may have been stored.",
            hint="Send it again with the same idempotency key, or look before you send it again.",
            retry_after=1,
        )
    if isinstance(error, UNREACHABLE):
        if not is_outage_logged:
            log.warning("database unavailable", error=first_line(error), is_outage=True)
        return SERVICE_UNAVAILABLE("The database cannot be reached right now.", retry_after=1)
    return None


A = TypeVar("A", bound=Struct)

TASKS_CHANNEL: LiteralString = "tasks"
"""The channel on which delayed tasks are announced."""

JOBS_CHANNEL: LiteralString = "procrastinate_any_queue_v1"
"""The channel of PostgreSQL on which the job library announces each stored job."""

ENQUEUE_TASK: LiteralString = "select enqueue_task(%(name)s, %(arguments)s::jsonb, %(delay)s)"


@dataclass(frozen=True)
class Task(Generic[A]):
    """A kind of work, and the type of its arguments."""

    name: str
    arguments: type[A]


class EnqueuedTask(Struct, Generic[A]):
    """A task as it is stored: the tenant whose rows it may use, and its arguments."""

    tenant: int | None
    arguments: A
