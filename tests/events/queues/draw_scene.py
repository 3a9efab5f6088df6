"""A queue with a draw by a real round of the beacon, whose time a test moves to one hour from now."""

import datetime as dt
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from holdfast.events.queues.places import QUEUE_DRAWS
from tests.events.draws.draw_steps import ROUND, DrawSteps, list_closing
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service

__all__ = ["ROUND", "DrawScene", "drawing_queue"]


@dataclass
class DrawScene(DrawSteps):
    """A queue whose list closes at `closes`."""

    queue: QueueScene

    async def join_late(self, visitor_id: str) -> None:
        """Let a visitor join who comes after the list has closed."""
        await self.queue.join(visitor_id)
        at = {"at": self.closes + dt.timedelta(seconds=10), "name": visitor_id, "names": [visitor_id]}
        run = self.queue.service.run_sql
        await run("update queue_visitors set joined_at = %(at)s where visitor_id = %(name)s", **at)
        await run("update log_pending set received_at = array[%(at)s::timestamptz] where visitor_ids = %(names)s", **at)


@asynccontextmanager
async def drawing_queue(service: Service, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[DrawScene]:
    """A queue with a draw."""
    async with list_closing(service, monkeypatch) as (closes, double):
        queue = await open_queue(service, draw_at=closes.isoformat())
        yield DrawScene(service, closes, double, QUEUE_DRAWS, queue)
