"""What several tests do: fill an event, read how people fared, see an event refused, wait in a queue."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from holdfast.events.queues import release
from tests.contract.shapes import Acceptance, Registration, failing_fields, one
from tests.helpers.events_service import Client, Service, event_fields

FOUR = ("ann", "bob", "cal", "dee")


def yesterday() -> str:
    return (datetime.now(UTC) - timedelta(days=1)).isoformat()


async def refused_event(client: Client, **fields: Any) -> set[str]:
    """The fields for which an event is refused."""
    return failing_fields(await client.post("/api/events", {"event": event_fields(**fields)}))


async def register(service: Service, client: Client, event: dict[str, Any], *names: str) -> list[str]:
    """Register people by name and settle; the addresses to poll."""
    polls = [await client.register(event["id"], email=f"{name}@example.com") for name in names]
    await service.settle()
    return polls


async def statuses(client: Client, polls: list[str]) -> list[str]:
    return [one(await client.get(poll), Registration).status for poll in polls]


def handle_in(poll: str) -> str:
    """The public id at the end of an address to poll."""
    return poll.rpartition("/")[2]


async def join(client: Client, queue: dict[str, Any], visitor: str) -> str:
    """Let a visitor join; where to poll."""
    answer = await client.post(f"/api/queues/{queue['id']}/join", {"visitor_id": visitor})
    assert answer.status_code == 202, answer.text
    return msgspec.convert(answer.json(), Acceptance).next.url


async def minute(service: Service) -> None:
    """Let a minute pass, at the end of which a visitor is released."""
    await service.run_sql("update queues set paced_at = paced_at - interval '1 minute'")
    await release.release_due(service.database)
