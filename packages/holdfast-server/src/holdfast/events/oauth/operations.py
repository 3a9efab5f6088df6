"""The operations on the subjects of authorization servers."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.events.oauth import sql
from holdfast.events.oauth.model import (
    LinkableAccount,
    LinkedSubject,
    LinkSubject,
    ListSubjects,
    UnlinkSubject,
    fingerprint,
)
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller, access_token
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, Problem, invalid
from holdfast.kit.postgres import database
from holdfast.kit.security import api_keys


async def find_callers(reader: database.Reader[Any], hashes: Sequence[bytes]) -> Mapping[bytes, Caller]:
    """The callers for the organizers to which these subjects are linked. Other accounts are never returned."""
    rows = await reader.tuples(
        """
        select hash, users.id from oauth_subjects join users on users.id = oauth_subjects.user_id
         where hash = any(%(hashes)s) and role = 'organizer'
        """,
        {"hashes": list(hashes)},
    )
    return {hash: access_token(user_id) for hash, user_id in rows}


async def link_by_email(tx: Tx, issuer: str, subject: str, email: str) -> int:
    """Link a subject to the organizer with an address that the issuer verified. Returns the organizer's id.

    The owner's other credentials stay valid. The console asks the owner to confirm what was made before the owner
    signed in: until then no subject is linked. An existing link stays. Raises `forbidden` if the address belongs to no
    organizer, if the owner has not confirmed it, if the organizer already has a subject of the issuer, or if the
    subject was unlinked before.
    """
    account = await sql.find_account(tx, email)
    if account and account.is_organizer and account.is_proved:
        await sql.link_by_email(tx, issuer, subject, account.id, email)
    hash = fingerprint(issuer, subject)
    linked = await sql.find_linked(tx, hash)
    if linked and linked.is_organizer:
        return linked.id
    if await sql.is_known(tx, hash):
        raise FORBIDDEN(
            f"The access token is of {subject!r}, who acts for no organizer any more.",
            hint="Ask the operator to link it to one.",
        )
    raise _link_refusal(account, subject, email, tx.resources.settings.base_url)


def _link_refusal(account: LinkableAccount | None, subject: str, email: str, base_url: str) -> Problem:
    """The problem that says why an address does not link a subject, and how to solve that."""
    if account is None:
        return FORBIDDEN(
            f"The access token is of {subject!r}, and no organizer is registered with {email}.",
            hint="Register one with that address at POST /api/organizers/register, or ask the operator to link it.",
        )
    if not account.is_organizer:
        return FORBIDDEN(
            f"The access token is of {subject!r}, and {email} belongs to an administrator.",
            hint="No organizer can be registered with that address. Register one with another address, and ask the "
            "operator to link it.",
        )
    if not account.is_proved:
        return FORBIDDEN(
            f"The access token is of {subject!r}, and the owner of {email} has not confirmed that the organizer with "
            "this address is theirs.",
            hint=f"Open {base_url}/console in a browser, sign in by a link that is sent to {email}, and say whether "
            "what was made before is yours. Then use the token again.",
        )
    return FORBIDDEN(
        f"The access token is of {subject!r}, and the organizer with the address {email} has another subject of this "
        "authorization server.",
        hint="Sign in there as you did before, or ask the operator to link it.",
    )


async def link(tx: Tx, issuer: str, command: LinkSubject) -> LinkableAccount:
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
    await tx.revoke(api_keys.CHANNEL, hash.hex())
    return organizer


async def unlink(tx: Tx, issuer: str, command: UnlinkSubject) -> LinkableAccount:
    """End the link of a subject, as an operator asks. Returns the organizer. Only an operator can link it again.

    Raises `not_found` if the subject is not linked.
    """
    hash = fingerprint(issuer, command.subject)
    linked = await sql.find_linked(tx, hash)
    if linked is None:
        raise NOT_FOUND(f"{command.subject} of {issuer} is not linked.")
    await sql.unlink(tx, hash)
    await tx.revoke(api_keys.CHANNEL, hash.hex())
    return linked


async def move_subjects(tx: Tx, old: int, new: int) -> None:
    """Link the subjects of one account to another account of the same person."""
    for hash in await sql.move_subjects(tx, old, new):
        await tx.revoke(api_keys.CHANNEL, hash.hex())


async def unlink_all(tx: Tx, user_id: int) -> None:
    """End the links of all subjects of an account."""
    for hash in await sql.unlink_all(tx, user_id):
        await tx.revoke(api_keys.CHANNEL, hash.hex())


async def list_subjects(tx: Tx, command: ListSubjects) -> list[LinkedSubject]:
    """The subjects that act for an organizer, oldest link first. Raises `not_found` if there is no such organizer."""
    return await sql.list_subjects(tx, (await _organizer(tx, command.slug)).id)


async def _organizer(tx: Tx, slug: str) -> LinkableAccount:
    organizer = await sql.find_organizer(tx, slug)
    if organizer is None:
        raise NOT_FOUND(f"No organizer has the slug {slug}.")
    return organizer
