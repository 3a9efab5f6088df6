"""Deletes links to sign in a day after they were asked for, and sessions that have ended."""

from typing import Any

from holdfast.accounts.sessions import IDLE_DAYS, LONGEST_DAYS, PLATFORM_HOURS
from holdfast.kit.database import Tx

PORTION = 5_000


async def forget_links(tx: Tx[Any]) -> int:
    """Delete a portion of the old links. Returns how many were deleted."""
    return await tx.value(
        """
        with gone as (
            delete from sign_in_links where id in (
                select id from sign_in_links where asked_at < now() - interval '1 day' limit %(portion)s)
            returning 1)
        select count(*) from gone
        """,
        {"portion": PORTION},
    )


async def forget_sessions(tx: Tx[Any]) -> int:
    """Delete a portion of the sessions that have ended by themselves. Returns how many were deleted."""
    return await tx.value(
        """
        with gone as (
            delete from sessions where id in (
                select id from sessions
                 where seen_at < now() - make_interval(days => %(idle)s)
                    or began_at < now() - make_interval(days => %(longest)s)
                    or (way = 'platform' and began_at < now() - make_interval(hours => %(platform)s))
                 limit %(portion)s)
            returning 1)
        select count(*) from gone
        """,
        {"portion": PORTION, "idle": IDLE_DAYS, "longest": LONGEST_DAYS, "platform": PLATFORM_HOURS},
    )
