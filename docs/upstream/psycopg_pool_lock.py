import asyncio
import contextlib

from psycopg_pool import AsyncConnectionPool
from psycopg_pool.pool_async import WaitingClient


class Connection:
    _pool = None


async def turns_until_free_connection(lock):
    pool = AsyncConnectionPool("", min_size=1, max_size=2, open=False)
    pool._closed, pool._lock = False, lock
    pool._pool.append(Connection())
    waiting = WaitingClient()
    waiter = asyncio.create_task(waiting.wait(5))
    pool._waiting.append(waiting)
    await asyncio.sleep(0)
    turns = 0
    async with waiting._cond:
        handover = asyncio.create_task(pool._add_to_pool(Connection()))
        await asyncio.sleep(0)
        request = asyncio.create_task(pool._getconn_unchecked(5))
        while not request.done() and turns < 10:
            turns += 1
            await asyncio.sleep(0)
    await asyncio.gather(handover, request, waiter)
    return turns


print("with the lock:", asyncio.run(turns_until_free_connection(asyncio.Lock())))
print("without it:", asyncio.run(turns_until_free_connection(contextlib.nullcontext())))
