"""Levels: how many units of an item a location has, and how they change."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.store import Store

TABLES = """
create table if not exists levels (
    id integer primary key,
    shop text not null,
    item integer not null,
    location integer not null,
    available integer not null,
    committed integer not null default 0,
    before integer not null,
    created real not null,
    updated real not null,
    unique (shop, item, location)
);
create index if not exists levels_of_a_location on levels (shop, location, item);
"""

_COLUMNS = "id, item, location, available, committed, before, created, updated"


class Level(NamedTuple):
    """A level.

    committed   units that are sold and not sent yet; `available` does not include them
    before      the available units before the last change
    """

    id: int
    item: int
    location: int
    available: int
    committed: int
    before: int
    created: float
    updated: float

    @property
    def gid(self) -> str:
        return f"gid://shopify/InventoryLevel/{self.id}?inventory_item_id={self.item}"

    @property
    def on_hand(self) -> int:
        return self.available + self.committed


class Levels:
    """The levels of all shops. Every change needs a transaction of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._db = store.db
        self._db.executescript(TABLES)

    def find(self, shop: str, item: int, location: int) -> Level | None:
        rows = self._select("shop = ? and item = ? and location = ?", shop, item, location)
        return rows[0] if rows else None

    def with_id(self, shop: str, id: int) -> Level | None:
        rows = self._select("shop = ? and id = ?", shop, id)
        return rows[0] if rows else None

    def of_item(self, shop: str, item: int) -> list[Level]:
        """The levels of an item, by location."""
        return self._select("shop = ? and item = ?", shop, item)

    def of_location(self, shop: str, location: int) -> list[Level]:
        """The levels of a location, by item."""
        return self._select("shop = ? and location = ?", shop, location)

    def of_items(self, shop: str, items: Sequence[int]) -> dict[int, int]:
        """How many units of items are available, all locations together."""
        marks = ", ".join("?" * len(items))
        rows = self._db.execute(
            f"select item, sum(available) from levels where shop = ? and item in ({marks}) group by item",
            (shop, *items),
        )
        return dict(rows.fetchall())

    def add(self, shop: str, item: int, location: int, available: int, now: float) -> Level:
        """Stock an item at a location."""
        id = self._store.new_id()
        self._db.execute(
            "insert into levels (id, shop, item, location, available, before, created, updated)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            (id, shop, item, location, available, available, now, now),
        )
        return Level(id, item, location, available, 0, available, now, now)

    def change(
        self, shop: str, item: int, location: int, now: float, *, available: int = 0, committed: int = 0
    ) -> Level:
        """Change a level by differences. Raises `ShopifyRefusal` if there is none."""
        rows = self._db.execute(
            "update levels set before = available, available = available + ?, committed = committed + ?, updated = ?"
            f" where shop = ? and item = ? and location = ? returning {_COLUMNS}",
            (available, committed, now, shop, item, location),
        ).fetchall()
        if not rows:
            raise ShopifyRefusal(f"The item {item} is not stocked at the location {location}.")
        return Level(*rows[0])

    def remove(self, shop: str, item: int, location: int) -> None:
        """Stop stocking an item at a location."""
        values = (shop, item, location)
        self._db.execute("delete from levels where shop = ? and item = ? and location = ?", values)

    def _select(self, where: str, *values: object) -> list[Level]:
        rows = self._db.execute(f"select {_COLUMNS} from levels where {where} order by item, location", values)
        return [Level(*row) for row in rows]
