"""What the owner of an address may do with its account: become an organizer, and end what lets others act for it."""

from collections.abc import Sequence

from msgspec import Struct

from holdfast.accounts import sessions
from holdfast.accounts.oauth import grants
from holdfast.events import quotas
from holdfast.events.keys.model import ApiKey, ListKeys
from holdfast.events.keys.operations import end_all as end_all_keys
from holdfast.events.keys.operations import list as list_keys
from holdfast.events.organizers import sql
from holdfast.events.organizers.model import RESERVED_SLUGS, Name, Slug
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller, system
from holdfast.kit.command import Command, rule
from holdfast.kit.problems import VALIDATION_FAILED, invalid, refuses
from holdfast.kit.said import said


class BecomeOrganizer(Command):
    """Asks to make an organizer of an account. `account_id` is that of the session."""

    account_id: int
    name: Name
    slug: Slug

    @rule("slug")
    def _slug_is_free_to_take(self) -> str | None:
        return said("is reserved") if self.slug in RESERVED_SLUGS else None


class LookBefore(Command):
    """Asks what was made with an address before it was proved."""

    account_id: int


class Before(Struct):
    """What was made with an address before it was proved."""

    keys: Sequence[ApiKey]
    has_password: bool


class ProveAccount(Command):
    """Says whose it is what was made before.

    keep    whether it is the owner's; if not, it is ended
    """

    account_id: int
    session_id: int
    keep: bool


class EndAccess(Command):
    """Asks to end what lets anybody act for an account. `account_id` is that of the session."""

    account_id: int


@refuses(VALIDATION_FAILED)
async def become(tx: Tx, caller: Caller, command: BecomeOrganizer) -> None:
    """Make an organizer of an account. An account that is one stays as it is."""
    if await sql.slug_taken(tx, command.slug, command.account_id):
        raise invalid({"slug": [said("is already taken")]})
    await sql.make_organizer(tx, command.account_id, command.name, command.slug)
    await sessions.changed(tx, command.account_id)


async def look_before(reader: Reader, caller: Caller, command: LookBefore) -> Before:
    """What was made with an address before it was proved."""
    keys = await list_keys(reader, system(command.account_id), ListKeys())
    return Before(keys, await sql.has_password(reader, command.account_id))


async def prove(tx: Tx, caller: Caller, command: ProveAccount) -> None:
    """Keep or end what was made before, once. Apps that were connected and sessions end with it."""
    if not await sql.prove(tx, command.account_id):
        return
    if not command.keep:
        await end_access(tx, command.account_id, but=command.session_id)
    await sessions.changed(tx, command.account_id)


async def end_own_access(tx: Tx, caller: Caller, command: EndAccess) -> None:
    """End what lets anybody act for an account, as somebody asks who fears for it."""
    await end_access(tx, command.account_id, owner_verified=False)


async def end_access(tx: Tx, account_id: int, *, owner_verified: bool = True, but: int | None = None) -> int:
    """End what lets anybody act for an account: password, sessions, keys, connected apps. Returns how many keys ended.

    Then only its owner gets in, by a link that is sent to the address.

    owner_verified    whether that is because the owner of the address was verified
    but               a session that goes on
    """
    # Whoever makes a key locks the account too. So nothing that ends here leaves a key behind.
    await quotas.lock(tx, account_id)
    await sql.forget_password(tx, account_id)
    await sessions.end_others(tx, account_id, but)
    await grants.end_all(tx, account_id)
    return await end_all_keys(tx, account_id, owner_verified=owner_verified)
