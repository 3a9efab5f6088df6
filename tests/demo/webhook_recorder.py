"""A server that receives the webhooks of a double."""

import json
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from tests.helpers.events_service import eventually


class ReceivedWebhook(NamedTuple):
    """A webhook that came. `name` is its topic, or the type of its event."""

    name: str
    body: Any
    headers: dict[str, str]
    raw: bytes


class WebhookRecorder:
    """A program that gets webhooks.

    answers    the statuses of the next answers; afterwards all are 200
    """

    def __init__(self) -> None:
        self.received: list[ReceivedWebhook] = []
        self.answers: list[int] = []

    async def receive(self, request: Request) -> Response:
        """Take a webhook."""
        raw, headers = await request.body(), dict(request.headers)
        body = json.loads(raw)
        self.received.append(ReceivedWebhook(headers.get("x-shopify-topic") or body["type"], body, headers, raw))
        return Response(status_code=self.answers.pop(0) if self.answers else 200)

    def named(self, name: str) -> list[ReceivedWebhook]:
        return [webhook for webhook in self.received if webhook.name == name]

    async def wait_for(self, name: str, times: int = 1) -> ReceivedWebhook:
        """The newest webhook with a name, once `times` of them came."""
        await eventually(lambda: len(self.named(name)) >= times)
        return self.named(name)[-1]
