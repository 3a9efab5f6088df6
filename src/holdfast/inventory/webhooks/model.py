"""Webhooks: what the platform tells of a shop, and what handles it."""

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from holdfast.inventory.resources import Steps


class Received(Struct, frozen=True):
    """A delivery that the platform signed, as it is stored. `payload` has only the fields of `fields.py`."""

    domain: str
    topic: str
    webhook_id: str
    event_id: str | None
    triggered_at: dt.datetime | None
    payload: bytes


class Delivery(Struct, frozen=True):
    """What a handler is given.

    webhook_id      the platform's id of it, the same if it comes again
    event_id        the platform's id of its cause
    triggered_at    when it was caused, by the platform's clock
    received_at     when it was stored, by the clock of the database
    """

    shop_id: int
    topic: str
    webhook_id: str
    event_id: str | None
    triggered_at: dt.datetime | None
    payload: bytes
    received_at: dt.datetime


class Parked(Struct, frozen=True):
    """A delivery that could not be handled, and waits for an operator."""

    id: int
    domain: str
    topic: str
    attempts: int
    error: str


Handler: TypeAlias = Callable[[Steps, Delivery], Awaitable[None]]
"""Handles a delivery, in steps inside its shop. It may be called twice for one, and in any order; it raises what is
wrong, and is then called again later."""


class Together:
    """A handler of many deliveries of one shop in one step. If it fails, each of them is handled alone."""

    def __init__(self, run: Callable[[Steps, Sequence[Delivery]], Awaitable[None]]) -> None:
        self.run = run

    async def __call__(self, steps: Steps, delivery: Delivery) -> None:
        await self.run(steps, [delivery])


Handlers: TypeAlias = Mapping[str, Handler]
"""What handles each topic. Deliveries of other topics are not stored."""

BEYOND_THE_SHOP = frozenset({"app/uninstalled", "app/scopes_update", "shop/redact"})
"""Topics whose handlers also reach what no transaction inside a shop may: its install, its keys, all of its rows."""

EVEN_UNINSTALLED = frozenset({"app/uninstalled", "shop/redact"})
"""Topics that are handled also for a shop that has uninstalled the app."""
