"""Everything that the platform knows, in one SQLite database: in memory, or in a file that survives a restart."""

import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from holdfast.inventory.shopify.double.model import Thing

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


class Store:
    """Things by their shop, kind and id. It is used from one thread at a time."""

    def __init__(self, path: Path | None = None) -> None:
        self.db = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma synchronous = normal")
        self.db.executescript(_TABLES)
        self._depth = 0

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def change(self) -> Generator[None]:
        """A transaction: everything in the block happens, or nothing if it raises. One inside another joins it."""
        if self._depth:
            yield
            return
        self.db.execute("begin immediate")
        self._depth = 1
        try:
            yield
        except BaseException:
            self.db.execute("rollback")
            raise
        else:
            self.db.execute("commit")
        finally:
            self._depth = 0

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


class Clock:
    """The time: the real one, plus what a test has moved it by. Whoever waits for a moment is told of a move."""

    def __init__(self) -> None:
        self._moved = 0.0
        self.on_move: list[Callable[[], None]] = []

    def time(self) -> float:
        return time.time() + self._moved

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self._moved += seconds
        for each in self.on_move:
            each()
