"""Rows are handled when they are due: after a notice, by time, by poll, and never more than the limit at once."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from uuid import UUID, uuid4

import pytest
from msgspec import Struct

from holdfast.events.resources import Database, Reader, Tx
from holdfast.kit.background import leases, row_work
from holdfast.kit.background.leases import LeaseFence
from holdfast.kit.background.row_work import RetryBackoff, RowWork
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually
from tests.helpers.row_work import handle_all


class Parcel(Struct):
    id: int
    lease_id: UUID


class Parcels(RowWork[Parcel]):
    """Handles parcels by putting their numbers on a list. They wait for `may_finish`."""

    name = "parcels"
    channels = ("parcels",)
    max_concurrent = 2

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.begun: list[int] = []
        self.finished: list[int] = []
        self.polls = 0
        self.may_finish = asyncio.Event()
        self.may_finish.set()

    async def lease(self, limit: int, excluded: Sequence[int], *, scan_all: bool) -> list[Parcel]:
        self.polls += scan_all

        async def lease(tx: Tx) -> list[Parcel]:
            return await tx.rows(
                Parcel,
                """
                update parcels set due_at = clock_timestamp() + interval '10 seconds', lease_id = %(lease_id)s
                 where id = any(array(select id from parcels where due_at <= now()
                                       order by due_at limit %(limit)s for update skip locked))
                returning id, lease_id
                """,
                {"lease_id": uuid4(), "limit": limit},
            )

        return await self.database.transact(lease)

    async def renew(self, row: Parcel) -> bool:
        return await self.database.transact(LeaseFence("parcels", "id", [row.id], row.lease_id).renew)

    async def seconds_until_due(self, reader: Reader, excluded: Sequence[int]) -> float | None:
        return await reader.value("select extract(epoch from min(due_at) - clock_timestamp())::float8 from parcels")

    async def handle(self, row: Parcel) -> int:
        self.begun.append(row.id)
        await self.may_finish.wait()
        await self.database.transact(
            lambda tx: tx.run("update parcels set due_at = null where id = %(id)s", {"id": row.id})
        )
        self.finished.append(row.id)
        return 1


@pytest.fixture
async def work(service: Service) -> Parcels:
    await service.run_sql("create table parcels (id bigint primary key, due_at timestamptz, lease_id uuid)")
    return Parcels(service.database)


def running_loop(work: Parcels) -> AbstractAsyncContextManager[None]:
    return run_in_background(row_work.run(work.database, work))


async def add(work: Parcels, *ids: int, seconds: float = 0.0, notify: bool = True) -> None:
    """Store parcels that are due in some seconds."""

    async def store(tx: Tx) -> None:
        await tx.run(
            "insert into parcels select id, now() + %(seconds)s * interval '1 second' from unnest(%(ids)s::int[]) id",
            {"ids": list(ids), "seconds": seconds},
        )
        if notify:
            await tx.notify("parcels", "new")

    await work.database.transact(store)


async def has_finished(work: Parcels, count: int) -> bool:
    return len(work.finished) == count


@pytest.mark.parametrize(("notify", "poll_seconds"), [(True, 3_600.0), (False, 0.2)])
async def test_a_row_is_found_by_its_notice_or_by_a_poll(
    work: Parcels, monkeypatch: pytest.MonkeyPatch, notify: bool, poll_seconds: float
) -> None:
    monkeypatch.setattr(row_work, "POLL_SECONDS", poll_seconds)
    async with running_loop(work):
        await eventually(lambda: work.polls)
        await add(work, 1, notify=notify)
        await eventually(lambda: has_finished(work, 1))


async def test_a_row_is_handled_at_its_time_without_a_notice(work: Parcels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_work, "POLL_SECONDS", 3_600.0)
    await add(work, 1, seconds=0.3)
    async with running_loop(work):
        await eventually(lambda: has_finished(work, 1))


async def test_rows_are_handled_up_to_the_limit_at_once_and_all_in_the_end(work: Parcels) -> None:
    work.may_finish.clear()
    await add(work, *range(7))
    async with running_loop(work):
        await eventually(lambda: len(work.begun) == 2)
        await add(work, 8)
        assert len(work.begun) == 2
        work.may_finish.set()
        await eventually(lambda: has_finished(work, 8))
    assert sorted(work.begun) == sorted(work.finished)


async def test_a_row_that_another_transaction_has_locked_is_handled_when_it_is_free(work: Parcels) -> None:
    await add(work, 1, 2)

    async def lock(tx: Tx) -> None:
        await tx.tuples("select from parcels where id = 1 for update")
        begun.set()
        await eventually(lambda: has_finished(work, 1))
        assert work.finished == [2]

    begun = asyncio.Event()
    locking = asyncio.create_task(work.database.transact(lock))
    await begun.wait()
    async with running_loop(work):
        await locking
        await eventually(lambda: has_finished(work, 2))


async def test_a_row_of_a_lost_lease_is_left_to_the_process_that_has_it(
    work: Parcels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 3600.0)  # so that the lease is lost, and does not expire
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.05)
    work.may_finish.clear()
    await add(work, 1)
    handling = asyncio.create_task(handle_all(work))
    await eventually(lambda: work.begun)
    await work.database.transact(lambda tx: tx.run("update parcels set lease_id = gen_random_uuid()"))

    async with asyncio.timeout(5):
        assert await handling == 1
    assert work.finished == []


def test_retry_pauses_double_up_to_the_longest() -> None:
    backoff = RetryBackoff(1.0, 300.0)

    assert [backoff.pause(attempts) for attempts in (1, 2, 3, 9, 10, 100)] == [1, 2, 4, 256, 300, 300]
