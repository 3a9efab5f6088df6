"""Webhooks: signed events to endpoints, sent again with growing pauses until they are accepted."""

import hmac
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import httpx2

from holdfast.kit.security.http_client import HttpClient, trusted_certificates
from holdfast_demo.shared import webhooks
from holdfast_demo.stripe.processor_state import ProcessorState, moment, without_private
from holdfast_demo.stripe.store import StripeObject

ANSWER_TIMEOUT_SECONDS = 10
MAX_RETRY_SECONDS = 3600
RETRY_LIMIT_SECONDS = 3 * 24 * 3600
"""Seconds after which an event is not sent again."""

DEFAULT_EVENT_TYPES = (
    "checkout.session.*",
    "charge.refunded",
    "charge.dispute.*",
    "refund.*",
    "account.updated",
    "v2.*",
)

_COLUMNS = "event text not null, endpoint integer not null, made real not null"


@dataclass(frozen=True)
class Endpoint:
    """An endpoint for webhooks.

    secret    the secret that signs its webhooks
    events    the types of events that it gets; `*` stands for any characters
    """

    url: str
    secret: str
    events: Sequence[str] = DEFAULT_EVENT_TYPES

    def wants(self, type: str) -> bool:
        return any(fnmatchcase(type, pattern.replace("[", "[[]")) for pattern in self.events)


class StripeWebhooks(webhooks.WebhookSender):
    """Sends each event once, and again until it is accepted. For tests:

    copies         how many times each event is sent
    delay          seconds that events wait before they are sent
    dropped        the types of events that are not sent at all
    first_pause    seconds until an event that was not accepted is sent again; each pause is twice as long as the last
    """

    def __init__(self, processor: ProcessorState, endpoints: Iterable[Endpoint] = ()) -> None:
        super().__init__(processor.store, processor.clock, _COLUMNS)
        self._processor = processor
        self.endpoints: list[Endpoint] = list(endpoints)
        self.copies = 1
        self.delay = 0.0
        self.dropped: set[str] = set()
        self.first_pause = 1.0
        processor.on_event.append(self._plan)

    def send_again(self, event_id: str) -> None:
        """Send an event once more to all endpoints that get its type."""
        event = self._event(event_id)
        self._enter(event, 1, self._clock.time())
        self.wake()

    def _plan(self, event: StripeObject) -> None:
        if event["type"] not in self.dropped:
            self._enter(event, self.copies, self._clock.time() + self.delay)
            self.wake()

    def _enter(self, event: StripeObject, copies: int, due: float) -> None:
        now = self._clock.time()
        self._db.executemany(
            "insert into deliveries (event, endpoint, made, due) values (?, ?, ?, ?)",
            [
                (event["id"], number, now, due)
                for number, endpoint in enumerate(self.endpoints)
                if endpoint.wants(event["type"])
                for _ in range(copies)
            ],
        )

    def _event(self, id: str) -> StripeObject:
        event = self._processor.store.find("event", id) or self._processor.store.find("v2.core.event", id)
        assert event, f"there is no event {id}"
        return event

    def _client(self) -> httpx2.AsyncClient:
        return HttpClient(timeout=ANSWER_TIMEOUT_SECONDS, verify=trusted_certificates(), trust_env=False)

    async def _attempt(self, client: httpx2.AsyncClient, delivery: int) -> float | None:
        row: tuple[str, int, float, int] = self._db.execute(
            "select event, endpoint, made, attempts from deliveries where id = ?", (delivery,)
        ).fetchone()
        event, number, created_at, attempts = row
        if number >= len(self.endpoints) or await self._is_accepted(client, self.endpoints[number], event):
            return None
        is_late = self._clock.time() - created_at >= RETRY_LIMIT_SECONDS
        return None if is_late else min(self.first_pause * 2**attempts, MAX_RETRY_SECONDS)

    async def _is_accepted(self, client: httpx2.AsyncClient, endpoint: Endpoint, event_id: str) -> bool:
        event = self._event(event_id)
        if event["object"] == "v2.core.event":
            event = {**event, "created": moment(event["created"])}
        body = json.dumps(without_private(event), indent=2)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(body, endpoint.secret),
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        }
        try:
            answer = await client.post(endpoint.url, content=body.encode(), headers=headers)
        except httpx2.HTTPError:
            return False
        return answer.is_success


def signature(body: str, secret: str, at: int | None = None) -> str:
    """The header that proves sender and time of a webhook."""
    at = int(time.time()) if at is None else at
    return f"t={at},v1={hmac.digest(secret.encode(), f'{at}.{body}'.encode(), 'sha256').hex()}"
