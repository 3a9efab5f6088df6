"""A pipeline of psycopg in which each statement is followed by a Sync, and is sent at once. Written for psycopg 3.3.

After a Sync, the server applies its idle timeout. Without it, a stalled process keeps its locks until it wakes, and a
process may stall between any two writes. `AsyncPipeline.sync` sends a Sync too, but in a write of its own; and its
`fetch` sends a Flush, which ends the idle timeout.

In a process whose turns of the event loop take long, psycopg waits a turn before each statement that it sends, while
the transaction holds its locks. `kit/http/pace.py` keeps turns short.
"""

import math
from collections.abc import Generator
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, waiting
from psycopg.generators import send

T = TypeVar("T")

VERSION = "3.3"

waiting.MAX_BUSY_TIME = math.inf


class SyncingCursor(AsyncCursor[T]):
    """A cursor that sends a Sync with each statement of a pipeline, in the same write."""

    def _maybe_prepare_gen(self, *args: Any, **options: Any) -> Generator[Any, Any, Any]:
        key = yield from super()._maybe_prepare_gen(*args, **options)
        if pipeline := self._conn._pipeline:  # pyright: ignore[reportPrivateUsage]
            put, pgconn = pipeline.command_queue.pop(), self._conn.pgconn

            def send_both() -> None:
                # The first call fills a buffer, and the second sends both.
                put()
                pgconn.pipeline_sync()

            pipeline.command_queue.append(send_both)
            pipeline.result_queue.append(None)
        return key


async def wait_for_answer(connection: AsyncConnection[Any]) -> None:
    """Wait for the answers to the statements that were sent, without a Flush."""
    if pipeline := connection._pipeline:  # pyright: ignore[reportPrivateUsage]
        async with connection.lock:
            await connection.wait(_read_answers(pipeline))


def _read_answers(pipeline: AsyncPipeline) -> Generator[Any, Any, None]:
    yield from send(pipeline.pgconn)
    yield from pipeline._fetch_gen(flush=False)  # pyright: ignore[reportPrivateUsage]
