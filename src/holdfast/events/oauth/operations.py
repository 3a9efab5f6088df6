"""What can be done with the subjects of authorization servers."""

import structlog

from holdfast.events.oauth import sql
from holdfast.events.oauth.model import Account, LinkedSubject, LinkSubject, ListSubjects, UnlinkSubject, fingerprint
from holdfast.events.organizers.accounts import end_access
from holdfast.events.resources import Tx
from holdfast.kit import keys
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, Problem, invalid

find_callers = sql.find_callers

log = structlog.get_logger()


async def link_by_email(tx: Tx, issuer: str, subject: str, email: str) -> int:
    """Link a subject to the organizer with an address that the issuer verified. Returns the organizer's id.

    A new link ends what let others act for the organizer: keys, password, sessions, connected apps. Whoever registered
    the address may not own it. An existing link is kept. Raises `forbidden` if the address belongs to no organizer, if
    the organizer already has a subject of the issuer, or if the subject was unlinked before.
    """
    account = await sql.find_account(tx, email)
    if account and account.is_organizer and await sql.link_by_email(tx, issuer, subject, account.id, email):
        ended = await end_access(tx, account.id)
        log.warning("keys ended by the first link of a verified address", organizer=account.slug, keys=ended)
    hash = fingerprint(issuer, subject)
    linked = await sql.find_linked(tx, hash)
    if linked and linked.is_organizer:
        return linked.id
    if await sql.is_known(tx, hash):
        raise FORBIDDEN(
            f"The access token is of {subject!r}, who acts for no organizer any more.",
            hint="Ask the operator to link it to one.",
        )
    raise _strange(account, subject, email)


def _strange(account: Account | None, subject: str, email: str) -> Problem:
    """The problem that says why an address does not link a subject, and what can be done."""
    if account is None:
        return FORBIDDEN(
            f"The access token is of {subject!r}, and no organizer is registered with {email}.",
            hint="Register one with that address at POST /api/organizers/register, or ask the operator to link it.",
        )
    if not account.is_organizer:
        return FORBIDDEN(
            f"The access token is of {subject!r}, and {email} belongs to an account that is no organizer.",
            hint="No organizer can be registered with that address. Register one with another address, and ask the "
            "operator to link it.",
        )
    return FORBIDDEN(
        f"The access token is of {subject!r}, and the organizer with the address {email} has another subject of this "
        "authorization server.",
        hint="Sign in there as you did before, or ask the operator to link it.",
    )


async def link(tx: Tx, issuer: str, command: LinkSubject) -> Account:
    """Link a subject of an issuer to an organizer, as an operator asks. Returns the organizer.

    Raises `not_found` if there is no such organizer, and `validation_failed` if the subject is linked to another one
    and the command does not ask to move it.
    """
    organizer = await _organizer(tx, command.slug)
    await sql.link(tx, issuer, command.subject, organizer.id, move=command.move)
    hash = fingerprint(issuer, command.subject)
    linked = await sql.find_linked(tx, hash)
    assert linked
    if linked.id != organizer.id:
        raise invalid({"subject": [f"is linked to {linked.slug}; --move takes it from there"]})
    await tx.revoke(keys.CHANNEL, hash.hex())
    return organizer


async def unlink(tx: Tx, issuer: str, command: UnlinkSubject) -> Account:
    """End the link of a subject, as an operator asks. Returns the organizer. Only an operator can link it again.

    Raises `not_found` if the subject is not linked.
    """
    hash = fingerprint(issuer, command.subject)
    linked = await sql.find_linked(tx, hash)
    if linked is None:
        raise NOT_FOUND(f"{command.subject} of {issuer} is not linked.")
    await sql.unlink(tx, hash)
    await tx.revoke(keys.CHANNEL, hash.hex())
    return linked


async def subjects(tx: Tx, command: ListSubjects) -> list[LinkedSubject]:
    """The subjects that act for an organizer, oldest link first. Raises `not_found` if there is no such organizer."""
    return await sql.list_subjects(tx, (await _organizer(tx, command.slug)).id)


async def _organizer(tx: Tx, slug: str) -> Account:
    organizer = await sql.find_organizer(tx, slug)
    if organizer is None:
        raise NOT_FOUND(f"No organizer has the slug {slug}.")
    return organizer
