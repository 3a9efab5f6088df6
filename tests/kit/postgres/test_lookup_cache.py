"""Cached look-ups expire after a while, and at once when a change is announced."""

import asyncio

import pytest

from holdfast.kit.operations.admission import Admission
from holdfast.kit.postgres import lookup_cache
from holdfast.kit.postgres.lookup_cache import LookupCache
from tests.helpers.any_bound import ANY_BOUND
from tests.helpers.events_service import Service

CHANNEL = "shelves"


class ShelfLookup:
    """Finds the number of a shelf, and notes every look-up. Numbers from 100 on depend on others."""

    def __init__(self, service: Service, max_results: int = 100) -> None:
        self.lookups: list[int] = []
        self.cache = LookupCache(
            ANY_BOUND, service.database, CHANNEL, int, self._look_up, lambda value: value < 100, max_results
        )
        self.looking = asyncio.Event()
        self.resume = asyncio.Event()
        self.resume.set()

    async def _look_up(self, number: int) -> int:
        self.lookups.append(number)
        self.looking.set()
        await self.resume.wait()
        if number < 0:
            raise LookupError
        return number


async def announce(service: Service, payload: str) -> None:
    await service.database.transact(lambda tx: tx.notify(CHANNEL, payload))


@pytest.fixture
async def shelf(service: Service, only_notices_end_caches: None) -> ShelfLookup:
    await service.wait_for_notices()
    return ShelfLookup(service)


async def test_a_result_is_looked_up_once_while_it_is_kept(shelf: ShelfLookup) -> None:
    assert [await shelf.cache.get(key) for key in (1, 1, 2, 1)] == [1, 1, 2, 1]
    assert shelf.lookups == [1, 2]


async def test_a_wait_for_a_look_up_counts_as_work_in_progress(service: Service) -> None:
    admission, answer_is_there = Admission(), asyncio.Event()

    async def look_up(number: int) -> int:
        await answer_is_there.wait()
        return number

    cache = LookupCache(ANY_BOUND, service.database, CHANNEL, int, look_up, wait_context=admission.work)
    crowd = [asyncio.create_task(cache.get(1)) for _ in range(3)]
    await asyncio.sleep(0)
    assert admission.in_progress == 3

    answer_is_there.set()
    assert await asyncio.gather(*crowd) == [1, 1, 1]
    assert await cache.get(1) == 1
    assert admission.in_progress == 0


async def test_a_crowd_waits_for_one_look_up_which_began_after_every_announced_change(shelf: ShelfLookup) -> None:
    shelf.resume.clear()
    crowd = [asyncio.create_task(shelf.cache.get(key)) for key in (1, 1, 1, -1, -1)]
    await shelf.looking.wait()
    crowd[0].cancel()
    shelf.cache.forget("1")
    later = [asyncio.create_task(shelf.cache.get(1)) for _ in range(2)]
    await asyncio.sleep(0)
    shelf.resume.set()
    answers = await asyncio.gather(*crowd, *later, return_exceptions=True)

    assert [answer if isinstance(answer, int) else type(answer) for answer in answers] == [
        asyncio.CancelledError,
        *(1, 1, LookupError, LookupError, 1, 1),
    ]
    assert sorted(shelf.lookups) == [-1, 1, 1]


async def test_a_result_is_looked_up_again_when_its_time_is_over(
    shelf: ShelfLookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_cache, "TTL_SECONDS", 0.0)

    for _ in range(3):
        await shelf.cache.get(1)

    assert shelf.lookups == [1, 1, 1]


async def test_the_cache_of_look_ups_is_bounded(service: Service) -> None:
    shelf = ShelfLookup(service, max_results=3)

    for number in (1, 2, 3, 4, 4, 1):
        await shelf.cache.get(number)

    assert shelf.lookups == [1, 2, 3, 4, 1]


async def test_an_announcement_ends_the_named_result_and_those_that_depend_on_it(
    service: Service, shelf: ShelfLookup
) -> None:
    with shelf.cache.forgetting():
        for number in (1, 2, 100):
            await shelf.cache.get(number)
        await announce(service, "1")

        for number in (1, 2, 100):
            await shelf.cache.get(number)

    assert shelf.lookups == [1, 2, 100, 1, 100]


async def test_an_announcement_without_a_name_ends_all_results(service: Service, shelf: ShelfLookup) -> None:
    with shelf.cache.forgetting():
        for number in (1, 2):
            await shelf.cache.get(number)
        await announce(service, "")

        for number in (1, 2):
            await shelf.cache.get(number)

    assert shelf.lookups == [1, 2, 1, 2]


async def test_a_result_is_not_kept_when_a_change_was_announced_meanwhile(service: Service, shelf: ShelfLookup) -> None:
    shelf.resume.clear()
    with shelf.cache.forgetting():
        during = asyncio.create_task(shelf.cache.get(1))
        await shelf.looking.wait()
        await announce(service, "1")
        shelf.resume.set()

        assert (await during, await shelf.cache.get(1)) == (1, 1)

    assert shelf.lookups == [1, 1]


async def test_a_failed_look_up_is_not_cached(shelf: ShelfLookup) -> None:
    for _ in range(2):
        with pytest.raises(LookupError):
            await shelf.cache.get(-1)

    assert shelf.lookups == [-1, -1]
