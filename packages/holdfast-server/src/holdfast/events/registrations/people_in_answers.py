"""The people in stored answers, who can be erased from them."""

from holdfast.events.registrations.model import AcceptedRegistration
from holdfast.events.resources import Tx
from holdfast.kit.operations import idempotency
from holdfast.kit.operations.idempotency import Idempotency, PeopleInAnswers


def person_of(answer: object) -> str | None:
    """The public id of the person that an answer is about; None: it is about no person."""
    return answer.next.url.rpartition("/")[2] if isinstance(answer, AcceptedRegistration) else None


PEOPLE_IN_ANSWERS = PeopleInAnswers(
    person_of, "select public_id from users where public_id = any(%(people)s) order by id for key share skip locked"
)
"""The people in stored answers: such an answer has the public id of the person, and the nonce that opens the
commitment in the public log.

Erasing locks the account first, and replaces its public id. So an answer is stored before that, or not at all.
"""

IDEMPOTENCY = Idempotency(people=PEOPLE_IN_ANSWERS)


async def erase_answers(tx: Tx, user_id: int) -> None:
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
