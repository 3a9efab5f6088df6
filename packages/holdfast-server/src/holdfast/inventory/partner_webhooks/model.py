"""Webhooks of the platform, and the types of their handlers."""

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from holdfast.inventory.resources import Steps
from holdfast.kit.contract.command import Timestamp


class ReceivedDelivery(Struct, frozen=True):
    """A delivery that the platform signed. `payload` has only the fields of `payloads.py`."""

    domain: str
    topic: str
    webhook_id: str
    event_id: str | None
    triggered_at: dt.datetime | None
    payload: bytes


class Delivery(Struct, frozen=True):
    """A delivery as its handler gets it.

    webhook_id      the platform's id of the delivery, the same if it comes again
    event_id        the platform's id of its cause
    triggered_at    when its cause happened, by the platform's clock
    received_at     when it was stored, by the clock of the database
    """

    shop_id: int
    topic: str
    webhook_id: str
    event_id: str | None
    triggered_at: dt.datetime | None
    payload: bytes
    received_at: dt.datetime


class FailedDelivery(Struct, frozen=True):
    """A retrying or parked delivery. `next_attempt_at`: of the retry; None: it is parked."""

    id: int
    domain: str
    topic: str
    attempts: int
    next_attempt_at: dt.datetime | None
    error: str


class WaitingWebhook(Struct, frozen=True):
    """What the platform told and is not counted yet."""

    topic: str
    received_at: Timestamp
    attempts: int
    next_attempt_at: Annotated[Timestamp | None, Meta(description="Null: an attempt is under way, or due now.")]
    error: Annotated[str | None, Meta(description="Why the last attempt failed.")]


Handler: TypeAlias = Callable[[Steps, Delivery], Awaitable[None]]
"""Handles a delivery, in steps inside its shop. It may be called twice for one, and in any order. After an exception it
is called again later.
"""


class DueLater(Exception):
    """A delivery is not to be handled yet. It is remembered, and handled when it is due.

    seconds    until then
    """

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class BatchHandler:
    """A handler of many deliveries of one shop in one step. If it fails, each of them is handled alone."""

    def __init__(self, run: Callable[[Steps, Sequence[Delivery]], Awaitable[None]]) -> None:
        self.run = run

    async def __call__(self, steps: Steps, delivery: Delivery) -> None:
        await self.run(steps, [delivery])


Handlers: TypeAlias = Mapping[str, Handler]
"""The handler of each topic. Deliveries of other topics are not stored."""

CROSS_TENANT_TOPICS = frozenset({"app/uninstalled", "app/scopes_update", "shop/redact"})
"""Topics whose handlers need transactions without a tenant, for the install of a shop, its keys, or all its rows."""

EVEN_UNINSTALLED = frozenset({"app/uninstalled", "shop/redact"})
"""Topics that are handled also for a shop that has uninstalled the app."""
