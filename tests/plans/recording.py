"""Connections that have each statement explained before it runs: what its plan does, by the server's own count.

A statement is explained in a savepoint, which runs it and takes it back. Its plan is the one for any values that the
server keeps, since all sessions of the services have it so (decision 56).
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self, TypeVar, cast

import msgspec
from psycopg import AsyncClientCursor, AsyncConnection, AsyncCursor, postgres
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer
from psycopg.pq import PipelineStatus, TransactionStatus

from holdfast.kit.compat.psycopg_pipeline import SyncingCursor
from holdfast.kit.postgres.database import Database

R = TypeVar("R")

EXPLAIN = "explain (analyze, buffers, timing off, format json) "
SCANNED = "select coalesce(sum(seq_tup_read), 0)::bigint from pg_stat_xact_user_tables"
"""Rows that were read by reading tables from end to end, in this transaction, also by triggers and foreign keys."""

BEGINNINGS = ("select", "insert", "update", "delete", "with", "merge")

TIMES = 3


class Plan(NamedTuple):
    """What a plan of a statement did.

    doing          the operation, loop, job or page that sent the statement
    statement      its text, as the source has it
    value_count    how many values it was given, those in arrays and in JSON counted one by one
    root           the plan, as the server explains it
    indirect_rows  rows that triggers and foreign keys read by reading tables from end to end
    """

    doing: str
    statement: str
    value_count: int
    root: dict[str, Any]
    indirect_rows: int


class Recorder:
    """Keeps the plans of the statements of its connections once it has begun, while `doing` says what sends them.

    round    how many times it has begun
    """

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.doing = ""
        self.sent = asyncio.Event()
        self.round = 0
        self._times: Counter[tuple[str, str]] = Counter()

    def begin(self) -> None:
        """Begin, or begin again: with no plans, and with statements that are planned again."""
        self.plans.clear()
        self._times.clear()
        self.round += 1

    async def at_rest(self, seconds: float = 0.25) -> None:
        """Return when no statement was sent for a while: what runs in the background waits for something to happen."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.sent.clear()
                async with asyncio.timeout(seconds):
                    await self.sent.wait()

    def wants(self, query: object) -> bool:
        """Whether a statement is to be explained: one that is repeated is, the first `TIMES`."""
        self.sent.set()
        if not self.round or not self.doing or not isinstance(query, str) or not _begins(query).startswith(BEGINNINGS):
            return False
        self._times[self.doing, query] += 1
        return self._times[self.doing, query] <= TIMES

    def attend(self, database: Database[R]) -> Database[R]:
        """Keep the plans of what is sent to a database, which is not open yet."""
        database.pool.connection_class = type("Explained", (_Explained,), {"recorder": self})
        # All that comes one after the other is sent on the same connection: it keeps plans.
        database.pool._min_size = 1  # pyright: ignore[reportPrivateUsage]
        return database


class _Explained(AsyncConnection[Any]):
    """A connection that has statements explained."""

    recorder: Recorder

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._prepared_names: dict[tuple[int, bytes, tuple[int, ...]], str] = {}
        self._prepared_count = 0

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:
        ours: dict[str, Any] = {**options, "cursor_factory": _Cursor}
        connection = await super().connect(conninfo, **ours)
        # When the driver rolls back, it forgets the statements that it has prepared, and ours with them.
        connection.prepare_threshold = None
        return connection

    async def explain(self, statement: Any, params: Any) -> None:
        """Have the plan of a statement explained."""
        query = PostgresQuery(Transformer(self))
        query.convert(statement, params)
        types = tuple(query.types)
        name = await self._name_of_prepared(query.query, types)
        values: Any = [params[name] for name in query._order or ()] if isinstance(params, dict) else params  # pyright: ignore[reportPrivateUsage]
        places: Any = ", ".join(["%s"] * len(types))
        mogrified = AsyncClientCursor(self).mogrify(places, values or None)
        executed = f"({mogrified})" if types else ""
        async with self._rolled_back():
            cursor = AsyncCursor(self)
            [(before,)] = await (await cursor.execute(SCANNED)).fetchall()
            await cursor.execute(f"{EXPLAIN} execute {name}{executed}".encode(), prepare=False)
            [([answer],)] = await cursor.fetchall()
            [(after,)] = await (await cursor.execute(SCANNED)).fetchall()
        root = answer["Plan"]
        indirect_rows = int(after - before - scanned_rows(root))
        self.recorder.plans.append(Plan(self.recorder.doing, statement, _count_values(values), root, indirect_rows))

    async def _name_of_prepared(self, query: bytes, types: tuple[int, ...]) -> str:
        """The name of a statement that was prepared in this round."""
        key = (self.recorder.round, query, types)
        if key not in self._prepared_names:
            # A number of its own: a loop that is ended right now leaves its last statement behind.
            self._prepared_count += 1
            name = f"explained_{self._prepared_count}"
            named = f" ({', '.join(map(_type_name, types))})" if types else ""
            await AsyncCursor(self).execute(f"prepare {name}{named} as ".encode() + query, prepare=False)
            self._prepared_names[key] = name
        return self._prepared_names[key]

    @asynccontextmanager
    async def _rolled_back(self) -> AsyncGenerator[None]:
        """Take back what the block does, in the transaction that there is, or in one of its own."""
        cursor = AsyncCursor(self)
        inside = (
            self.pgconn.pipeline_status != PipelineStatus.OFF
            or self.pgconn.transaction_status != TransactionStatus.IDLE
        )
        await cursor.execute("savepoint explained" if inside else "begin")
        try:
            yield
        finally:
            await cursor.execute("rollback to savepoint explained" if inside else "rollback")


class _Cursor(SyncingCursor[Any]):
    """A cursor of such a connection."""

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        connection: Any = self.connection
        if connection.recorder.wants(query):
            await connection.explain(query, params)
        return await super().execute(query, params, **options)


def nodes(root: dict[str, Any]) -> list[dict[str, Any]]:
    """A plan and all its parts."""
    return [root, *(node for part in root.get("Plans", ()) for node in nodes(part))]


def scanned_rows(root: dict[str, Any]) -> float:
    """Rows that a plan reads by reading tables from end to end."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes(root)
        if node["Node Type"] == "Seq Scan"
    )


def _begins(query: str) -> str:
    """A statement without the comments before it."""
    lines = [line for line in query.strip().splitlines() if not line.lstrip().startswith("--")]
    return "\n".join(lines).lstrip().lower()


def _type_name(oid: int) -> str:
    known = postgres.types.get(oid)
    if known is None:
        return "unknown"
    return f"{known.regtype}[]" if oid == known.array_oid else known.regtype


def _count_values(values: Any) -> int:
    """How many values there are, those in arrays and in JSON one by one."""
    if isinstance(values, dict):
        return sum(map(_count_values, cast(dict[str, Any], values).values()))
    if isinstance(values, list | tuple):
        return sum(map(_count_values, cast(list[Any], values)))
    if isinstance(values, str) and values[:1] in {"[", "{"}:
        try:
            return _count_values(msgspec.json.decode(values))
        except msgspec.DecodeError:
            return 1
    return 1
