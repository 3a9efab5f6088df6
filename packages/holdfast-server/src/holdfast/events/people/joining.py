"""Joins an organizer with the person who has the same address, when the owner of the address confirms the organizer.

The account of the organizer stays, with its keys, its events and its id. It gets the public id of the person, which is
in mails and answers, and with it the registrations. The other account is left without an address, like accounts of
erased people.
"""

from holdfast.accounts import sessions
from holdfast.events.people import sql
from holdfast.events.people.model import AccountRow, AccountSelector
from holdfast.events.resources import Tx
from holdfast.events.users.public_ids import find_free_public_id


async def join(tx: Tx, organizer_id: int) -> None:
    """Move the identity and the registrations of a person to the unproved organizer with the same address.

    Afterwards the organizer can be proved: no other account gets the address until the transaction ends. Locks the
    account of the organizer first, then takes the other locks in the order of `operations.erase`.
    """
    organizer = await sql.lock(tx, AccountSelector(id=organizer_id))
    if organizer is None or organizer.is_owner:
        return
    person = await _lock_person(tx, organizer.email)
    if person:
        await sql.move_identity(tx, person.id, organizer_id, await find_free_public_id(tx))
        await sessions.hand_over(tx, person.id, organizer_id)


async def _lock_person(tx: Tx, email: str) -> AccountRow | None:
    """Lock the account of the person with an address, and its events. Returns the account; None if there is none."""
    selector = AccountSelector(email=email)
    while True:
        # If there is none, one is inserted and deleted again: a transaction that registers the address now must wait.
        fresh_id = await sql.insert_person(tx, email, await find_free_public_id(tx))
        if fresh_id is not None:
            await sql.delete_person(tx, fresh_id)
            return None
        if account := await sql.find(tx, selector):
            await sql.lock_events(tx, account.id)
        if person := await sql.lock(tx, selector):
            await sql.lock_events(tx, person.id)  # also the events of registrations that came in between
            return person
