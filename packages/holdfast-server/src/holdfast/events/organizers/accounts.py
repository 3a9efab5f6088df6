"""The operations of the owner of an address on its account: becoming an organizer, and ending the access of others."""

from psycopg.errors import UniqueViolation

from holdfast.accounts import known_browsers, sessions
from holdfast.events.keys.operations import end_all as end_all_keys
from holdfast.events.oauth_server import grants
from holdfast.events.organizers import sql
from holdfast.events.organizers.model import RESERVED_SLUGS, Name, Slug
from holdfast.events.resources import Tx
from holdfast.events.users import quotas
from holdfast.events.users.model import new_public_ids
from holdfast.events.users.operations import find_free_public_id
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, rule
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import VALIDATION_FAILED, invalid, refuses
from holdfast.kit.webhooks.endpoints import pause_all as pause_webhooks

CONFLICT_MESSAGES = {
    "users_slug": ("slug", message("is already taken")),
    "users_email_of_organizer": (
        "name",
        message(
            "cannot be used yet: your address has an organizer; sign out, sign in with a link, and say whose it is"
        ),
    ),
}
"""The field and the error message for each unique index that refuses an organizer."""


class BecomeOrganizer(Command):
    """Asks to make an organizer of an account. `account_id` is that of the session."""

    account_id: int
    name: Name
    slug: Slug

    @rule("slug")
    def _slug_is_free_to_take(self) -> str | None:
        return message("is reserved") if self.slug in RESERVED_SLUGS else None


class EndAccess(Command):
    """Asks to end all access to an account. `account_id` is that of the session."""

    account_id: int


@refuses(VALIDATION_FAILED)
async def become(tx: Tx, caller: Caller, command: BecomeOrganizer) -> None:
    """Make an account an organizer. An account that is an organizer stays unchanged."""
    try:
        await sql.make_organizer(tx, command.account_id, command.name, command.slug)
    except UniqueViolation as error:
        field, message = CONFLICT_MESSAGES[error.diag.constraint_name or ""]
        raise invalid({field: [message]}) from error
    await sessions.announce_change(tx, command.account_id)


async def prove(tx: Tx, account_id: int) -> bool:
    """Store that the contents of an account belong to the owner of its address. False if that was stored before."""
    if not await sql.prove(tx, account_id):
        return False
    await sessions.announce_change(tx, account_id)
    return True


async def lock_unproved(tx: Tx, account_id: int) -> str | None:
    """Lock an unproved organizer. Returns its address; None for any other account."""
    return await sql.lock_unproved(tx, account_id)


async def end_unproved(tx: Tx, account_id: int, except_session_id: int | None) -> None:
    """End a locked organizer: all access ends, and its address, name and slug are removed.

    except_session_id    a session that continues
    """
    await end_access(tx, account_id, except_session_id=except_session_id)
    public_id, slug = await find_free_public_id(tx), f"ended-{new_public_ids(1)[0]}"
    await sql.end_organizer(tx, account_id, public_id, slug)


async def end_own_access(tx: Tx, caller: Caller, command: EndAccess) -> None:
    """End all access to an account, as a person asks who fears misuse."""
    await end_access(tx, command.account_id, owner_verified=False)


async def end_access(
    tx: Tx, account_id: int, *, owner_verified: bool = True, except_session_id: int | None = None
) -> int:
    """End all access to an account: password, sessions, keys, connected apps. Returns the number of ended keys.

    No browser counts as the owner's any more. Then only the owner can sign in, by a link that is sent to the address.

    owner_verified       whether the reason is that the owner of the address was verified
    except_session_id    a session that continues
    """
    # Creating a key locks the account too. So no key is created by a key, session or app that ends here.
    await quotas.lock(tx, account_id)
    await sql.forget_password(tx, account_id)
    await sessions.end_others(tx, account_id, except_session_id)
    await known_browsers.forget_browsers_of(tx, [account_id])
    await grants.end_all(tx, account_id)
    # An endpoint may be that of another person who had access. Its owner can activate it again.
    await pause_webhooks(tx, account_id)
    return await end_all_keys(tx, account_id, owner_verified=owner_verified)
