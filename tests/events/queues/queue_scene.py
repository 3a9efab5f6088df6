"""A queue, its organizer, visitors, and a clock that a test moves by hand."""

from dataclasses import dataclass
from typing import Any, LiteralString

import httpx2

from holdfast.events.queues import release
from tests.helpers.events_service import Client, Service

# Moves all times of a queue. What happened since the last call happened just now.
#
# elapsed      what the test took since the last call
# test_time    what passes for the queue; `shift` is the difference
SHIFT: LiteralString = """
    with times as (
        select %(elapsed)s * interval '1 second' as elapsed, (%(seconds)s - %(elapsed)s) * interval '1 second' as shift,
               %(seconds)s * interval '1 second' as test_time, to_timestamp(%(now)s) as now),
    moved_queue as (
        update queues
           set paced_at = least(paced_at + elapsed, now) - test_time,
               rated_at = least(rated_at + elapsed, now) - test_time,
               starts_at = starts_at - shift, ends_at = ends_at - shift
          from times where id = %(id)s),
    moved_visitor as (
        update queue_visitors set issued_at = issued_at - shift, expires_at = expires_at - shift
          from times where queue_id = %(id)s and token_id is not null)
    update queue_releases set released_at = least(released_at + elapsed, now) - test_time
      from times where queue_id = %(id)s
"""


@dataclass
class QueueScene:
    """A queue as its organizer works with it. No process releases by itself: `tick` does."""

    service: Service
    ada: Client
    id: int
    now: float = 0

    @property
    def path(self) -> str:
        return f"/api/queues/{self.id}"

    async def ask_to_join(self, visitor_id: str, client: Client | None = None) -> httpx2.Response:
        return await (client or self.ada).post(f"{self.path}/join", {"visitor_id": visitor_id})

    async def join(self, *visitor_ids: str) -> list[str]:
        """Let visitors join, one after the other; where to poll for each."""
        answers = [await self.ask_to_join(visitor_id) for visitor_id in visitor_ids]
        assert [answer.status_code for answer in answers] == [202] * len(visitor_ids), answers[-1].text
        return [answer.json()["next"]["url"] for answer in answers]

    async def status(self, visitor_id: str) -> dict[str, Any]:
        """Where a visitor stands, whose id needs no escaping."""
        answer = await self.ada.get(f"{self.path}/status/{visitor_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def position(self, visitor_id: str) -> int | None:
        return (await self.status(visitor_id)).get("position")

    async def length(self) -> int:
        return (await self.ada.get(self.path)).json()["data"]["queue_length"]

    async def change(self, **fields: Any) -> None:
        answer = await self.ada.patch(self.path, {"queue_event": fields})
        assert answer.status_code == 200, answer.text

    async def token(self, visitor_id: str) -> str:
        """The token of a visitor who was released."""
        return (await self.status(visitor_id))["token"]

    async def verify(self, token: str, client: Client | None = None, **options: Any) -> httpx2.Response:
        return await (client or self.ada).post("/api/queues/verify_token", {"token": token, **options})

    async def pass_time(self, seconds: float) -> None:
        """Let exactly this time pass for this queue since the last call, however long the test itself took."""
        now = await self.clock()
        elapsed, self.now = now - self.now, now
        await self.service.run_sql(SHIFT, id=self.id, now=now, elapsed=elapsed, seconds=seconds)

    async def clock(self) -> float:
        """The database's clock, in seconds."""
        ((now,),) = await self.service.run_sql("select extract(epoch from clock_timestamp())::float8")
        return now

    async def release(self) -> int:
        """Release the visitors who are due. Returns their number."""
        await self.pass_time(0)
        return await release.release_due(self.service.database)

    async def tick(self, seconds: float = 1, times: int = 1) -> int:
        """Let time pass with a release at the end of it, `times` times; how many were released."""
        released = 0
        for _ in range(times):
            await self.pass_time(seconds)
            released += await release.release_due(self.service.database)
        return released


async def open_queue(service: Service, ada: Client | None = None, **fields: Any) -> QueueScene:
    """A new queue of a new organizer, or of one there is."""
    ada = ada or await service.organizer()
    queue = QueueScene(service, ada, (await ada.create_queue(**fields))["id"])
    queue.now = await queue.clock()
    return queue


Released = list[tuple[int, float]]
"""Tickets and the second in which they were released."""


async def log(queue: QueueScene) -> Released:
    rows = await queue.service.run_sql(
        """
        select first_ticket, last_ticket, extract(epoch from released_at)::float8
          from queue_releases where queue_id = %(id)s order by last_ticket
        """,
        id=queue.id,
    )
    return [(ticket, at) for first, last, at in rows for ticket in range(first, last + 1)]
