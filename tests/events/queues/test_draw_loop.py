"""The loops that run in every process: they close, freeze, seal and draw a list by themselves, by the real clock."""

import datetime as dt
from dataclasses import replace

import pytest

from holdfast.events.log import sealing
from holdfast.events.queues import release
from holdfast.events.queues.places import QUEUE_DRAWS
from holdfast.events.service import DRAWS
from holdfast_verify.formats import beacon, drawn_order
from tests.events.draws.beacon_double import serving_beacon
from tests.events.queues.draw_scene import ROUND, DrawScene
from tests.events.queues.queue_scene import open_queue
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually
from tests.helpers.outside_servers import client_reaching


async def test_loops_of_two_processes_draw_a_list_without_help(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_order, "PAUSE", dt.timedelta(seconds=4))
    monkeypatch.setattr(drawn_order, "FREEZE_BEFORE", dt.timedelta(seconds=1))
    ((now,),) = await service.run_sql("select clock_timestamp()")
    closes = now + dt.timedelta(seconds=3)
    monkeypatch.setattr(beacon, "GENESIS", closes + drawn_order.PAUSE - (ROUND - 1) * beacon.PERIOD)
    async with serving_beacon(closes + dt.timedelta(days=1)) as double:
        resources = service.database.resources
        settings = resources.settings.model_copy(update={"beacon_url": double.server.url.rstrip("/")})
        service.database.resources = replace(resources, settings=settings, beacon=client_reaching(double.server))
        queue = await open_queue(service, draw_at=closes.isoformat(), release_rate=600)
        await queue.join("ann", "bob", "cyd")
        loops = (sealing.LOOP.run, release.LOOP.run, *(DRAWS.loops[0].run,) * 2)

        async def is_empty() -> bool:
            return not await queue.length()

        async with run_in_background(*(loop(service.database) for loop in loops)):
            await eventually(is_empty, 30)
            scene = DrawScene(service, closes, double, QUEUE_DRAWS, queue)
            await scene.seal()
            assert await scene.faults() == []
            assert [entry["kind"] for entry in await scene.log()].count("draw") == 1
            assert len(double.server.requests) <= 2
        service.database.resources = resources
