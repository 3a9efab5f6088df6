"""Commits: a COMMIT that was sent is never cancelled, and is confirmed only if it is as durable as configured.

With a synchronous standby, PostgreSQL commits at once and then waits for the standby. Whoever cancels that wait makes
the change visible, although the standby may not have it.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, errors
from psycopg.errors import Diagnostic
from psycopg.generators import send
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from holdfast.kit.ending import end

T = TypeVar("T")

END_SECONDS = 5
"""Seconds that a process which ends waits for commits that are under way."""


class MaybeCommitted(Exception):
    """A COMMIT was sent, and its transaction may have been stored, or stored without being durable."""


class Commits:
    """The commits of a process that are under way. Each ends by itself, also if nobody waits for it any more."""

    def __init__(self) -> None:
        self._under_way: dict[asyncio.Task[None], AsyncConnection[Any]] = {}

    async def finish(
        self, connection: AsyncConnection[Any], stack: contextlib.AsyncExitStack, committed: Callable[[], None]
    ) -> None:
        """Commit, and give the connection back, by leaving the contexts that the transaction was opened in.

        Then `committed` is called, also if nobody waits any more, or if it is not known whether it was stored.
        """
        task = asyncio.create_task(_finish(stack, committed))
        self._under_way[task] = connection
        task.add_done_callback(self._finished)
        await asyncio.shield(task)

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        if not task.cancelled():
            task.exception()  # its caller has it, or has gone

    async def close(self) -> None:
        """Wait a while for the commits; cut the connections of those that are left. PostgreSQL goes on with them."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=END_SECONDS)
        for connection in self._under_way.values():
            _cut(connection)
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=END_SECONDS)
        await end(self._under_way)


async def _finish(stack: contextlib.AsyncExitStack, committed: Callable[[], None]) -> None:
    try:
        await stack.aclose()
    except MaybeCommitted:
        committed()
        raise
    committed()


def _cut(connection: AsyncConnection[Any]) -> None:
    """Close the socket below a connection. Whoever waits for it sees that it is lost, and nothing is cancelled."""
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as below:
        below.shutdown(socket.SHUT_RDWR)


@contextlib.asynccontextmanager
async def pipelined(connection: AsyncConnection[Any], begin: LiteralString) -> AsyncGenerator[AsyncPipeline]:
    """A transaction on a connection, its statements in one pipeline. Raises `MaybeCommitted`."""
    warnings: list[str] = []

    def hear(notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary or "")

    sent = False
    try:
        async with connection.pipeline() as pipeline:
            await AsyncCursor(connection).execute(begin)
            yield pipeline
            connection.add_notice_handler(hear)
            sent = True
            commit = await AsyncCursor(connection).execute("commit")
        if commit.statusmessage != "COMMIT":
            # The code caught the error of a statement and went on; COMMIT then rolls back without an error.
            raise psycopg.InternalError("the transaction was rolled back")
    except BaseException as error:
        if isinstance(error, errors.ReadOnlySqlTransaction):
            await connection.close()  # the server was demoted: no transaction succeeds there any more
        elif sent and is_lost(error):
            raise MaybeCommitted(str(error)) from error
        elif not connection.closed:
            await connection.rollback()
        raise
    finally:
        if sent:
            connection.remove_notice_handler(hear)
    if warnings:
        # Somebody has cancelled the wait for the standby.
        raise MaybeCommitted(warnings[0])


class Synced(AsyncCursor[T]):
    """The cursor of a pool's connections. It sends a Sync with each statement of a pipeline, by the same write.

    After a Sync the server applies its idle timeout. Without it, a process that stalls keeps what it has locked until
    it wakes up, and a process may stall between any two writes.
    """

    def _maybe_prepare_gen(self, *args: Any, **options: Any) -> Generator[Any, Any, Any]:
        key = yield from super()._maybe_prepare_gen(*args, **options)
        if pipeline := self._conn._pipeline:  # pyright: ignore[reportPrivateUsage]
            put, pgconn = pipeline.command_queue.pop(), self._conn.pgconn

            def send_both() -> None:
                # The first is kept in a buffer, and the second sends both.
                put()
                pgconn.pipeline_sync()

            pipeline.command_queue.append(send_both)
            pipeline.result_queue.append(None)
        return key


async def answered(connection: AsyncConnection[Any]) -> None:
    """Wait for the answer to what was sent. Fetched without this, it would be asked for by a Flush, which ends the idle
    timeout.
    """
    if pipeline := connection._pipeline:  # pyright: ignore[reportPrivateUsage]
        async with connection.lock:
            await connection.wait(_answers(pipeline))


def _answers(pipeline: AsyncPipeline) -> Generator[Any, Any, None]:
    yield from send(pipeline.pgconn)
    yield from pipeline._fetch_gen(flush=False)  # pyright: ignore[reportPrivateUsage]


def is_lost(error: BaseException) -> bool:
    """Whether a connection was lost, or leads to a server that was demoted: another one may be good."""
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return True
    if not isinstance(error, psycopg.OperationalError) or isinstance(error, PoolTimeout | PoolClosed | TooManyRequests):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))
