"""Deletes what nobody needs any more: rejections 30 days after the event, so that clients have had time to read them,
and the accounts of people who were registered once and are no more.
"""

from holdfast.events.registrations import intake, sql
from holdfast.events.resources import Steps, Tx

PORTION = 5_000
"""Rejections that one transaction deletes."""

WINDOW = 5_000
"""Accounts that are looked at by one statement."""

AT_ONCE = 200
"""Accounts that one transaction deletes: no registration is accepted meanwhile."""


async def forget_rejections(tx: Tx) -> int:
    """Delete a portion of the rejections that are no longer needed. Returns how many were deleted."""
    return await sql.delete_old_rejections(tx, PORTION)


async def forget_registrants(steps: Steps) -> int:
    """Delete the accounts, older than a day, of people who have no registration. Returns how many were deleted.

    Who is registered again by e-mail gets a new account.
    """
    total, last = 0, 0
    while seen := await steps.read(lambda reader, after=last: sql.find_registrants(reader, after, WINDOW)):
        last = max(seen)
        unused = [id for id, is_used in seen.items() if not is_used]
        for start in range(0, len(unused), AT_ONCE):
            total += await steps.transact(lambda tx, ids=unused[start : start + AT_ONCE]: _forget(tx, ids))
    return total


async def _forget(tx: Tx, ids: list[int]) -> int:
    # Exclusive: a registration that is being accepted for one of them is stored first, or finds the account gone.
    await tx.run("select pg_advisory_xact_lock(%(lock)s)", {"lock": intake.LOCK})
    return await sql.delete_registrants(tx, ids)
