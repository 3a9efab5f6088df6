"""The pool of connections to PostgreSQL, where it differs from the library's."""

import asyncio

import pytest

from holdfast.kit.postgres.connection_pool import Pool


@pytest.mark.parametrize("turns", range(12))
async def test_a_cancelled_wait_for_a_connection_ends_and_loses_no_connection(template_url: str, turns: int) -> None:
    pool = Pool.sized(template_url, 2, "tests")
    async with pool:
        await pool.wait()
        connections = [await pool.getconn() for _ in range(2)]
        waiting = asyncio.create_task(pool.getconn())
        while not pool.get_stats().get("requests_waiting"):  # noqa: ASYNC110 - turns of the loop are counted
            await asyncio.sleep(0)

        await pool.putconn(connections[0])
        for _ in range(turns):
            await asyncio.sleep(0)
        is_answered = waiting.cancel()
        [got] = await asyncio.gather(waiting, return_exceptions=True)

        if is_answered:
            assert isinstance(got, asyncio.CancelledError)
            got = await pool.getconn()
        assert got is connections[0]
        for connection in connections:
            await pool.putconn(connection)


async def test_a_free_connection_is_given_at_once_while_others_are_handed_over(template_url: str) -> None:
    pool = Pool.sized(template_url, 4, "tests")
    turns, ended = 0, asyncio.Event()

    async def count_turns() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            await asyncio.sleep(0)

    async def use_connections() -> None:
        for _ in range(20):
            async with pool.connection():
                await asyncio.sleep(0)

    async with pool:
        await pool.resize(4, 4)
        await pool.wait()
        counting = asyncio.create_task(count_turns())
        await asyncio.gather(*(use_connections() for _ in range(5)))
        ended.set()
        await counting

    assert turns < 100
