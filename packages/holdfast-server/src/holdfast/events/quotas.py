"""Quotas: how much data the service stores for one organizer. The limits are settings.

The count runs while the account of the organizer is locked, so concurrent requests cannot exceed a quota together.
"""

from typing import LiteralString

from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Tx
from holdfast.kit.contract.messages import GroupedNumber, Message, message


async def lock(tx: Tx, organizer_id: int) -> None:
    """Lock an account: until this transaction ends, no other transaction adds anything that a quota counts."""
    await tx.run("select from users where id = %(id)s for no key update", {"id": organizer_id})


async def require_room(tx: Tx, organizer_id: int, quota: Message, limit: int, count: LiteralString) -> None:
    """Raise `quota_exceeded` if the organizer has reached the limit.

    quota    the counted things, in words for people
    count    the statement that counts them; its parameter is `%(organizer_id)s`
    """
    await lock(tx, organizer_id)
    if await tx.value(count, {"organizer_id": organizer_id}) >= limit:
        reason = message("An organizer may have at most %(most)s %(quota)s.", most=GroupedNumber(limit), quota=quota)
        raise QUOTA_EXCEEDED(reason, quota=str(quota), limit=limit)
