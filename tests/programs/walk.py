"""The files that five requests cross, for readers who are new here: `python -m tests.programs.walk` prints them.

A file is crossed if a function of it runs, from the request until the end of what it causes. Left out are the demo's
partners, and how the process hears its own notices.
"""

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import holdfast
from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.platform_state import WebhookMessage
from tests.events.queues.queue_scene import open_queue
from tests.helpers import events_service as events
from tests.helpers import inventory_service as inventory
from tests.helpers.data_directories import migrated_database, scratch_directory
from tests.helpers.payments import open_payment_scene
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.sync.sync_scene import deliver_and_sync, open_pooled_shop

ROOT = Path(holdfast.__file__).parent


async def walk(title: str, request: Callable[[], Awaitable[Any]]) -> None:
    """Print the files that a request crosses when it comes for the second time, so that its caller is known."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path, task = Path(frame.f_code.co_filename), asyncio.current_task()
        is_listener = task is not None and task.get_name().endswith("listener")
        if event == "call" and path.is_relative_to(ROOT) and not is_listener:
            files.add(path.relative_to(ROOT).as_posix())

    await request()
    sys.setprofile(note)
    try:
        await request()
    finally:
        sys.setprofile(None)
    print(f"{title}: {len(files)} files", *sorted(files), sep="\n  ")


async def walk_events(directory: Path) -> None:
    settings = events.unlimited(migrated_database(EVENTS, directory), directory)
    async with open_payment_scene(settings) as scene:
        organizer = await scene.organizer()
        free, paid = await organizer.create_event(), await scene.event(organizer, capacity=10)
        queue = await open_queue(scene.service, organizer)
        names = (f"ann{number}" for number in itertools.count())

        async def register() -> None:
            await organizer.register(free["id"], email=f"{next(names)}@example.com")

        async def register_and_pay() -> None:
            buyer = await scene.register(paid, f"{next(names)}@example.com")
            await buyer.pay()
            await scene.deliver()

        async def join_and_verify() -> None:
            name = next(names)
            await queue.join(name)
            assert await queue.tick() == 1
            assert (await queue.verify(await queue.token(name))).status_code == 200

        await walk("POST /api/registrations, until the answer", register)
        await walk("a paid registration, from the form until the seat", register_and_pay)
        await walk("a visitor of a queue, from joining until the token is verified", join_and_verify)
        assert await scene.counts(paid) == {"registered": 2}


async def walk_inventory(directory: Path) -> None:
    settings = inventory.unlimited(migrated_database(INVENTORY, directory), directory)
    async with open_pooled_shop(settings) as scene:
        messages: list[WebhookMessage] = []
        scene.platform.state.on_message.append(messages.append)

        async def sell() -> None:
            scene.platform.sell(DOMAIN, SaleLine(scene.variants["Single"].id, 1))
            [order] = [message for message in messages if message.topic == "orders/create"]
            messages.clear()
            await deliver_and_sync(scene, (order.topic, order.payload))

        await walk("tools/call adjust_pool_quantity, until the answer", lambda: scene.adjust(-6))
        await walk("an order's webhook, until the platform has the new level", sell)
        assert scene.levels() == (36, 6, 3)


async def main() -> None:
    directory = scratch_directory()
    await walk_events(directory)
    await walk_inventory(directory)


if __name__ == "__main__":
    asyncio.run(main())
