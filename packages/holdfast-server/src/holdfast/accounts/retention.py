"""Deletes sign-in links a day after they were requested, and sessions and known browsers that have ended."""

from typing import Any

from holdfast.accounts.known_browsers import KNOWN_DAYS
from holdfast.accounts.sessions import IS_OPEN, LIMITS
from holdfast.kit.postgres.database import Tx

BATCH_SIZE = 5_000


async def forget_links(tx: Tx[Any]) -> int:
    """Delete a batch of old links. Returns how many were deleted."""
    return await tx.value(
        """
        with gone as (
            delete from sign_in_links where id in (
                select id from sign_in_links where asked_at < now() - interval '1 day' limit %(portion)s)
            returning 1)
        select count(*) from gone
        """,
        {"portion": BATCH_SIZE},
    )


async def forget_known(tx: Tx[Any]) -> int:
    """Delete a batch of the browsers that are no longer known. Returns how many were deleted."""
    return await tx.value(
        """
        with gone as (
            delete from known_browsers where hash in (
                select hash from known_browsers
                 where known_at < now() - make_interval(days => %(days)s) limit %(portion)s)
            returning 1)
        select count(*) from gone
        """,
        {"portion": BATCH_SIZE, "days": KNOWN_DAYS},
    )


async def forget_sessions(tx: Tx[Any]) -> int:
    """Delete a batch of the sessions that have expired. Returns how many were deleted."""
    return await tx.value(
        f"""
        with gone as (
            delete from sessions where id in (
                select id from sessions where not {IS_OPEN} limit %(portion)s)
            returning 1)
        select count(*) from gone
        """,
        {**LIMITS, "portion": BATCH_SIZE},
    )
