"""Everything that the platform knows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from holdfast.inventory.shopify.double.model import Thing
from holdfast.kit.doubles.store import SQLiteStore

T = TypeVar("T", bound=Thing)

_TABLES = """
create table if not exists things (
    shop text not null,
    kind text not null,
    id integer not null,
    parent integer not null,
    created real not null,
    updated real not null,
    words text not null,
    body text not null,
    primary key (shop, kind, id)
) without rowid;
create index if not exists things_of_a_parent on things (shop, kind, parent, id);
create index if not exists things_by_change on things (shop, kind, updated, id);
create index if not exists things_by_item on things (shop, json_extract(body, '$.item')) where kind = 'ProductVariant';
create table if not exists numbers (last integer not null);
insert into numbers select 1000000000 where not exists (select 1 from numbers);
"""


class Wanted(NamedTuple):
    """Which things, in which order.

    where    conditions on columns, with their values
    by       what they are sorted by: `id`, or `updated`
    after    the values of those that the part begins behind
    """

    where: Sequence[tuple[str, Any]] = ()
    by: str = "id"
    reverse: bool = False
    after: tuple[float, int] | None = None
    most: int = -1


class Store(SQLiteStore):
    """Things by their shop, kind and id."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path, _TABLES)

    def new_id(self) -> int:
        """A number that nothing else has."""
        [(last,)] = self.db.execute("update numbers set last = last + 1 returning last").fetchall()
        return last

    def put(self, shop: str, thing: T) -> T:
        """Keep something, new or changed; what has no id gets one."""
        thing.id = thing.id or self.new_id()
        self.db.execute(
            "insert or replace into things (shop, kind, id, parent, created, updated, words, body)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(shop, thing.kind, thing.id, thing.parent, thing.created, thing.updated, thing.words),
                msgspec.json.encode(thing).decode(),
            ),
        )
        return thing

    def remove(self, shop: str, thing: Thing) -> None:
        self.db.execute("delete from things where shop = ? and kind = ? and id = ?", (shop, thing.kind, thing.id))

    def find(self, type: type[T], shop: str, id: int | None) -> T | None:
        found = self.some(type, shop, Wanted([("id = ?", id)]))
        return found[0] if found else None

    def some(self, type: type[T], shop: str, wanted: Wanted = Wanted()) -> list[T]:  # noqa: B008 - it never changes
        """Things of a kind, in order."""
        where = ["shop = ?", "kind = ?", *(condition for condition, _ in wanted.where)]
        values: list[Any] = [shop, type.kind, *(value for _, value in wanted.where)]
        if wanted.after:
            sign = "<" if wanted.reverse else ">"
            where.append(f"({wanted.by}, id) {sign} (?, ?)")
            values += wanted.after if wanted.by != "id" else (wanted.after[1], wanted.after[1])
        direction = "desc" if wanted.reverse else "asc"
        rows = self.db.execute(
            f"select body from things where {' and '.join(where)}"
            f" order by {wanted.by} {direction}, id {direction} limit {wanted.most}",
            values,
        )
        return [msgspec.json.decode(body, type=type) for (body,) in rows]

    def count(self, type: type[Thing], shop: str, where: Sequence[tuple[str, Any]] = ()) -> int:
        """How many things of a kind there are."""
        conditions = " and ".join(["shop = ?", "kind = ?", *(condition for condition, _ in where)])
        values = (shop, type.kind, *(value for _, value in where))
        return self.db.execute(f"select count(*) from things where {conditions}", values).fetchone()[0]
