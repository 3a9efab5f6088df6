"""What can be done with organizers."""

from holdfast.accounts import passwords
from holdfast.accounts.signin.addresses import canonical
from holdfast.events.keys.operations import mint
from holdfast.events.organizers import sql
from holdfast.events.organizers.model import Authentication, Organizer, Registered, RegisterOrganizer
from holdfast.events.paths import organizer_path
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import User, new_public_ids
from holdfast.kit.caller import Caller
from holdfast.kit.pagination import OffsetPage, Page, offset_page
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, SERVICE_UNAVAILABLE, VALIDATION_FAILED, invalid, refuses
from holdfast.kit.said import said

HEADER = "X-API-Key"


@refuses(VALIDATION_FAILED)
async def register(tx: Tx, caller: Caller, command: RegisterOrganizer) -> Registered:
    """Register an organizer and get its first API key. Needs no credentials.

    The key is shown once, in this answer. Without a password the account signs in by magic link.
    """
    # Before the first statement, so that no connection is held meanwhile.
    password_hash = None if command.password is None else await passwords.hashed(command.password)
    email = canonical(command.email)
    email_taken, slug_taken = await sql.taken(tx, email, command.slug)
    errors = {"email": [said("is already taken")]} if email_taken else {}
    errors |= {"slug": [said("is already taken")]} if slug_taken else {}
    if errors:
        raise invalid(errors)
    public_id = new_public_ids(1)[0]
    id = await sql.insert_organizer(tx, public_id, command.name, email, command.slug, password_hash)
    if id is None:
        raise SERVICE_UNAVAILABLE("Somebody registered the same address or slug just now.", retry_after=1)
    key = await mint(tx, id, "First key")
    path = organizer_path(command.slug)
    return Registered(
        Authentication(HEADER, f"Send the key in the {HEADER} header of every request. It is not shown again."),
        key,
        Organizer(id, command.name, email, "organizer", command.slug, tx.resources.settings.base_url + path, path),
    )


def owner(caller: Caller, organizer_id: int | None) -> int:
    """The owner of something new: the organizer of the key, or with an admin key the organizer that is named."""
    if caller.tenant_id is None:
        if organizer_id is None:
            raise invalid({"organizer_id": [said("is required with an admin key")]})
        return organizer_id
    if organizer_id not in (None, caller.tenant_id):
        raise FORBIDDEN("An organizer key works for its own organizer only.")
    return caller.tenant_id


async def find(reader: Reader, slug: str) -> int:
    """The id of the organizer with a slug. Raises `not_found`."""
    if id := await sql.find_id(reader, slug):
        return id
    raise NOT_FOUND(f"No organizer has the slug {slug}. See: holdfast events organizer list")


async def list(reader: Reader, caller: Caller, command: OffsetPage) -> Page[User]:
    """List organizers, oldest first. An admin key sees all of them, an organizer key itself."""
    return offset_page(await sql.list_organizers(reader, caller.tenant_id, command.offset, command.limit + 1), command)
