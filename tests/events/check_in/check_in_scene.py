"""An entrance: people with codes, and devices that scan them."""

import itertools
import uuid
from typing import Any

import msgspec

from holdfast.events.check_in import operations, seat_handover
from holdfast.events.check_in.model import Scan, StoreScans, Verdict
from holdfast.events.check_in.seat_handover import GiveSeats, SeatHandover
from holdfast.events.registrations.entrance_code import short_code
from holdfast.kit.contract.caller import Caller, person
from holdfast.kit.operations.runner import Runner
from tests.events.pages.own_registration import own_path
from tests.helpers.events_service import Client, Service

BEGIN_EVENT = "update events set datetime = now() - %(ago)s::interval where id = %(id)s"

_clock = itertools.count(1_800_000_000_000)


def runner(service: Service) -> Runner:
    return Runner((*operations.OPERATIONS, *seat_handover.OPERATIONS), service.database)


async def link_of(service: Service, event_id: int, name: str) -> str:
    """The signed link of a person, `ann` for ann@example.com."""
    return (await own_path(service, event_id, f"{name}@example.com")).rpartition("/")[2]


async def code_of(service: Service, event_id: int, name: str) -> str:
    """The short code of a person."""
    return str(short_code(await link_of(service, event_id, name)))


def scan_of(text: str, **fields: Any) -> Scan:
    """A scan with a new id."""
    scan = Scan(id=str(uuid.uuid4()), text=text, told_at=next(_clock))
    return msgspec.structs.replace(scan, **fields)


class Entrance:
    """The check-in of one event, as its organizer's devices reach it."""

    def __init__(self, service: Service, ada: Client, event: dict[str, Any]) -> None:
        self.service = service
        self.event_id: int = event["id"]
        self.caller: Caller = person(1, ada.id)
        self._run = runner(service)

    async def send(self, *scans: Scan, device: str = "Door 1") -> list[Verdict]:
        command = StoreScans(event_id=self.event_id, device=device, scans=list(scans))
        return await self.run(operations.STORE_SCANS, command)

    async def scan(self, name: str, device: str = "Door 1", **fields: Any) -> Verdict:
        """Scan the short code of a person."""
        text = await code_of(self.service, self.event_id, name)
        [verdict] = await self.send(scan_of(text, **fields), device=device)
        return verdict

    async def say(self, text: str, **fields: Any) -> str:
        """What the scanner says of a text."""
        [verdict] = await self.send(scan_of(text, **fields))
        return verdict.say

    async def run(self, operation: Any, command: Any) -> Any:
        return await self._run.run_of(operation)(self.caller, command)

    async def stored_scans(self) -> list[tuple[Any, ...]]:
        """Each scan: whose, by which device, whether it is the entry, and whether it was taken back."""
        return await self.service.run_sql(
            "select split_part(email, '@', 1), device, is_entry, taken_back_at is not null "
            "from check_in_scans join users on users.id = user_id where event_id = %(id)s order by number",
            id=self.event_id,
        )


async def begun_event(service: Service, seats: int, people: int, ago: str = "10 minutes") -> Entrance:
    """The entrance of an event that has begun: people p0, p1, … in order of arrival, the first of them with seats."""
    ada = await service.organizer()
    event = await ada.create_event(capacity=seats, waitinglist_capacity=100)
    for number in range(people):
        await ada.register(event["id"], email=f"p{number}@example.com")
    await service.settle()
    await service.run_sql(BEGIN_EVENT, ago=ago, id=event["id"])
    return Entrance(service, ada, event)


async def give_seats(gate: Entrance, at_most: int = 1000) -> SeatHandover:
    return await gate.run(seat_handover.GIVE_SEATS, GiveSeats(event_id=gate.event_id, at_most=at_most))
