"""What whoever uses the database is told of errors that may pass with time, and when it takes too long."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import psycopg
import structlog
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from holdfast.kit.commits import MaybeCommitted
from holdfast.kit.logs import first_line
from holdfast.kit.problems import SERVICE_UNAVAILABLE

DEADLINE = 40
"""The most seconds that a caller waits for the database."""

CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
UNREACHABLE = (psycopg.OperationalError, errors.ReadOnlySqlTransaction, PoolTimeout, PoolClosed, TooManyRequests)

log = structlog.get_logger()


@contextlib.asynccontextmanager
async def in_time(is_away: Callable[[], bool]) -> AsyncGenerator[None]:
    """Raise `service_unavailable` for errors that may pass with time, and after `DEADLINE` seconds.

    is_away    whether it was logged already that the database is away
    """
    try:
        async with asyncio.timeout(DEADLINE):
            yield
    except CONFLICTS as error:
        raise SERVICE_UNAVAILABLE("Too many others are changing the same thing.", retry_after=1) from error
    except errors.LockNotAvailable as error:
        raise SERVICE_UNAVAILABLE("Somebody else is still changing the same thing.", retry_after=1) from error
    except (TimeoutError, errors.QueryCanceled) as error:
        log.error("the database took too long", error=first_line(error))
        raise SERVICE_UNAVAILABLE("The database took too long.", retry_after=5) from error
    except MaybeCommitted as error:
        log.error("it is not known whether a transaction was stored", error=first_line(error))
        raise SERVICE_UNAVAILABLE(
            "The database has not confirmed this. It may have been stored.",
            hint="Send it again with the same idempotency key, or look before you send it again.",
            retry_after=1,
        ) from error
    except UNREACHABLE as error:
        if not is_away():
            log.warning("database unavailable", error=first_line(error))
        raise SERVICE_UNAVAILABLE("The database cannot be reached right now.", retry_after=1) from error
    except psycopg.Error as error:
        # The lines after the first quote rows, and so addresses and hashes, which must not be logged.
        error.args = (first_line(error),)
        raise
