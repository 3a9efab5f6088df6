"""Scans of several devices may be reordered, delayed and repeated: all devices agree in the end."""

import asyncio
import random

import pytest

from holdfast.events.check_in import operations
from holdfast.events.check_in.model import CheckInChanges, ListChanges, Scan, TakeBack
from tests.events.check_in.check_in_scene import Entrance, code_of, scan_of
from tests.helpers.events_service import Service
from tests.helpers.people import sign_up

PEOPLE = ("ann", "bob", "cleo")


class Scanner:
    """A device: what it has not sent, and what it has heard."""

    def __init__(self, gate: Entrance, name: str) -> None:
        self.gate = gate
        self.name = name
        self.unsent: list[Scan] = []
        self.heard: dict[str, tuple[str, bool, bool]] = {}
        self.last = 0

    async def send(self, chance: random.Random) -> None:
        """Send some of what is unsent, in any order; the answer may get lost, and they are sent again later."""
        batch = chance.sample(self.unsent, chance.randint(0, len(self.unsent)))
        if batch:
            await self.gate.send(*batch, device=self.name)
            if chance.random() < 0.6:
                self.unsent = [scan for scan in self.unsent if scan not in batch]

    async def read_changes(self) -> None:
        news: CheckInChanges = await self.gate.run(
            operations.LIST_CHANGES, ListChanges(event_id=self.gate.event_id, after=self.last)
        )
        self.heard |= {scan.id: (scan.arrival, scan.is_entry, scan.is_undone) for scan in news.scans}
        self.last = news.last

    async def finish(self) -> None:
        if self.unsent:
            await self.gate.send(*self.unsent, device=self.name)
        self.unsent = []


async def entries(gate: Entrance) -> dict[int, str]:
    """The entry of each registration."""
    return dict(
        await gate.service.run_sql(
            "select user_id, id::text from check_in_scans where event_id = %(id)s and is_entry", id=gate.event_id
        )
    )


@pytest.mark.parametrize("seed", range(12))
async def test_devices_agree_and_every_registration_has_one_entry(service: Service, seed: int) -> None:
    chance = random.Random(seed)
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, *PEOPLE)
    gate = Entrance(service, ada, event)
    codes = [await code_of(service, event["id"], person) for person in PEOPLE]
    devices = [Scanner(gate, f"Door {number}") for number in range(chance.randint(2, 4))]
    made: list[str] = []
    before: dict[int, str] = {}

    for _ in range(25):
        doing = chance.random()
        undone_scan = ""
        if doing < 0.45:
            scan = scan_of(chance.choice(codes), let_in=chance.random() < 0.5)
            chance.choice(devices).unsent.append(scan)
            made.append(scan.id)
        elif doing < 0.75:
            online = chance.sample(devices, chance.randint(1, len(devices)))
            await asyncio.gather(*(device.send(chance) for device in online))
        elif doing < 0.9:
            await chance.choice(devices).read_changes()
        elif before:
            undone_scan = chance.choice([*before.values()])
            await gate.run(operations.TAKE_BACK, TakeBack(event_id=gate.event_id, scan_id=undone_scan))
        after = await entries(gate)
        # An entry stays the entry, unless the door takes it back.
        assert all(after.get(user) == id for user, id in before.items() if id != undone_scan)
        before = after
    await asyncio.gather(*(device.finish() for device in devices))
    await asyncio.gather(*(device.read_changes() for device in devices))

    rows = await service.run_sql(
        "select id::text, arrival::text, is_entry, taken_back_at is not null, number "
        "from check_in_scans join registrations using (event_id, user_id) order by number"
    )
    assert {id for id, *_ in rows} == {*made}
    for device in devices:
        assert device.heard == {id: (arrival, entry, back) for id, arrival, entry, back, _ in rows}
    for arrival in {arrival for _, arrival, *_ in rows}:
        valid = [(entry, number) for _, of, entry, back, number in rows if of == arrival and not back]
        assert [entry for entry, _ in sorted(valid, key=lambda verdict: verdict[1])] == [
            place == 0 for place in range(len(valid))
        ]


async def test_changes_come_in_batches_without_gaps(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    gate = Entrance(service, ada, event)
    monkeypatch.setattr(operations, "ANSWER_BATCH_SIZE", 3)
    for _ in range(8):
        await gate.scan("ann")
    seen: list[str] = []
    after, more = 0, True

    while more:
        news: CheckInChanges = await gate.run(operations.LIST_CHANGES, ListChanges(event_id=gate.event_id, after=after))
        seen += [scan.id for scan in news.scans]
        after, more = news.last, news.more

    assert len(seen) == len({*seen}) == 8
