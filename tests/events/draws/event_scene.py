"""An event that opens with a draw by a real round of the beacon, whose time a test moves to one hour from now."""

import datetime as dt
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from holdfast.events.seats import drawn
from holdfast.events.seats.drawn import EVENT_DRAWS
from tests.events.draws.draw_steps import DrawSteps, list_closing
from tests.events.pages.own_registration import own_path
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Client, Service


@dataclass
class EventDraw(DrawSteps):
    """An event that opens at `closes`, its organizer, and the polling addresses of people by their names."""

    ada: Client
    event: dict[str, Any]
    polls: dict[str, str]

    @property
    def path(self) -> str:
        return f"/api/events/{self.event['id']}"

    async def enter(self, *names: str) -> None:
        """Let people register, one after the other, and give them their tickets."""
        for name in names:
            self.polls[name] = await self.ada.register(self.event["id"], email=f"{name}@example.com")
        await self.service.settle()

    async def enter_late(self, name: str) -> None:
        """Let a guest register after the list has closed."""
        await self.enter(name)
        at = {"at": self.closes + dt.timedelta(seconds=10)}
        last = "(select user_id from registrations order by arrival desc limit 1)"
        for statement in (
            f"update registrations set received_at = %(at)s where user_id = {last}",
            f"update event_entries set entered_at = %(at)s where user_id = {last}",
            f"update log_pending set received_at = array[%(at)s::timestamptz] where user_ids = array[{last}]",
        ):
            await self.service.run_sql(statement, **at)

    async def status(self, name: str) -> str:
        """What polling says: the status, or the code of the problem."""
        answer = (await self.ada.get(self.polls[name])).json()
        return answer["data"]["status"] if "data" in answer else answer["code"]

    async def statuses(self, *names: str) -> list[str]:
        return [await self.status(name) for name in names]

    async def change(self, status: int = 200, **fields: Any) -> Mapping[str, Any]:
        answer = await self.ada.patch(self.path, {"event": fields})
        assert answer.status_code == status, answer.text
        return answer.json()

    async def freeze_in_log(self) -> None:
        """Freeze the list, in the sealed log."""
        await self.seal()
        if await self.freeze():  # the log was told who is confirmed
            await self.seal()
            await self.freeze()
        await self.seal()

    async def give_places(self) -> None:
        """Give the places that are due."""
        await drawn.place_due(self.service.database)


@asynccontextmanager
async def opening_event(service: Service, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> AsyncGenerator[EventDraw]:
    """An event that opens with a draw."""
    async with list_closing(service, monkeypatch) as (closes, double):
        ada = await service.organizer()
        event = await ada.create_event(opens_at=closes.isoformat(), **fields)
        yield EventDraw(service, closes, double, EVENT_DRAWS, ada, event, {})


async def own_page_address(draw: EventDraw, name: str) -> str:
    """The address in the mails of a guest."""
    return await own_path(draw.service, draw.event["id"], f"{name}@example.com")


async def confirm_entries(draw: EventDraw, *names: str) -> None:
    """Press the button on the page of each of these people."""
    for name in names:
        answer = await press_confirm(draw, await own_page_address(draw, name))
        assert answer.status_code == 303, answer.text


async def press_confirm(draw: EventDraw, address: str) -> httpx2.Response:
    return await Visitor(draw.service).http.post(f"{address}/confirm", headers={"sec-fetch-site": "same-origin"})
