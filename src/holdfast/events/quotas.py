"""Quotas: how much an organizer may have of what the service stores for it. The settings say how much.

What an organizer has is counted while its account is locked, so that requests at the same time cannot exceed a quota
together.
"""

from typing import LiteralString

from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Tx
from holdfast.kit.said import Grouped, Said, said


async def lock(tx: Tx, organizer_id: int) -> None:
    """Lock an account: until the transaction ends, no other one adds anything that a quota counts."""
    await tx.run("select from users where id = %(id)s for no key update", {"id": organizer_id})


async def require_room(tx: Tx, organizer_id: int, quota: Said, most: int, count: LiteralString) -> None:
    """Raise `quota_exceeded` if an organizer already has as much as it may have.

    quota    what is counted, as people read it
    count    the statement that counts it, given `%(organizer_id)s`
    """
    await lock(tx, organizer_id)
    if await tx.value(count, {"organizer_id": organizer_id}) >= most:
        message = said("An organizer may have at most %(most)s %(quota)s.", most=Grouped(most), quota=quota)
        raise QUOTA_EXCEEDED(message, quota=str(quota), limit=most)
