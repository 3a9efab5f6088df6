"""Rows of a described table are leased by one process at a time, in the order of the description. Results are stored
under the lease only.
"""

import datetime as dt

import pytest

from holdfast.events.resources import Database
from holdfast.kit.background import leases
from holdfast.kit.background.leases import LEASE_SECONDS, LeasedRow, LeaseLost, RowTable
from holdfast.kit.background.row_work import TableWork
from tests.helpers.events_service import Service
from tests.helpers.row_work import handle_all

LETTERS = RowTable("letters", "id", "kind = 'letter'", order="weight desc, id")
PARCELS = RowTable(
    "letters",
    "name",
    "kind = 'parcel'",
    order="owner, id",
    due_at="wanted_at",
    attempts="tried",
    lease_id=None,
    lease_interval="interval '1 hour'",
    owner="owner",
)
"""Its key is a text, its columns have other names, the count of attempts is the id of a lease, and leases are long."""


@pytest.fixture
async def database(service: Service) -> Database:
    await service.run_sql(
        """
        create table letters (
            id bigint primary key, name text generated always as ('n' || id) stored, kind text not null,
            weight int not null default 0, owner int not null default 0,
            due_at timestamptz, attempts int not null default 0, lease_id uuid, error text,
            wanted_at timestamptz, tried int not null default 0)
        """
    )
    return service.database


async def add(database: Database, kind: str, *ids: int, owner: int = 0) -> None:
    await database.transact(
        lambda tx: tx.run(
            """
            insert into letters (id, kind, weight, owner, due_at, wanted_at)
            select id, %(kind)s, id, %(owner)s, now(), now() from unnest(%(ids)s::int[]) as id
            """,
            {"ids": list(ids), "kind": kind, "owner": owner},
        )
    )


async def lease(database: Database, table: RowTable, limit: int = 9, after_owner: int | None = None) -> list[LeasedRow]:
    return await database.transact(lambda tx: table.lease_due(tx, limit, after_owner=after_owner))


async def store(
    database: Database, row: LeasedRow, *, due_at: dt.datetime | None = None, error: str | None = None
) -> None:
    await database.transact(lambda tx: LETTERS.store(tx, row, due_at, error, 60.0))


async def stored_letters(service: Service, columns: str) -> list[tuple[object, ...]]:
    return await service.run_sql(f"select {columns} from letters order by id")  # pyright: ignore[reportArgumentType]


async def test_rows_of_the_condition_are_leased_in_the_order_of_the_table(database: Database) -> None:
    await add(database, "letter", 1, 2, 3)
    await add(database, "parcel", 4)

    first = await lease(database, LETTERS, limit=2)
    rest = await lease(database, LETTERS)

    assert sorted(row.key for row in first) == [2, 3]
    assert [(row.key, row.attempts) for row in rest] == [(1, 1)]
    assert len({row.lease_id for row in (*first, *rest)}) == 2


@pytest.mark.parametrize(("table", "kind"), [(LETTERS, "letter"), (PARCELS, "parcel")], ids=["id", "attempts"])
async def test_a_process_that_lost_its_lease_can_neither_renew_it_nor_commit(
    database: Database, service: Service, table: RowTable, kind: str
) -> None:
    await add(database, kind, 1)
    [lost] = await lease(database, table)
    await database.transact(table.fence(lost).check)
    assert await database.transact(table.fence(lost).renew)
    assert await lease(database, table) == []

    await service.run_sql("update letters set due_at = now(), wanted_at = now()")
    [held] = await lease(database, table)

    assert held.attempts == 2
    assert not await database.transact(table.fence(lost).renew)
    with pytest.raises(LeaseLost):
        await database.transact(table.fence(lost).check)
    assert await database.transact(table.fence(held).renew)
    await database.transact(table.fence(held).check)


async def test_a_renewal_makes_a_lease_longer_and_never_shorter(database: Database, service: Service) -> None:
    await add(database, "letter", 1)
    await add(database, "parcel", 2)
    [letter], [parcel] = await lease(database, LETTERS), await lease(database, PARCELS)
    await service.run_sql("update letters set due_at = now() + interval '1 second'")

    await database.transact(LETTERS.fence(letter).renew)
    await database.transact(PARCELS.fence(parcel).renew)

    [(short,), _] = await stored_letters(service, f"due_at > now() + interval '{LEASE_SECONDS - 5} seconds'")
    [_, (long,)] = await stored_letters(service, "wanted_at > now() + interval '59 minutes'")
    assert short
    assert long


async def test_rows_are_leased_in_turns_of_owners(database: Database) -> None:
    await add(database, "parcel", 1, 2, owner=7)
    await add(database, "parcel", 3, owner=8)

    owners = [row.owner for after in (-1, 7, 8, -1) for row in await lease(database, PARCELS, 1, after)]

    assert owners == [7, 8, 7]


async def test_the_time_until_the_next_due_row_leaves_out_excluded_rows(database: Database, service: Service) -> None:
    assert await database.read(LETTERS.seconds_until_due) is None
    await add(database, "letter", 1, 2)
    await service.run_sql("update letters set due_at = now() + id * interval '1 hour'")

    hours = [
        round((await database.read(lambda r, ids=ids: LETTERS.seconds_until_due(r, ids)) or 0) / 3600)
        for ids in ((), [1])
    ]

    assert hours == [1, 2]


async def test_a_success_is_stored_with_the_next_time_and_resets_the_attempts(
    database: Database, service: Service
) -> None:
    await add(database, "letter", 1)
    [row] = await lease(database, LETTERS)
    tomorrow = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)

    await store(database, row, due_at=tomorrow)

    assert await stored_letters(service, "due_at, attempts, lease_id, error") == [(tomorrow, 0, None, None)]


async def test_a_failure_is_stored_with_its_text_and_the_row_is_put_off(database: Database, service: Service) -> None:
    await add(database, "letter", 1)
    [row] = await lease(database, LETTERS)

    await store(database, row, error="no answer")

    assert await stored_letters(service, "due_at > now() + interval '50 seconds', attempts, lease_id, error") == [
        (True, 1, None, "no answer")
    ]


@pytest.mark.parametrize("due_at", ["null", "now() - interval '1 second'"])
async def test_a_due_time_set_during_the_work_is_kept(database: Database, service: Service, due_at: str) -> None:
    await add(database, "letter", 1)
    [row] = await lease(database, LETTERS)
    await service.run_sql(f"update letters set due_at = {due_at}")  # pyright: ignore[reportArgumentType]

    await store(database, row, due_at=dt.datetime.now(dt.UTC) + dt.timedelta(days=1))

    assert await stored_letters(service, "coalesce(due_at < now(), true)") == [(True,)]


async def test_the_result_of_a_lost_lease_is_not_stored(database: Database, service: Service) -> None:
    await add(database, "letter", 1)
    [lost] = await lease(database, LETTERS)
    await service.run_sql("update letters set due_at = now()")
    [held] = await lease(database, LETTERS)

    await store(database, lost, error="too late")

    assert await stored_letters(service, "attempts, lease_id, error") == [(2, held.lease_id, None)]


async def test_the_work_of_a_table_handles_each_row_once_under_its_lease(
    database: Database, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Letters(TableWork):
        name = "letters"
        channels = ("letters",)
        max_concurrent = 2

        async def handle(self, row: LeasedRow) -> int:
            handled.append(row.key)
            await store(self.database, row)
            return 1

    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.05)
    handled = list[int]()
    await add(database, "letter", 1, 2, 3)

    assert await handle_all(Letters(database, LETTERS)) == 3

    assert sorted(handled) == [1, 2, 3]
    assert await stored_letters(service, "due_at, lease_id") == [(None, None)] * 3
