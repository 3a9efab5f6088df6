"""Organizers with endpoints of webhooks, and programs that receive what is sent to them."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from tests.helpers.events_service import Client, Service
from tests.helpers.webhook_receiver import Receiver, Receivers, deliver, receivers_of


@dataclass
class OrganizerProgram:
    """A program of an organizer, and its endpoint."""

    service: Service
    organizer: Client
    endpoint: dict[str, Any]
    receiver: Receiver

    @property
    def path(self) -> str:
        return f"/api/webhook_endpoints/{self.endpoint['id']}"

    async def deliver(self) -> int:
        """Send all that is due now. Returns how many messages were sent, also those that failed."""
        return await deliver(self.service.database)

    async def deliveries(self, **query: Any) -> list[dict[str, Any]]:
        """The messages for the endpoint, the oldest first."""
        answer = await self.organizer.get(f"{self.path}/deliveries", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"][::-1]

    async def pass_pauses(self) -> None:
        """Let the pauses after failures be over."""
        await self.service.run_sql("update webhook_deliveries set due_at = now() where due_at is not null")
        await self.service.run_sql("update webhook_endpoints set leased_until = now(), next_due_at = now()")


async def change(organizer: Client, path: str, **fields: Any) -> dict[str, Any]:
    """Change an endpoint."""
    answer = await organizer.patch(path, {"webhook_endpoint": fields})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


class OrganizerPrograms:
    """Makes programs for organizers of a service."""

    def __init__(self, service: Service, receivers: Receivers) -> None:
        self.service = service
        self._receivers = receivers

    async def add(self, organizer: Client, **fields: Any) -> OrganizerProgram:
        receiver = await self._receivers.add()
        fields = {"url": receiver.url, **fields}
        answer = await organizer.post("/api/webhook_endpoints", {"webhook_endpoint": fields})
        assert answer.status_code == 201, answer.text
        return OrganizerProgram(self.service, organizer, answer.json()["data"], receiver)


async def programs_of(service: Service) -> AsyncGenerator[OrganizerPrograms]:
    """Programs for organizers of a service, as a fixture."""
    async with receivers_of(service.database) as receivers:
        yield OrganizerPrograms(service, receivers)
