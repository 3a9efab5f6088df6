"""Deletes what is no longer needed: rejections 30 days after the event, accounts of people who have no registration
and no payment, and stored answers about people who are erased.

The answer to a registration has the public id of the person, and the nonce that opens the commitment in the public log.
"""

from holdfast.events.registrations import sql
from holdfast.events.registrations.model import Accepted
from holdfast.events.resources import Steps, Tx
from holdfast.events.seats import intake
from holdfast.kit.running import idempotency
from holdfast.kit.running.idempotency import PeopleInAnswers

REJECTION_BATCH_SIZE = 5_000
"""Rejections that one transaction deletes."""

ACCOUNT_SCAN_SIZE = 5_000
"""Accounts that one statement reads."""

ACCOUNT_BATCH_SIZE = 200
"""Accounts that one transaction deletes. No registration is accepted during that transaction."""


async def forget_rejections(tx: Tx) -> int:
    """Delete a batch of the rejections that are no longer needed. Returns the number deleted."""
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
            total += await steps.transact(lambda tx, ids=unused[start : start + ACCOUNT_BATCH_SIZE]: _forget(tx, ids))
    return total


async def _forget(tx: Tx, ids: list[int]) -> int:
    # Exclusive: a registration that is being accepted for one of them is stored first, or its account is gone.
    await tx.run("select pg_advisory_xact_lock(%(lock)s)", {"lock": intake.ADVISORY_LOCK_ID})
    return await sql.delete_registrants(tx, ids)


def person_of(answer: object) -> str | None:
    """The public id of the person that an answer is about; None: it is about no person."""
    return answer.next.url.rpartition("/")[2] if isinstance(answer, Accepted) else None


PEOPLE_IN_ANSWERS = PeopleInAnswers(
    person_of, "select public_id from users where public_id = any(%(people)s) order by id for key share skip locked"
)
"""Erasing locks the account first, and replaces its public id. So an answer is stored before that, or not at all."""


async def forget_answers(tx: Tx, user_id: int) -> None:
    """Erase the stored answers about a person whose account is locked, under each public id that it had."""
    public_ids = await tx.tuples(
        """
        select public_id from users where id = %(user_id)s
         union
        select logged_as from registrations where user_id = %(user_id)s and logged_as is not null
        """,
        {"user_id": user_id},
    )
    await idempotency.forget_people(tx, [public_id for (public_id,) in public_ids])
