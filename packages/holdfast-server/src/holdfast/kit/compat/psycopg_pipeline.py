"""A pipeline of psycopg in which each statement is followed by a Sync, and is sent at once. Written for psycopg 3.3.

After a Sync, the server applies its idle timeout. Without it, a stalled process keeps its locks until it wakes, and a
process may stall between any two writes. `AsyncPipeline.sync` sends a Sync too, but in a write of its own; and its
`fetch` sends a Flush, which ends the idle timeout (docs/upstream.md). It stays for safety: decision 8 promises that a
process that stalls between two statements is cut off after 10 s.

psycopg counts a statement as prepared as soon as Parse was sent for it. In a transaction that has failed, Parse fails
too. The server does not know the statement then, and each later use of it on this connection would fail.

In a process whose turns of the event loop take long, psycopg waits a turn before each statement that it sends, while
the transaction holds its locks. `kit/http/request_pace.py` keeps turns short.
"""

import math
from collections.abc import Generator
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, _queries, waiting
from psycopg._preparing import Key
from psycopg._queries import PostgresQuery
from psycopg.generators import send
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

T = TypeVar("T")

VERSION = "3.3"

waiting.MAX_BUSY_TIME = math.inf

# Above it, psycopg reads a statement for its parameters each time that it runs. The statements of pages are longer.
_queries.MAX_CACHED_STATEMENT_LENGTH = 16_384


class SyncingCursor(AsyncCursor[T]):
    """A cursor that sends a Sync with each statement of a pipeline, in the same write."""

    _newly_prepared: Key | None = None
    """The statement, if this cursor is the first one that uses it as prepared."""

    def _maybe_prepare_gen(self, query: PostgresQuery, *args: Any, **options: Any) -> Generator[Any, Any, Any]:
        prepared = self._conn._prepared  # pyright: ignore[reportPrivateUsage]
        names, key = prepared._names, prepared.key(query)  # pyright: ignore[reportPrivateUsage]
        was_prepared = key in names
        yield from super()._maybe_prepare_gen(query, *args, **options)
        self._newly_prepared = key if key in names and not was_prepared else None
        if pipeline := self._conn._pipeline:  # pyright: ignore[reportPrivateUsage]
            put, pgconn = pipeline.command_queue.pop(), self._conn.pgconn

            def send_both() -> None:
                # The first call fills a buffer, and the second sends both.
                put()
                pgconn.pipeline_sync()

            pipeline.command_queue.append(send_both)
            pipeline.result_queue.append(None)

    def _check_results(self, results: list[PGresult]) -> None:
        # What follows a Parse that failed is skipped, up to the Sync.
        if self._newly_prepared and results and results[0].status == ExecStatus.PIPELINE_ABORTED:
            self._conn._prepared._names.pop(self._newly_prepared, None)  # pyright: ignore[reportPrivateUsage]
        super()._check_results(results)


async def wait_for_answer(connection: AsyncConnection[Any]) -> None:
    """Wait for the answers to the statements that were sent, without a Flush."""
    if pipeline := connection._pipeline:  # pyright: ignore[reportPrivateUsage]
        async with connection.lock:
            await connection.wait(_read_answers(pipeline))


def _read_answers(pipeline: AsyncPipeline) -> Generator[Any, Any, None]:
    yield from send(pipeline.pgconn)
    yield from pipeline._fetch_gen(flush=False)  # pyright: ignore[reportPrivateUsage]
