"""Holds end by themselves: whatever process notices first gives back what they kept."""

import asyncio
import contextlib

from holdfast.inventory.settings import Database, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.book import HOLDS
from holdfast.inventory.stock.model import ReleaseHold
from holdfast.inventory.stock.operations import end_hold
from holdfast.kit.operation import Caller

BATCH = 500
PATROL_SECONDS = 5.0
"""How often to look without being told, in case a notification was lost with a connection."""


async def run(database: Database) -> None:
    """End holds whenever their time comes, until cancelled."""
    taken = asyncio.Event()
    with database.hearing(HOLDS, lambda _: taken.set()):
        while True:
            taken.clear()
            await expire(database)
            wait = await database.read(sql.next_expiry)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(taken.wait(), PATROL_SECONDS if wait is None else min(wait, PATROL_SECONDS))


async def expire(database: Database) -> int:
    """End every hold whose time has come; how many."""
    total = 0
    while due := await database.read(lambda tx: sql.expired_holds(tx, BATCH)):
        for shop_id, ids in due.items():
            total += await database.transact(lambda tx, shop=shop_id, ids=ids: _end(tx, shop, ids), shop_id)
    return total


async def _end(tx: Tx, shop_id: int, ids: list[int]) -> int:
    await sql.lock_shop(tx, shop_id)
    ended = 0
    for hold in await sql.find_holds(tx, shop_id, ids):
        if hold.released_at is None:
            command = ReleaseHold(hold_id=hold.id, reason="The hold expired.")
            await end_hold(tx, Caller(0, shop_id), command, hold, "hold expiry")
            ended += 1
    return ended
