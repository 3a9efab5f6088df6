"""The pools that the rows of a spreadsheet name: by their ids, or by their names."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import Pool, PoolsByName
from holdfast.inventory.resources import Reader
from holdfast.inventory.spreadsheets import sheet
from holdfast.kit.contract.messages import Message, message


class KnownPools(NamedTuple):
    """The pools of a shop that rows name. An id of another shop is unknown here, so that its files can be imported."""

    by_name: PoolsByName
    by_id: Mapping[int, Pool]

    def key(self, name: str) -> str:
        """Return the key of a name: names with the same key are the same."""
        return self.by_name.keys[name]

    def pool(self, name: str, pool_id: int | None) -> Pool | None:
        """Return the pool with an id, else the pool with a name, if there is one."""
        return self.by_id.get(pool_id or 0) or self.by_name.pool(name)

    def conflict(self, name: str, pool_id: int | None) -> Message | None:
        """Return the message about a row whose id and name belong to two pools."""
        pool, namesake = self.by_id.get(pool_id or 0), self.by_name.pool(name)
        if pool is None or namesake is None or pool.id == namesake.id:
            return None
        return sheet.column_message(
            "pool_id",
            message("pool %(id)s is %(name)s, and %(other)s is another pool", id=pool.id, name=pool.name, other=name),
        )


async def find_pools(reader: Reader, shop_id: int, rows: Sequence[tuple[str, int | None]]) -> KnownPools:
    """Return the pools that rows name, each row by a name and an id. Archived pools are not found."""
    by_name = await pools.find_by_name(reader, shop_id, [name for name, _ in rows])
    by_id = await pools.find_by_id(reader, shop_id, {id for _, id in rows if id})
    return KnownPools(by_name, {id: pool for id, pool in by_id.items() if pool.status != "archived"})
