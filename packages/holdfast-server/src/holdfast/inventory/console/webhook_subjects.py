"""The names of what messages of webhooks are about, as merchants know them."""

import asyncio
from collections.abc import Mapping

from holdfast.accounts.sessions import Session
from holdfast.accounts.webhooks.webhook_pages import ReadSubjectNames
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.pools.model import GetPool, PoolWithMembers

POOL = "pool "
"""The beginning of the subject of a message about a pool; its id follows."""


def pool_names(console: Console) -> ReadSubjectNames:
    """Reads the names of pools that messages are about."""
    get_pool = console.run["get_pool"]

    async def read(session: Session, subjects: set[str]) -> Mapping[str, str]:
        about_pools = sorted(subject for subject in subjects if subject.startswith(POOL))
        pools: list[PoolWithMembers] = await asyncio.gather(
            *(
                get_pool(merchant(session), GetPool(pool_id=int(subject.removeprefix(POOL)), include_members=False))
                for subject in about_pools
            )
        )
        return {subject: pool.name for subject, pool in zip(about_pools, pools, strict=True)}

    return read
