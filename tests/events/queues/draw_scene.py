"""A queue with a draw by a real round of the beacon, whose time a test moves to one hour from now."""

import datetime as dt
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from holdfast.events.audit.audit import Audit
from holdfast.events.audit.draw import check_draw
from holdfast.events.draws import beacon
from holdfast.events.draws.order import PAUSE
from holdfast.events.log import sealing
from holdfast.events.queues import drawing
from holdfast.kit.tlog.tree import append, leaf_hash, parse_bundle
from tests.events.draws.beacon_double import BeaconDouble, serving_beacon
from tests.events.queues.scene import QueueScene, open_line
from tests.outside import reaching
from tests.support import Service

ROUND = 657413


@dataclass
class DrawScene:
    """A queue whose list closes at `closes`, and the beacon. Nothing is sealed, frozen or drawn by itself."""

    line: QueueScene
    closes: dt.datetime
    beacon: BeaconDouble

    @property
    def round_at(self) -> dt.datetime:
        return self.closes + PAUSE

    async def seal(self) -> None:
        """Seal and sign the log."""
        await sealing.seal(self.line.service.database)
        await sealing.sign(self.line.service.database)

    async def freeze(self, seconds: float = 1) -> bool:
        """Freeze what is due, so many seconds after the list closes. Returns whether it waits for its log."""
        return await drawing.freeze_due(self.line.service.database, self.closes + dt.timedelta(seconds=seconds))

    async def draw(self, seconds: float = 121) -> None:
        """Draw what is due, so many seconds after the list closes."""
        self.beacon.now = now = self.closes + dt.timedelta(seconds=seconds)
        await drawing.draw_due(self.line.service.database, drawing.Rounds(), now)

    async def join_late(self, visitor_id: str) -> None:
        """Let a visitor join who comes after the list has closed."""
        await self.line.join(visitor_id)
        at = {"at": self.closes + dt.timedelta(seconds=10), "name": visitor_id, "names": [visitor_id]}
        run = self.line.service.run_sql
        await run("update queue_visitors set joined_at = %(at)s where visitor_id = %(name)s", **at)
        await run("update log_pending set received_at = array[%(at)s::timestamptz] where visitor_ids = %(names)s", **at)

    async def log(self) -> list[dict[str, Any]]:
        """The sealed entries of the log."""
        return [msgspec.json.decode(entry) for entry in await self._entries()]

    async def faults(self) -> list[str]:
        """What an audit of the sealed log finds wrong with the draw. The times of the scene are not real."""
        entries = await self._entries()
        ((origin,),) = await self.line.service.run_sql(
            "select origin from log_heads join logs on logs.id = log_id where queue_id is not null"
        )
        audit = Audit(origin)
        for entry in entries:
            audit.read(entry)
        findings = [finding.message for finding in audit.findings if finding.rule in {"form", "release"}]
        leaves = [leaf_hash(entry) for entry in entries]
        return findings + check_draw(await self.log(), origin, lambda size: append(0, {}, leaves[:size]).root)

    async def _entries(self) -> list[bytes]:
        rows = await self.line.service.run_sql(
            "select entries from log_entries join logs on logs.id = log_id where queue_id is not null order by number"
        )
        return [entry for (content,) in rows for entry in parse_bundle(content)]


@asynccontextmanager
async def drawing_line(service: Service, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[DrawScene]:
    """A queue with a draw."""
    ((now,),) = await service.run_sql("select date_trunc('second', now())")
    closes = now + dt.timedelta(hours=1)
    # A real signature exists only of a round that is past.
    monkeypatch.setattr(beacon, "GENESIS", closes + PAUSE - (ROUND - 1) * beacon.PERIOD)
    async with serving_beacon(now) as double:
        resources = service.database.resources
        settings = resources.settings.model_copy(update={"beacon_url": double.server.url.rstrip("/")})
        service.database.resources = replace(resources, settings=settings, beacon=reaching(double.server))
        try:
            yield DrawScene(await open_line(service, draw_at=closes.isoformat()), closes, double)
        finally:
            service.database.resources = resources
