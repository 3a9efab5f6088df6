"""The operations on organizers."""

from holdfast.accounts.addresses import canonical
from holdfast.accounts.signin import links, operations
from holdfast.events.keys.operations import insert_key
from holdfast.events.organizers import sql
from holdfast.events.organizers.model import Authentication, Organizer, RegisteredOrganizer, RegisterOrganizer
from holdfast.events.paths import organizer_path
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import User
from holdfast.events.users.operations import find_free_public_id
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import is_source, path_of
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import (
    FORBIDDEN,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    VALIDATION_FAILED,
    Problem,
    invalid,
    refuses,
)
from holdfast.kit.operations.operation import CommandLimit
from holdfast.kit.postgres.pagination import OffsetPage, Page, offset_page
from holdfast.kit.security.service_secret import Secret

NETWORK_HASH_CHARACTERS = 24

API_KEY_HEADER = "X-API-Key"
NOTE = (
    f"Send the key in the {API_KEY_HEADER} header of every request. It is not shown again. "
    "Mails about your events wait until you confirm your e-mail address: sign in with a mailed link at {sign_in}."
)
"""Information for a new organizer about its key, and about mails."""

ADDRESS_LIMIT = CommandLimit[RegisterOrganizer](
    "organizer registration of an address", lambda command: canonical(command.email)
)
"""Limits how often callers can test whether an address belongs to an organizer."""


def networks_of(secret: Secret, caller: Caller) -> list[str]:
    """The networks of a caller without a credential, as hashes, since addresses are personal data; empty for others.

    All organizers who are registered from one network share what strangers may store.

    A network is an IPv4 address, or the IPv6 networks of /64 and of /48, which have the same share.
    """
    sources = path_of(caller.name) if is_source(caller.name) else ()
    signer = secret.signer("networks of organizers", NETWORK_HASH_CHARACTERS)
    return [signer.sign(source) for source in sources]


@refuses(VALIDATION_FAILED)
async def register(tx: Tx, caller: Caller, command: RegisterOrganizer) -> RegisteredOrganizer:
    """Register an organizer and get its first API key. Needs no credentials.

    The key is shown once, in this answer. Without a password the account signs in by magic link.

    If the address belongs to a person who is registered for events, the organizer stays apart from that person until
    the person signs in by a link and confirms it.
    """
    # Before the first statement, so that no connection is held meanwhile.
    password_hash = None if command.password is None else await operations.hash_password(caller, command.password)
    email = canonical(command.email)
    await _require_free(tx, email, command.slug)
    public_id = await find_free_public_id(tx)
    networks = networks_of(tx.resources.secret, caller)
    id = await sql.insert_organizer(tx, public_id, command.name, email, command.slug, password_hash, networks)
    if id is None:
        await _require_free(tx, email, command.slug)  # another request has taken one of them meanwhile
        raise SERVICE_UNAVAILABLE("The organizer could not be stored just now.", retry_after=1)
    key = await insert_key(tx, id, "First key")
    path = organizer_path(command.slug)
    return RegisteredOrganizer(
        Authentication(API_KEY_HEADER, NOTE.format(sign_in=f"{tx.resources.settings.base_url}/sign-in")),
        key,
        Organizer(id, command.name, email, "organizer", command.slug, tx.resources.settings.base_url + path, path),
    )


async def _require_free(reader: Reader, email: str, slug: str) -> None:
    """Raises `validation_failed` if an organizer has the address, or any account the slug."""
    conflicts = await sql.find_conflicts(reader, email, slug)
    errors = {"email": [message("is already taken")]} if conflicts.has_email else {}
    errors |= {"slug": [message("is already taken")]} if conflicts.has_slug else {}
    if errors:
        raise invalid(errors)


def owner(caller: Caller, organizer_id: int | None) -> int:
    """The owner of a new object: the organizer of the key, or with an admin key the named organizer."""
    if caller.tenant_id is None:
        if organizer_id is None:
            raise invalid({"organizer_id": [message("is required with an admin key")]})
        return organizer_id
    if organizer_id not in (None, caller.tenant_id):
        raise FORBIDDEN("An organizer key works for its own organizer only.")
    return caller.tenant_id


async def find(reader: Reader, slug: str) -> int:
    """The id of the organizer with a slug. Raises `not_found`."""
    if id := await sql.find_id(reader, slug):
        return id
    raise _unknown_slug(slug)


def _unknown_slug(slug: str) -> Problem:
    return NOT_FOUND(f"No organizer has the slug {slug}. See: holdfast events organizer list")


@refuses(NOT_FOUND)
async def console_link(tx: Tx, slug: str) -> int:
    """The id of a link that signs in the owner of an organizer's address, once. Raises `not_found`."""
    if email := await sql.find_email(tx, slug):
        return await links.create_unbound_link(tx, email, "/console")
    raise _unknown_slug(slug)


async def list(reader: Reader, caller: Caller, command: OffsetPage) -> Page[User]:
    """List organizers, oldest first. An admin key sees all, an organizer key only its own."""
    return offset_page(await sql.list_organizers(reader, caller.tenant_id, command.offset, command.limit + 1), command)
