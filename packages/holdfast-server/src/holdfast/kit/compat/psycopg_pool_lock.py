"""Removes the lock of psycopg's pool of connections. Written for psycopg_pool 3.3.

The lock protects the pool from other tasks while one hands a connection to a waiting task, which can take a turn of the
event loop. A task that comes meanwhile queues for the lock, and gets it in a turn of its own. Under load a turn takes
tens of milliseconds: a connection that was free was given out after 300 ms. Nothing else that the lock protects waits,
and the pool is correct if other tasks run during such a hand-over. There is no setting without the lock
(docs/upstream.md). It stays while the installed pool holds its lock during a hand-over, as a test shows.
"""

import contextlib
from typing import Any

from psycopg_pool import AsyncConnectionPool

VERSION = "3.3"


def remove_lock(pool: AsyncConnectionPool[Any]) -> None:
    """Remove the lock of a pool that was not opened yet."""
    pool._lock = contextlib.nullcontext()  # type: ignore[assignment] # pyright: ignore[reportPrivateUsage]
