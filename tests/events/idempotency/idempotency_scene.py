"""An organizer with an event, photos and a queue, and requests that create something and carry a key."""

from typing import Any, LiteralString

import httpx2
import pytest

from holdfast.events.api import OPERATIONS
from holdfast.events.documents.examples import BODIES
from holdfast.kit.operations.operation import Operation
from tests.helpers.events_service import Client, Service
from tests.helpers.photos import key_of

REPEATABLE = [operation for operation in OPERATIONS if operation.takes_idempotency_key]
PHOTO, OTHER_PHOTO = key_of(1, "a"), key_of(1, "b")
OTHERWISE: dict[str, dict[str, Any]] = {
    "create_event": {"title": "Portraits"},
    "create_api_key": {"name": "Another"},
    "create_registration": {"email": "ben@example.com"},
    "add_event_photo": {"key": OTHER_PHOTO},
    "presign_upload": {"content_type": "image/png"},
    "create_queue": {"title": "Summer sale"},
    "join_queue": {"visitor_id": "ben"},
    "create_webhook_endpoint": {"url": "https://shop.example/other"},
}
"""What makes another request of it, for each operation that takes the header."""

of_each = pytest.mark.parametrize("operation", REPEATABLE, ids=[operation.name for operation in REPEATABLE])

COUNT: LiteralString = """
    select (select count(*) from events), (select count(*) from api_keys), (select count(*) from registrations),
           (select count(*) from photos), (select count(*) from event_photos), (select count(*) from queues),
           (select count(*) from queue_visitors), (select count(*) from webhook_endpoints)
"""


class IdempotencyScene:
    """An organizer with an event, photos and a queue, and requests that create something."""

    def __init__(self, service: Service, ada: Client, event_id: int, queue_id: int) -> None:
        self.service = service
        self.ada = ada
        self.event_id = event_id
        self.queue_id = queue_id

    def body(self, operation: Operation, **fields: Any) -> dict[str, Any]:
        person = {"event_id": self.event_id, "email": "ann@example.com"}
        ours: dict[str, Any] = {"create_registration": person, "add_event_photo": {"key": PHOTO}}
        content = {**ours.get(operation.name, BODIES[operation.name]), **fields}
        return {operation.body_member: content} if operation.body_member else content

    def path(self, operation: Operation) -> str:
        return operation.path.format(event_id=self.event_id, queue_id=self.queue_id)

    async def send(
        self, operation: Operation, key: str, client: Client | None = None, /, **fields: Any
    ) -> httpx2.Response:
        body = self.body(operation, **fields)
        return await (client or self.ada).post(self.path(operation), body, headers={"Idempotency-Key": key})

    async def create(self, key: str, client: Client | None = None, **fields: Any) -> httpx2.Response:
        """Create an event with a key."""
        return await self.send(CREATE_EVENT, key, client, **fields)

    async def count(self) -> tuple[int, ...]:
        """Events, API keys, registrations, photos, photos shown, queues, visitors and endpoints there are."""
        return (await self.service.run_sql(COUNT))[0]

    async def count_stored_answers(self) -> int:
        return (await self.service.run_sql("select count(*) from idempotency_answers"))[0][0]


CREATE_EVENT, CREATE_REGISTRATION, ADD_PHOTO = (
    next(operation for operation in OPERATIONS if operation.name == name)
    for name in ("create_event", "create_registration", "add_event_photo")
)


def status_and_code(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]
