"""Which files five requests cross: `python -m tests.walk` lists those of which a function runs, with what follows.

POST /api/registrations               until the answer
tools/call adjust_pool_quantity       until the answer
an order's webhook                    until the platform has the new level
a paid registration                   from the form until the seat
a visitor of a queue                  from joining until the token is verified
"""

import asyncio
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
from tests import support
from tests.events.queues.queue_scene import open_queue
from tests.helpers import payments
from tests.helpers.data_directories import migrated_database, scratch_directory
from tests.helpers.platform_shop import DOMAIN
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory import support as inventory
from tests.inventory.sync import sync_scene as sync

ROOT = Path(holdfast.__file__).parent


async def crossed(request: Callable[[], Awaitable[Any]]) -> list[str]:
    """The files that a request crosses when it comes for the second time, so that its caller is known.

    The demo, and what the process does about its own notifications, are left out.
    """
    files: set[str] = set()

    def called(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT) and not is_listener(asyncio.current_task()):
            files.add(path.relative_to(ROOT).as_posix())

    await request()
    sys.setprofile(called)
    await request()
    sys.setprofile(None)
    return sorted(files)


def is_listener(task: asyncio.Task[Any] | None) -> bool:
    return task is not None and task.get_name().endswith("listener")


async def walk_events(directory: Path) -> None:
    async with payments.paying(support.unlimited(migrated_database(EVENTS, directory), directory)) as scene:
        organizer = await scene.organizer()
        free = await organizer.create_event()
        paid = await scene.event(organizer, capacity=10)
        emails = (f"ann{number}@example.com" for number in range(10))

        async def register() -> None:
            await organizer.register(free["id"], email=next(emails))

        queue = await open_queue(scene.service, organizer)
        visitors = (f"visitor{number}" for number in range(10))

        async def join_and_verify() -> None:
            visitor = next(visitors)
            await queue.join(visitor)
            assert await queue.tick() == 1
            assert (await queue.verify(await queue.token(visitor))).status_code == 200

        async def register_and_pay() -> None:
            buyer = await scene.register(paid, next(emails))
            await buyer.pay()
            await scene.deliver()

        show("POST /api/registrations", await crossed(register))
        show("a paid registration", await crossed(register_and_pay))
        show("a visitor of a queue", await crossed(join_and_verify))
        assert await scene.counts(paid) == {"registered": 2}


async def walk_inventory(directory: Path) -> None:
    settings = inventory.unlimited(migrated_database(INVENTORY, directory), directory)
    async with sync.open_pooled_shop(settings) as scene:
        orders: list[WebhookMessage] = []
        scene.platform.world.on_message.append(orders.append)

        async def sell() -> None:
            scene.platform.sell(DOMAIN, SaleLine(scene.variants["Single"].id, 1))
            [order] = [message for message in orders if message.topic == "orders/create"]
            orders.clear()
            await deliver(scene.shop, order.topic, order.payload)
            await handle(scene.inventory)
            await scene.end_push_pause()
            await scene.sync_due()

        show("tools/call adjust_pool_quantity", await crossed(lambda: scene.adjust(-6)))
        show("an order's webhook", await crossed(sell))
        assert scene.levels() == (36, 6, 3)


def show(request: str, files: list[str]) -> None:
    print(f"{request} crosses {len(files)} files:", *files, sep="\n  ")


async def main() -> None:
    directory = scratch_directory()
    await walk_events(directory)
    await walk_inventory(directory)


if __name__ == "__main__":
    asyncio.run(main())
