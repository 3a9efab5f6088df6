"""The deletion of API keys 30 days after they were revoked."""

from holdfast.events.resources import Tx

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


async def forget_keys(tx: Tx) -> int:
    """Delete a batch of the keys that were revoked long ago. Returns the number deleted."""
    return await tx.value(
        """
        with deleted_key as (
            delete from api_keys
             where id = any(array(select id from api_keys where revoked_at < now() - interval '30 days'
                                   limit %(limit)s for update skip locked))
         returning 1)
        select count(*) from deleted_key
        """,
        {"limit": DELETE_BATCH_SIZE},
    )
