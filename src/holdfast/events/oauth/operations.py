"""What can be done with the subjects of authorization servers."""

from holdfast.events.oauth import sql
from holdfast.events.oauth.model import Linked, LinkSubject, fingerprint
from holdfast.events.settings import Tx
from holdfast.kit import keys
from holdfast.kit.problems import NOT_FOUND, invalid

find_callers = sql.find_callers
link_by_email = sql.link_by_email


async def link(tx: Tx, issuer: str, command: LinkSubject) -> Linked:
    """Link a subject of an issuer to an organizer, on the operator's word.

    Raises `not_found` without such an organizer, `validation_failed` for a subject that is linked to another one and
    is not to be moved.
    """
    organizer = await sql.find_organizer(tx, command.slug)
    if organizer is None:
        raise NOT_FOUND(f"No organizer has the slug {command.slug}.")
    await sql.link(tx, issuer, command.subject, organizer.user_id, move=command.move)
    hash = fingerprint(issuer, command.subject)
    linked = await sql.find_link(tx, hash)
    assert linked
    if linked.user_id != organizer.user_id:
        raise invalid({"subject": [f"is linked to {linked.slug}; --move takes it from there"]})
    await tx.notify(keys.CHANNEL, hash.hex())
    return linked
