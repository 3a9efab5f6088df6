"""A stream shows a change of which no notice arrived, and no later than is written down."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from holdfast.inventory.availability.cache import MAX_STALENESS_SECONDS
from tests.faults.lost_notifications import SLACK_SECONDS, cut_off_listener, kill_before_its_notice, start_dying_process
from tests.helpers.inventory_service import SINGLE, Shop
from tests.helpers.processes import Process, running_processes


class Storefront:
    """A client who reads the stream of a shop from a process."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    @classmethod
    @contextlib.asynccontextmanager
    async def open_at(cls, process: Process, shop: Shop) -> AsyncGenerator["Storefront"]:
        async with httpx2.AsyncClient(timeout=30) as http:
            availability = (await http.get(f"{process.url}/storefront/availability?{shop.signed_query()}")).json()
            async with http.stream("GET", availability["stream_url"]) as stream:
                storefront = cls(stream.aiter_lines())
                await storefront.next()
                yield storefront

    async def next(self) -> Any:
        """The next event's data."""
        async for line in self._lines:
            if line.startswith("data: "):
                return json.loads(line.removeprefix("data: "))
        raise AssertionError("The stream has ended.")

    async def shows_after(self, quantity: int) -> float:
        """Seconds until it shows that `quantity` can be sold."""
        began = time.monotonic()
        while (await self.next())["variants"].get(SINGLE) != quantity:
            pass
        return time.monotonic() - began


async def sell(process: Process, shop: Shop, pool_id: int) -> None:
    """Take one unit."""
    call = {"name": "adjust_pool_quantity", "arguments": {"pool_id": pool_id, "delta": -1}}
    async with httpx2.AsyncClient(timeout=30, headers={"authorization": f"Bearer {shop.key}"}) as http:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        answer = await http.post(f"{process.url}/mcp", json=message)
        assert not answer.json()["result"].get("isError"), answer.text


async def test_a_change_whose_process_died_before_its_notice_is_streamed_after_a_poll(
    shop: Shop, inventory_url: str, tmp_path: Path
) -> None:
    pool = await shop.create_golden_pool()
    with start_dying_process(inventory_url, tmp_path, service="inventory") as (works, dies):
        async with Storefront.open_at(works, shop) as storefront:
            await sell(dies, shop, pool["id"])
            await asyncio.to_thread(kill_before_its_notice, inventory_url, dies)
            took = await storefront.shows_after(49)

    assert took < MAX_STALENESS_SECONDS + SLACK_SECONDS


async def test_streams_go_on_while_what_listens_is_cut_off(shop: Shop, inventory_url: str, tmp_path: Path) -> None:
    pool = await shop.create_golden_pool()
    with running_processes(inventory_url, tmp_path, 2, service="inventory") as (one, two):
        async with Storefront.open_at(one, shop) as storefront:
            async with cut_off_listener(inventory_url):
                await sell(two, shop, pool["id"])
                took = await storefront.shows_after(49)
                await sell(two, shop, pool["id"])
            afterwards = await storefront.shows_after(48)

    assert max(took, afterwards) < MAX_STALENESS_SECONDS + SLACK_SECONDS
