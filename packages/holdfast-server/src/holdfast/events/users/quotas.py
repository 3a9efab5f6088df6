"""What an organizer may have: how much data the service stores for it, and its turns at what all organizers share.

The count runs while the account of the organizer is locked, so concurrent requests cannot exceed a quota together.

Each organizer has turns of its own. Any visitor can register organizers, so those that have not confirmed their address
have one turn together, and among them each address.
"""

from typing import LiteralString

from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Steps, Tx
from holdfast.kit.contract.caller import Caller, Owner
from holdfast.kit.contract.client import path_of, request_source
from holdfast.kit.contract.messages import GroupedNumber, Message, message

ORGANIZERS = "organizers"
UNPROVED = "unconfirmed organizers"


async def lock(tx: Tx, organizer_id: int) -> None:
    """Lock an account: until this transaction ends, no other transaction adds anything that a quota counts."""
    await tx.run("select from users where id = %(id)s for no key update", {"id": organizer_id})


async def require_quota(tx: Tx, organizer_id: int, quota: Message, limit: int, count: LiteralString) -> None:
    """Raise `quota_exceeded` if the organizer has reached the limit.

    quota    the counted things, in words for people
    count    the statement that counts them; its parameter is `%(organizer_id)s`, or `%(tenant_id)s` if it is of the kit
    """
    await lock(tx, organizer_id)
    if await tx.value(count, {"organizer_id": organizer_id, "tenant_id": organizer_id}) >= limit:
        reason = message("An organizer may have at most %(most)s %(quota)s.", most=GroupedNumber(limit), quota=quota)
        raise QUOTA_EXCEEDED(reason, quota=str(quota), limit=limit)


async def share_of(steps: Steps, caller: Caller) -> Owner:
    """The owner of work that is done for a caller outside the database."""
    if caller.tenant_id is None:
        return (ORGANIZERS, caller.name)
    is_proved = await steps.read(
        lambda reader: reader.value("select proved_at is not null from users where id = %(id)s", {"id": caller.tenant})
    )
    return organizer_share(caller.tenant, is_proved=bool(is_proved))


def organizer_share(organizer_id: int, *, is_proved: bool) -> Owner:
    """The owner of work that is done for an organizer."""
    if is_proved:
        return (ORGANIZERS, organizer_id)
    return (ORGANIZERS, UNPROVED, *path_of(request_source()), organizer_id)


def is_unproved(owner: Owner) -> bool:
    """Whether an owner is one of the organizers that have not confirmed their address."""
    return UNPROVED in owner
