"""Changes are pending from their announcement until they were handled to the end."""

import asyncio
from collections.abc import Set

from holdfast.kit.postgres.announced_changes import AnnouncedChanges
from tests.helpers.events_service import Service, eventually


async def test_a_change_is_pending_while_it_is_handled(service: Service) -> None:
    begun, released = asyncio.Event(), asyncio.Event()

    async def handle(ids: Set[int] | None) -> None:
        if ids is None or 7 in ids:
            begun.set()
            await released.wait()

    changes = AnnouncedChanges(service.database, ["doors"], lambda _: True, handle)
    async with asyncio.timeout(20):
        with changes.listening():
            await service.database.transact(lambda tx: tx.notify("doors", "7"))
            await begun.wait()
            assert changes.is_pending(7)

            released.set()
            await eventually(lambda: not changes.is_pending(7))
