"""The database of the platform."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from holdfast_demo.shared.store import SQLiteStore
from holdfast_demo.shopify.model import StoredRecord

T = TypeVar("T", bound=StoredRecord)

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


class RecordQuery(NamedTuple):
    """A query for things: conditions, order and limit.

    where    conditions on columns, with their values
    by       the sort column: `id`, `created` or `updated`
    after    the sort values after which the part begins
    """

    where: Sequence[tuple[str, Any]] = ()
    by: str = "id"
    reverse: bool = False
    after: tuple[float, int] | None = None
    max_count: int = -1


class Store(SQLiteStore):
    """Things by their shop, kind and id."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path, _TABLES)

    def new_id(self) -> int:
        """A number that no other thing has."""
        [(last,)] = self.db.execute("update numbers set last = last + 1 returning last").fetchall()
        return last

    def put(self, shop: str, thing: T) -> T:
        """Store a thing, new or changed. A thing without an id gets one."""
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

    def remove(self, shop: str, thing: StoredRecord) -> None:
        self.db.execute("delete from things where shop = ? and kind = ? and id = ?", (shop, thing.kind, thing.id))

    def find(self, type: type[T], shop: str, id: int | None) -> T | None:
        things = self.select(type, shop, RecordQuery([("id = ?", id)]))
        return things[0] if things else None

    def select(self, type: type[T], shop: str, query: RecordQuery = RecordQuery()) -> list[T]:  # noqa: B008 - it never changes
        """Things of a kind, in order."""
        where = ["shop = ?", "kind = ?", *(condition for condition, _ in query.where)]
        values: list[Any] = [shop, type.kind, *(value for _, value in query.where)]
        if query.after:
            sign = "<" if query.reverse else ">"
            where.append(f"({query.by}, id) {sign} (?, ?)")
            values += query.after if query.by != "id" else (query.after[1], query.after[1])
        direction = "desc" if query.reverse else "asc"
        rows = self.db.execute(
            f"select body from things where {' and '.join(where)}"
            f" order by {query.by} {direction}, id {direction} limit {query.max_count}",
            values,
        )
        return [msgspec.json.decode(body, type=type) for (body,) in rows]

    def count(self, type: type[StoredRecord], shop: str, where: Sequence[tuple[str, Any]] = ()) -> int:
        """How many things of a kind there are."""
        conditions = " and ".join(["shop = ?", "kind = ?", *(condition for condition, _ in where)])
        values = (shop, type.kind, *(value for _, value in where))
        return self.db.execute(f"select count(*) from things where {conditions}", values).fetchone()[0]
