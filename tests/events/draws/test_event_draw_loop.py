"""The loops that run in every process: they enter, seal, freeze, draw and place an event, by the real clock."""

import asyncio
import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.events.log import sealing
from holdfast.events.seats import settlement
from holdfast.events.seats.drawn import EVENT_DRAWS
from holdfast.events.service import DRAWS
from holdfast.events.settings import Settings
from holdfast_verify.check.promise_watch import STATUS_TEXTS
from holdfast_verify.formats import beacon, drawn_order
from tests.events.draws.beacon_double import serving_beacon
from tests.events.draws.draw_steps import ROUND
from tests.events.draws.event_scene import EventDraw
from tests.events.log.log_scene import seal_logs
from tests.events.log.verification import verify
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.outside_servers import client_reaching
from tests.helpers.serving import serve_events

PEOPLE = ("ann", "bob", "cyd")


async def test_two_processes_draw_an_event_by_themselves_and_it_is_verified_over_http(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(drawn_order, "PAUSE", dt.timedelta(seconds=4))
    monkeypatch.setattr(drawn_order, "FREEZE_BEFORE", dt.timedelta(seconds=1))
    async with (
        serve_events(settings) as service,
    ):
        ((now,),) = await service.run_sql("select clock_timestamp()")
        closes = now + dt.timedelta(seconds=3)
        monkeypatch.setattr(beacon, "GENESIS", closes + drawn_order.PAUSE - (ROUND - 1) * beacon.PERIOD)
        async with serving_beacon(closes + dt.timedelta(days=1)) as double:
            resources = service.database.resources
            changed = resources.settings.model_copy(update={"beacon_url": double.server.url.rstrip("/")})
            service.database.resources = replace(resources, settings=changed, beacon=client_reaching(double.server))
            ada = await service.organizer()
            event = await ada.create_event(opens_at=closes.isoformat(), capacity=2)
            event_draw = EventDraw(service, closes, double, EVENT_DRAWS, ada, event, {})
            loops = (settlement.LOOP.run, settlement.LOOP.run, sealing.LOOP.run, *(DRAWS.loops[0].run,) * 2)
            receipt = tmp_path / "receipt.json"

            async def is_placed() -> bool:
                return "registration_pending" not in await event_draw.statuses(*PEOPLE)

            async with run_in_background(*(loop(service.database) for loop in loops)):
                for name in PEOPLE:
                    registration = {"event_id": event["id"], "email": f"{name}@example.com"}
                    answer = (await ada.post("/api/registrations", {"registration": registration})).json()
                    event_draw.polls[name] = answer["next"]["url"]
                    receipt.write_text(json.dumps(answer))
                await eventually(is_placed, 30)
            await seal_logs(service)
            statuses = await event_draw.statuses(*PEOPLE)
            code, report = await asyncio.to_thread(verify, receipt)
            service.database.resources = resources
    assert sorted(statuses) == ["registered", "registered", "registration_rejected"]
    assert (code, report["findings"]) == (0, [])
    assert report["figures"]["arrivals"] == {"registered": 2, "rejected": 1}
    outcome = statuses[-1].removeprefix("registration_")
    assert report["checked"]["log"].startswith("number 3, entered at ")
    assert report["checked"]["now"] == STATUS_TEXTS[outcome]
