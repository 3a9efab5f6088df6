"""The operations on the subjects of authorization servers."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from holdfast.events.oauth.model import (
    LinkableAccount,
    LinkedSubject,
    LinkSubject,
    ListSubjects,
    UnlinkSubject,
    fingerprint,
)
from holdfast.events.resources import Reader, Tx
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
    account = await find_account(tx, email)
    if account and account.is_organizer and account.is_proved:
        await _link_new_subject(tx, issuer, subject, account.id, email)
    hash = fingerprint(issuer, subject)
    linked_account = await find_linked(tx, hash)
    if linked_account and linked_account.is_organizer:
        return linked_account.id
    if await is_known(tx, hash):
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
    await _store_link(tx, issuer, command.subject, organizer.id, move=command.move)
    hash = fingerprint(issuer, command.subject)
    linked_account = await find_linked(tx, hash)
    assert linked_account
    if linked_account.id != organizer.id:
        raise invalid({"subject": [f"is linked to {linked_account.slug}; --move takes it from there"]})
    await tx.revoke(api_keys.CHANNEL, hash.hex())
    return organizer


async def unlink(tx: Tx, issuer: str, command: UnlinkSubject) -> LinkableAccount:
    """End the link of a subject, as an operator asks. Returns the organizer. Only an operator can link it again.

    Raises `not_found` if the subject is not linked.
    """
    hash = fingerprint(issuer, command.subject)
    linked_account = await find_linked(tx, hash)
    if linked_account is None:
        raise NOT_FOUND(f"{command.subject} of {issuer} is not linked.")
    await _end_link(tx, hash)
    await tx.revoke(api_keys.CHANNEL, hash.hex())
    return linked_account


async def move_subjects(tx: Tx, old: int, new: int) -> None:
    """Link the subjects of one account to another account of the same person."""
    rows = await tx.tuples(
        "update oauth_subjects set user_id = %(new)s where user_id = %(old)s returning hash", {"old": old, "new": new}
    )
    for (hash,) in rows:
        await tx.revoke(api_keys.CHANNEL, hash.hex())


async def unlink_all(tx: Tx, user_id: int) -> None:
    """End the links of all subjects of an account."""
    rows = await tx.tuples(
        """
        update oauth_subjects set user_id = null, email = null, since = now() where user_id = %(user_id)s returning hash
        """,
        {"user_id": user_id},
    )
    for (hash,) in rows:
        await tx.revoke(api_keys.CHANNEL, hash.hex())


async def list_subjects(tx: Tx, command: ListSubjects) -> list[LinkedSubject]:
    """The subjects that act for an organizer, oldest link first. Raises `not_found` if there is no such organizer."""
    organizer = await _organizer(tx, command.slug)
    return await tx.rows(
        LinkedSubject,
        """
        select issuer, subject, email, since from oauth_subjects where user_id = %(user_id)s
         order by since, issuer, subject
        """,
        {"user_id": organizer.id},
    )


async def _organizer(tx: Tx, slug: str) -> LinkableAccount:
    organizer = await find_organizer(tx, slug)
    if organizer is None:
        raise NOT_FOUND(f"No organizer has the slug {slug}.")
    return organizer


_ACCOUNT: LiteralString = "users.id, slug, role, proved_at is not null as is_proved"


async def find_account(tx: Tx, email: str) -> LinkableAccount | None:
    """Lock the organizer or admin with an address: until the transaction ends, no other can link a subject to it."""
    return await tx.row(
        LinkableAccount,
        f"select {_ACCOUNT} from users where email = %(email)s and role <> 'user' for no key update",
        {"email": email},
    )


async def find_organizer(tx: Tx, slug: str) -> LinkableAccount | None:
    """Lock the organizer with a slug: until the transaction ends, no other can link a subject to it."""
    return await tx.row(
        LinkableAccount,
        f"select {_ACCOUNT} from users where slug = %(slug)s and role = 'organizer' for no key update",
        {"slug": slug},
    )


async def _link_new_subject(tx: Tx, issuer: str, subject: str, user_id: int, email: str) -> bool:
    """Link a subject to an organizer, if the subject has never been linked and the organizer has none of the issuer.

    Returns whether it was linked now.
    """
    is_linked = await tx.value(
        """
        insert into oauth_subjects (hash, issuer, subject, user_id, email)
        select %(hash)s, %(issuer)s, %(subject)s, %(user_id)s, %(email)s
         where not exists (select from oauth_subjects where user_id = %(user_id)s and issuer = %(issuer)s)
            on conflict (hash) do nothing
        returning true
        """,
        {
            "hash": fingerprint(issuer, subject),
            "issuer": issuer,
            "subject": subject,
            "user_id": user_id,
            "email": email,
        },
    )
    return bool(is_linked)


async def _store_link(tx: Tx, issuer: str, subject: str, user_id: int, *, move: bool) -> None:
    """Link a subject to an organizer. A link to another organizer changes only with `move`."""
    await tx.run(
        """
        insert into oauth_subjects (hash, issuer, subject, user_id)
        values (%(hash)s, %(issuer)s, %(subject)s, %(user_id)s)
            on conflict (hash) do update set user_id = excluded.user_id, email = null, since = now()
             where oauth_subjects.user_id is null or %(move)s and oauth_subjects.user_id <> excluded.user_id
        """,
        {"hash": fingerprint(issuer, subject), "issuer": issuer, "subject": subject, "user_id": user_id, "move": move},
    )


async def find_linked(reader: Reader, hash: bytes) -> LinkableAccount | None:
    """The account to which a subject is linked."""
    return await reader.row(
        LinkableAccount,
        f"""
        select {_ACCOUNT} from oauth_subjects join users on users.id = oauth_subjects.user_id
         where hash = %(hash)s
        """,
        {"hash": hash},
    )


async def is_known(reader: Reader, hash: bytes) -> bool:
    """Whether a subject is linked, or was linked before."""
    return bool(await reader.value("select true from oauth_subjects where hash = %(hash)s", {"hash": hash}))


async def _end_link(tx: Tx, hash: bytes) -> None:
    await tx.run(
        "update oauth_subjects set user_id = null, email = null, since = now() where hash = %(hash)s", {"hash": hash}
    )
