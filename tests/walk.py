"""Which files a request crosses: `python -m tests.walk` lists those of which a function runs until it is answered."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import holdfast
from holdfast.events.product import EVENTS
from holdfast.inventory.product import INVENTORY
from holdfast.kit import embedded
from tests import support
from tests.inventory import support as inventory

ROOT = Path(holdfast.__file__).parent


async def crossed(request: Callable[[], Awaitable[Any]]) -> list[str]:
    """The files a request crosses whose caller is known already, as most are.

    What the process hears of its own notifications, on another connection, does not belong to the request.
    """
    files: set[str] = set()

    def called(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT) and not is_listener(asyncio.current_task()):
            files.add(str(path.relative_to(ROOT)))

    await request()
    sys.setprofile(called)
    await request()
    sys.setprofile(None)
    return sorted(files)


def is_listener(task: asyncio.Task[Any] | None) -> bool:
    return task is not None and task.get_name().endswith("listener")


async def main() -> None:
    directory = embedded.scratch_directory()
    url = embedded.database_url(directory, "events")
    EVENTS.migrate(url)
    async with support.running(support.unlimited(url, directory)) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        show("POST /api/registrations", await crossed(lambda: ada.register(event["id"], email="ann@example.com")))
    url = embedded.database_url(directory, "inventory")
    INVENTORY.migrate(url)
    async with inventory.running(inventory.unlimited(url, directory)) as stock:
        shop = await stock.shop()
        pool = await shop.pool()
        sold = {"pool_id": pool["id"], "delta": -6}
        show("tools/call adjust_pool_quantity", await crossed(lambda: shop.call("adjust_pool_quantity", **sold)))


def show(request: str, files: list[str]) -> None:
    print(f"{request} crosses {len(files)} files:", *files, sep="\n  ")


if __name__ == "__main__":
    asyncio.run(main())
