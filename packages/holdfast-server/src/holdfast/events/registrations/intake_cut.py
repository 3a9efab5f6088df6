"""The cut of the intake: a time up to which every accepted registration is committed."""

from psycopg.errors import LockNotAvailable

from holdfast.events.registrations.intake import ADVISORY_LOCK_ID
from holdfast.events.resources import Reader


async def wait_for_cut(reader: Reader, lock_timeout: float) -> str | None:
    """The time when the running accepting transactions have ended. None if that takes longer than `lock_timeout`.

    The exclusive lock waits for them; later ones wait for it, and get a later time.
    """
    try:
        return await reader.value(
            """
            with limited as materialized (select set_config('lock_timeout', %(lock_timeout)s, true)),
                 locked as materialized (select pg_advisory_xact_lock(%(lock)s) from limited)
            select clock_timestamp()::text from locked
            """,
            {"lock": ADVISORY_LOCK_ID, "lock_timeout": f"{round(lock_timeout * 1000)}ms"},
        )
    except LockNotAvailable:
        return None
