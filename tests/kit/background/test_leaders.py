"""Each loop has one leader among the processes, and a new one within seconds when that one ends."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator

from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings
from holdfast.kit.background.leaders import Leaders
from holdfast.kit.compat.task_ending import end_tasks
from tests.helpers.events_service import eventually

LOOPS = ("one", "two", "three", "four", "five")


class Peer:
    """A process with these loops, which only says which of them it runs."""

    def __init__(self, settings: Settings, loops: tuple[str, ...]) -> None:
        self.runs: Counter[str] = Counter()
        self._database = EVENTS.database(settings)
        self._loops = loops
        self._tasks: list[asyncio.Task[None]] = []

    async def come(self) -> None:
        await self._database.open()
        known = Leaders(self._database, self._loops)
        self._tasks = [
            asyncio.create_task(known.run(self._database)),
            *(asyncio.create_task(known.lead(loop, lambda loop=loop: self._loop(loop))) for loop in self._loops),
        ]

    async def go(self) -> None:
        await end_tasks(self._tasks)
        await self._database.close()

    async def _loop(self, name: str) -> None:
        self.runs[name] += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.runs[name] -= 1


@contextlib.asynccontextmanager
async def peers(settings: Settings, count: int, loops: tuple[str, ...] = LOOPS) -> AsyncGenerator[list[Peer]]:
    """Processes that have come one after the other."""
    running_peers = [Peer(settings, loops) for _ in range(count)]
    try:
        for number, peer in enumerate(running_peers):
            await peer.come()
            await dealt(running_peers[: number + 1], loops)
        yield running_peers
    finally:
        for peer in running_peers:
            await peer.go()


async def dealt(running_peers: list[Peer], loops: tuple[str, ...] = LOOPS, seconds: float = 0.45) -> None:
    """Wait until each loop runs in one process, and no process has two more than another."""

    async def once_each() -> bool:
        counts = [peer.runs.total() for peer in running_peers]
        together = sum((peer.runs for peer in running_peers), Counter[str]())
        return together == Counter(loops) and max(counts) - min(counts) <= 1

    await eventually(once_each, seconds)


async def test_loops_are_redistributed_after_a_notice_when_processes_come_and_go(settings: Settings) -> None:
    async with peers(settings, 3) as running_peers:
        assert [peer.runs.total() for peer in running_peers] == [2, 2, 1]

        await running_peers[0].go()

        await dealt(running_peers[1:])


async def test_leaders_stay_when_there_are_more_processes_than_loops(settings: Settings) -> None:
    async with peers(settings, 5) as running_peers:
        before = [Counter(peer.runs) for peer in running_peers]
        late = Peer(settings, LOOPS)
        await late.come()
        try:
            await dealt([*running_peers, late])
            assert ([peer.runs for peer in running_peers], late.runs.total()) == (before, 0)
        finally:
            await late.go()


async def test_a_process_of_another_version_leads_its_own_loops(settings: Settings) -> None:
    async with peers(settings, 2) as running_peers, peers(settings, 1, (*LOOPS, "six")) as [newer]:
        await dealt(running_peers)
        assert newer.runs == Counter((*LOOPS, "six"))
