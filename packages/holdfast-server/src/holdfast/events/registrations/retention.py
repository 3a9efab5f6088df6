"""The deletion of what is no longer needed of registrations."""

from holdfast.events.registrations import sql
from holdfast.events.resources import Steps, Tx
from holdfast.events.seats import intake

REJECTION_BATCH_SIZE = 5_000
"""Rejections that one transaction deletes."""

ACCOUNT_SCAN_SIZE = 5_000
"""Accounts that one statement reads."""

ACCOUNT_BATCH_SIZE = 200
"""Accounts that one transaction deletes. No registration is accepted during that transaction."""


async def forget_rejections(tx: Tx) -> int:
    """Delete a batch of rejections, 30 days after their events. Returns the number deleted."""
    return await sql.delete_old_rejections(tx, REJECTION_BATCH_SIZE)


async def forget_registrants(steps: Steps) -> int:
    """Delete the accounts, older than a day, of people without registration and payment. Returns the number deleted.

    A person who is registered again by e-mail gets a new account.
    """
    total, last = 0, 0
    while registrants := await steps.read(
        lambda reader, after=last: sql.find_registrants(reader, after, ACCOUNT_SCAN_SIZE)
    ):
        last = max(registrants)
        unused = [id for id, is_used in registrants.items() if not is_used]
        for start in range(0, len(unused), ACCOUNT_BATCH_SIZE):
            total += await steps.transact(
                lambda tx, ids=unused[start : start + ACCOUNT_BATCH_SIZE]: _delete_registrants(tx, ids)
            )
    return total


async def _delete_registrants(tx: Tx, ids: list[int]) -> int:
    # Exclusive: a registration that is being accepted for one of them is stored first, or its account is gone.
    await tx.run("select pg_advisory_xact_lock(%(lock)s)", {"lock": intake.ADVISORY_LOCK_ID})
    return await sql.delete_registrants(tx, ids)
