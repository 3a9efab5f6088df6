"""What agents did. Each service has the table `agent_actions`, with the columns of what its agents change."""

from typing import Any

from holdfast.kit.postgres.database import Tx

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


async def forget_actions(tx: Tx[Any]) -> int:
    """Delete a batch of actions, of all tenants, that are older than 90 days. Returns the number deleted."""
    return await tx.value(
        """
        with deleted as (
            delete from agent_actions
             where id = any(array(select id from agent_actions where done_at < now() - interval '90 days'
                                   order by done_at limit %(limit)s for update skip locked))
         returning 1)
        select count(*) from deleted
        """,
        {"limit": DELETE_BATCH_SIZE},
    )
