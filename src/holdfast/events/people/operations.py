"""What can be done with one person's data: export it, and erase it.

A person is an account that is no organizer. Erased is what says who somebody is: the address, the names, the mails, and
the handle that others know. Registrations stay for the organizer's counts and amounts, as those of an account that is
nobody's (`docs/decisions/0041-*.md`).
"""

from holdfast.accounts import sessions
from holdfast.accounts.signin import links
from holdfast.events.people import sql
from holdfast.events.people.model import (
    Account,
    Erasure,
    Export,
    ExportedAccount,
    ExportedMail,
    ExportedSession,
    Given,
    Named,
    refused,
)
from holdfast.events.registrations import seating
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import new_public_ids
from holdfast.kit import outbox
from holdfast.kit.outbox import Received
from holdfast.kit.problems import NOT_FOUND

TELLING = 0x74656C6C
"""Advisory lock ("tell"): shared while announcements become mails, exclusive while the mails to a person are deleted.
So no mail is stored later by a statement that has read the address before."""


async def export(reader: Reader, named: Named) -> Export:
    """Everything that is stored about a person. Raises `not_found`, and `forbidden` for an organizer."""
    account = await sql.find(reader, named)
    if account and account.role != "user":
        raise refused(account)
    mails = await outbox.mails_to(reader, _address(account, named))
    if account is None and not mails:
        raise _nobody(named)
    return Export(
        exported_at=await sql.now(reader),
        account=_account(account) if account else None,
        registrations=await sql.list_registrations(reader, account.id) if account else [],
        payments=await sql.list_payments(reader, account.id) if account else [],
        mails=[_mail(each) for each in mails],
        sessions=[
            ExportedSession(each.way, each.browser, each.began_at, each.seen_at)
            for each in (await sessions.list_open(reader, account.id) if account else ())
        ],
        sign_in_links=await links.list_asked(reader, _address(account, named)),
    )


async def preview(reader: Reader, named: Named) -> Erasure:
    """What `erase` would do. Raises `not_found`, and `forbidden` for an organizer."""
    account = await sql.find(reader, named)
    if account and account.role != "user":
        raise refused(account)
    mails = await outbox.count_mails_to(reader, _address(account, named))
    if account is None and not mails:
        raise _nobody(named)
    return _erasure(account, await sql.list_given(reader, account.id) if account else [], mails)


async def erase(tx: Tx, named: Named) -> Erasure:
    """Erase a person's data: all of it, or with an error nothing. Returns what was done.

    Registrations for events to come are removed, and their seats go to the next in line. The others stay, of an account
    without an address and a name. Whoever registers with the address later gets a new account. Raises `not_found`, also
    for somebody who was erased before, and `forbidden` for an organizer.

    Locks are taken in this order: links to sign in, the account, its events in the order of their ids, its
    registrations, `TELLING`. Who signs in locks the link and then the account. What accepts registrations locks events
    only as far as this does not exclude it; all others that lock an event need no account after it.
    """
    address = _address(await sql.find(tx, named), named)
    await links.forget(tx, address)
    account = await sql.lock(tx, named)
    if account is None and named.email is None:
        raise _nobody(named)
    if account and account.role != "user":
        raise refused(account)
    given = await _erase_account(tx, account) if account else []
    await tx.run("select pg_advisory_xact_lock(%(lock)s)", {"lock": TELLING})
    mails = await outbox.forget_recipient(tx, address)
    if account is None and not mails:
        raise _nobody(named)
    return _erasure(account, given, mails)


async def _erase_account(tx: Tx, account: Account) -> list[Given]:
    """Erase an account that is locked. Returns its registrations as they were."""
    await sessions.end(tx, account.id)
    await sql.lock_events(tx, account.id)
    given = await sql.list_given(tx, account.id)
    await sql.forget_what_was_told(tx, account.id)
    await sql.delete_registrations(
        tx, account.id, [each.event_id for each in given if each.is_to_come or each.status == "rejected"]
    )
    await seating.pass_on(tx, [each.event_id for each in given if each.is_to_come and each.status == "registered"])
    await sql.erase_account(tx, account.id, new_public_ids(1)[0])
    return given


def _erasure(account: Account | None, given: list[Given], mails: int) -> Erasure:
    settled = [each for each in given if each.status != "rejected"]
    cancelled = [each for each in settled if each.is_to_come]
    return Erasure(account.id if account else None, cancelled, len(settled) - len(cancelled), mails)


def _address(account: Account | None, named: Named) -> str:
    """The address that mails were sent to."""
    return account.email if account else named.email or ""


def _nobody(named: Named) -> Exception:
    if named.email is not None:
        return NOT_FOUND(f"Nothing is stored about {named.email}.")
    return NOT_FOUND("No account has this number, or its data was erased.")


def _account(account: Account) -> ExportedAccount:
    return ExportedAccount(account.public_id, account.email, account.name, account.inserted_at, account.proved_at)


def _mail(mail: Received) -> ExportedMail:
    return ExportedMail(
        kind=mail.kind,
        event_id=mail.arguments.get("event_id"),
        caused_at=mail.inserted_at,
        outcome=mail.outcome or "waiting",
        ended_at=mail.ended_at,
        attempts=mail.attempts,
        error=mail.error,
    )
