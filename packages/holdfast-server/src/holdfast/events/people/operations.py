"""The operations on one person's data: exporting and erasing it.

A person is an account that is not an organizer. Erasing removes the identity: the address, the names, the mails, and
the handle that others know. Registrations stay for the organizer's counts and amounts, on an account without an
identity (decision 41).

Every visitor can register an organizer with the address of a person. Until the person confirms the organizer, it is
exported with the person, and ends when the address is erased (decision 67).

An organizer is joined with the person who has the same address, when the owner of the address confirms the organizer.
The account of the organizer stays, with its keys, its events and its id. It gets the public id of the person, which is
in mails and answers, and with it the registrations. The other account is left without an address, like accounts of
erased people.
"""

from collections.abc import Awaitable, Callable

from holdfast.accounts import known_browsers, sessions
from holdfast.accounts.signin import links
from holdfast.accounts.stopped_mails import mailboxes
from holdfast.events.people import sql
from holdfast.events.people.model import (
    AccountRow,
    AccountSelector,
    AddressHolders,
    AffectedRegistration,
    Erasure,
    Export,
    ExportedAccount,
    ExportedMail,
    ExportedOrganizer,
    ExportedSession,
    shared_account_refusal,
)
from holdfast.events.registrations.people_in_answers import erase_answers
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats import held_seats
from holdfast.events.users.operations import find_free_public_id
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.mail import mail_lists, outbox
from holdfast.kit.mail.mail_lists import RecipientMail

ANNOUNCEMENT_LOCK = 0x74656C6C
"""Advisory lock ("tell"): shared while announcements become mails, exclusive while the mails to a person are deleted.
So no mail is stored later by a statement that has read the address before."""


async def export(reader: Reader, selector: AccountSelector) -> Export:
    """All stored data about a person. Raises `not_found`, and `forbidden` for an organizer."""
    holders, address = await _find_holders(reader, selector)
    account = holders.account
    mails = await mail_lists.mails_to(reader, address)
    if holders.is_unknown and not mails:
        raise _not_found(selector)
    return Export(
        exported_at=await sql.now(reader),
        account=_account(account) if account else None,
        unconfirmed_organizer=await _organizer(reader, holders.organizer) if holders.organizer else None,
        registrations=await sql.list_registrations(reader, account.id) if account else [],
        payments=await sql.list_payments(reader, account.id) if account else [],
        mails=[_mail(mail) for mail in mails],
        mails_stopped_at=await mailboxes.find_stopped_at(reader, address),
        sessions=[
            ExportedSession(session.sign_in_way, session.browser, session.began_at, session.seen_at)
            for holder in holders
            for session in await sessions.list_open(reader, holder.id)
        ],
        sign_in_links=await links.list_requested(reader, address),
    )


async def preview(reader: Reader, selector: AccountSelector) -> Erasure:
    """The result that `erase` would have. Raises `not_found`, and `forbidden` for an organizer."""
    holders, address = await _find_holders(reader, selector)
    mails = await mail_lists.count_mails_to(reader, address)
    if holders.is_unknown and not mails:
        raise _not_found(selector)
    registrations = await sql.list_affected(reader, holders.account.id) if holders.account else []
    return _erasure(holders, registrations, mails)


async def erase(tx: Tx, selector: AccountSelector, end_organizer: Callable[[Tx, int], Awaitable[None]]) -> Erasure:
    """Erase all of a person's data; on an error, erase nothing. Returns the result.

    Registrations for events to come are removed, and their seats go to the next person. The others stay, on an account
    without an address and a name. A person who registers with the address later gets a new account. Raises `not_found`,
    also for a person who was erased before, and `forbidden` for an organizer.

    It takes locks in this order: links to sign in, the person's events in the order of their ids, the account, its
    registrations, `ANNOUNCEMENT_LOCK`. Signing in locks the link and then the account. Giving a seat that has to be
    paid locks the event and then the account. Accepting registrations locks events `for key share`, which does not wait
    for these locks.

    end_organizer    ends an unconfirmed organizer with the address, and removes its address
    """
    holders, address = await _find_holders(tx, selector)
    await links.forget(tx, address)
    locked_holders = None
    while locked_holders != holders:  # also accounts that came in between
        locked_holders = holders
        if locked_holders.account:
            await sql.lock_events(tx, locked_holders.account.id)
        for holder in locked_holders:
            await sql.lock(tx, AccountSelector(id=holder.id))
        holders, _ = await _find_holders(tx, selector)
    if holders.organizer:
        await end_organizer(tx, holders.organizer.id)
    registrations = await _erase_account(tx, holders.account) if holders.account else []
    await tx.run("select pg_advisory_xact_lock(%(lock)s)", {"lock": ANNOUNCEMENT_LOCK})
    mails = await outbox.forget_recipient(tx, address)
    if holders.is_unknown and not mails:
        raise _not_found(selector)
    return _erasure(holders, registrations, mails)


async def _erase_account(tx: Tx, account: AccountRow) -> list[AffectedRegistration]:
    """Erase an account that is locked. Returns its registrations as they were."""
    await sessions.end(tx, account.id)
    await known_browsers.forget_browsers_of(tx, [account.id])
    await sql.lock_events(tx, account.id)  # also the events of registrations that came in between
    registrations = await sql.list_affected(tx, account.id)
    await erase_answers(tx, account.id)
    await sql.delete_personal_details(tx, account.id)
    await sql.delete_registrations(
        tx,
        account.id,
        [
            registration.event_id
            for registration in registrations
            if registration.is_to_come or registration.status == "rejected"
        ],
    )
    await sql.delete_nonces(tx, account.id)
    await held_seats.refill_seats(
        tx,
        [registration.event_id for registration in registrations if registration.is_to_come and registration.has_seat],
    )
    await sql.erase_account(tx, account.id, await find_free_public_id(tx))
    return registrations


def _erasure(holders: AddressHolders, registrations: list[AffectedRegistration], mails: int) -> Erasure:
    settled_registrations = [registration for registration in registrations if registration.status != "rejected"]
    cancelled_registrations = [registration for registration in settled_registrations if registration.is_to_come]
    account, organizer = holders.account, holders.organizer
    return Erasure(
        account.id if account else None,
        cancelled_registrations,
        len(settled_registrations) - len(cancelled_registrations),
        mails,
        organizer.slug if organizer else None,
    )


async def _find_holders(reader: Reader, selector: AccountSelector) -> tuple[AddressHolders, str]:
    """The accounts with the address of the named account, and the address, to which mails were sent.

    Raises `not_found` if the account does not exist, unless it is named by address, and `forbidden` for an organizer.
    """
    address = selector.email
    if address is None:
        account = await sql.find(reader, selector)
        if account is None:
            raise _not_found(selector)
        address = account.email
    holders = await sql.find_holders(reader, address)
    if holders.account and not holders.account.is_persons:
        raise shared_account_refusal(holders.account)
    return holders, address


async def _organizer(reader: Reader, account: AccountRow) -> ExportedOrganizer | None:
    organizer = await sql.export_organizer(reader, account.id)
    if organizer:
        organizer.events = await sql.list_events(reader, account.id)
    return organizer


def _not_found(selector: AccountSelector) -> Exception:
    if selector.email is not None:
        return NOT_FOUND(f"Nothing is stored about {selector.email}.")
    return NOT_FOUND("No account has this number, or its data was erased.")


def _account(account: AccountRow) -> ExportedAccount:
    return ExportedAccount(account.public_id, account.email, account.name, account.inserted_at, account.proved_at)


def _mail(mail: RecipientMail) -> ExportedMail:
    return ExportedMail(
        kind=mail.kind,
        event_id=mail.arguments.get("event_id"),
        caused_at=mail.inserted_at,
        outcome=mail.outcome or "waiting",
        ended_at=mail.ended_at,
        attempts=mail.attempts,
        error=mail.error,
    )


async def join_organizer(tx: Tx, organizer_id: int) -> None:
    """Move the identity and the registrations of a person to the unproved organizer with the same address.

    Afterwards the organizer can be proved: no other account gets the address until the transaction ends. Locks the
    account of the organizer first, then takes the other locks in the order of `erase`.
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
