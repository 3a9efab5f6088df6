"""The loops that run in every process: they enter, seal, freeze, draw and place an event, by the real clock."""

import asyncio
import contextlib
import datetime as dt
from dataclasses import replace

import pytest

from holdfast.events import jobs
from holdfast.events.draws import beacon, order
from holdfast.events.log import sealing
from holdfast.events.registrations import settlement
from holdfast.events.registrations.draws import EVENT_DRAWS
from tests.events.draws.beacon_double import serving_beacon
from tests.events.draws.event_scene import EventDraw
from tests.events.draws.scene import ROUND
from tests.outside import reaching
from tests.support import Service, eventually


async def test_two_processes_draw_an_event_by_themselves(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "PAUSE", dt.timedelta(seconds=4))
    monkeypatch.setattr(order, "FREEZE_BEFORE", dt.timedelta(seconds=1))
    ((now,),) = await service.run_sql("select clock_timestamp()")
    closes = now + dt.timedelta(seconds=3)
    monkeypatch.setattr(beacon, "GENESIS", closes + order.PAUSE - (ROUND - 1) * beacon.PERIOD)
    async with serving_beacon(closes + dt.timedelta(days=1)) as double:
        resources = service.database.resources
        settings = resources.settings.model_copy(update={"beacon_url": double.server.url.rstrip("/")})
        service.database.resources = replace(resources, settings=settings, beacon=reaching(double.server))
        ada = await service.organizer()
        event = await ada.create_event(opens_at=closes.isoformat(), capacity=2)
        draw = EventDraw(service, closes, double, EVENT_DRAWS, ada, event, {})
        loops = (settlement.run, settlement.run, sealing.run, jobs.draw, jobs.draw)
        running = [asyncio.create_task(loop(service.database)) for loop in loops]
        for name in ("ann", "bob", "cyd"):
            draw.polls[name] = await ada.register(event["id"], email=f"{name}@example.com")

        async def is_placed() -> bool:
            return "registration_pending" not in await draw.statuses("ann", "bob", "cyd")

        await eventually(is_placed, 30)
        for task in running:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert sorted(await draw.statuses("ann", "bob", "cyd")) == ["registered", "registered", "registration_rejected"]
        await draw.seal()
        assert await draw.faults() == []
        assert [entry["kind"] for entry in await draw.log()].count("draw") == 1
        service.database.resources = resources
