"""The inbox: deliveries of the platform are stored in batches, and then handled, each until it succeeds.

If a process is killed or stalls, another process handles its deliveries (`kit/background/row_work.py`). A stored
delivery has one of these statuses:

* pending: it has not failed yet;
* retrying: it has failed, and is tried again after a pause that grows with each attempt;
* parked: it has failed `MAX_ATTEMPTS` times or cannot be read, and is not tried again by itself. An operator can retry
  it; it is also retried when its shop reconnects;
* handled: it needs nothing more.
"""

import asyncio
import collections
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import structlog
from msgspec import Struct
from prometheus_client import Counter

from holdfast.inventory.partner_webhooks import sql
from holdfast.inventory.partner_webhooks.model import (
    CROSS_TENANT_TOPICS,
    BatchHandler,
    Delivery,
    DueLater,
    FailedDelivery,
    Handlers,
    ReceivedDelivery,
    WaitingWebhook,
)
from holdfast.inventory.partner_webhooks.sql import DeliveryResult, LeasedDelivery
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Database, Reader, Steps, Tx
from holdfast.inventory.shopify.platform_client import PlatformUnreachable
from holdfast.kit.background.leases import LeaseFence, LeaseLost
from holdfast.kit.background.row_work import RetryBackoff, RowWork
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.environment.logs import first_line
from holdfast.kit.environment.metrics import start_at_zero
from holdfast.kit.operations.slots import Slots
from holdfast.kit.postgres.group_commit import MAX_WAITING_CALLS, Batcher

T = TypeVar("T")

MAX_CONCURRENT_DELIVERIES = 8
"""The most deliveries that one process handles at the same time."""

MAX_CONCURRENT_OF_SHOP = 3
"""The most of them of one shop: a shop with many orders, or with slow answers, does not delay the others."""

WEBHOOK_TRANSACTIONS = bound_without_strangers(
    name="Transactions that handle partner webhooks",
    service="inventory",
    total=f"{MAX_CONCURRENT_DELIVERIES} webhooks",
    tenant=f"{MAX_CONCURRENT_OF_SHOP} webhooks, one transaction at a time",
)

MAX_BATCH_SIZE = 100
"""The most deliveries that are handled together with another one."""

RECEIVED_WEBHOOKS = bound_without_strangers(
    name="Received partner webhooks that wait until they are stored",
    service="inventory",
    total=f"{MAX_WAITING_CALLS}; {MAX_BATCH_SIZE} are stored together",
    tenant="none, in order of arrival",
)
WEBHOOK_RESULTS = bound_without_strangers(
    name="Handled partner webhooks whose results wait until they are stored",
    service="inventory",
    total=f"{MAX_CONCURRENT_DELIVERIES}; {MAX_BATCH_SIZE} are stored together",
    tenant=f"{MAX_CONCURRENT_OF_SHOP}",
)

RETRY_BACKOFF = RetryBackoff(1.0, 1800.0)

MAX_ATTEMPTS = 14
"""The most attempts for a delivery, over about one and a half hours."""

MAX_LISTED = 100
"""The most deliveries in a list of retrying and parked ones."""

MAX_WAITING = 20
"""The most waiting deliveries in an answer."""

DELIVERIES = Counter(
    "holdfast_webhooks", "Deliveries of the storefront platform, and what came of them.", ["topic", "how"]
)

log = structlog.get_logger()


class _HandlerSteps(Steps):
    """Steps of a handler. Its entries in the ledger have the time at which their cause was received."""

    def __init__(
        self, database: Database, tenant: int | None, slots: Slots, delivery: Delivery, fence: LeaseFence
    ) -> None:
        super().__init__(database, tenant, slots, fence=fence.check)
        self._received_at = delivery.received_at.isoformat()

    async def transact(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        async def with_received_at(tx: Tx) -> T:
            await tx.run("select set_config('holdfast.heard_at', %(at)s, true)", {"at": self._received_at})
            return await work(tx)

        return await super().transact(with_received_at)


class Inbox:
    """Stores deliveries that the platform signed. Those that arrive together are stored together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._storing = Batcher[ReceivedDelivery, None](
            RECEIVED_WEBHOOKS, "receive_webhooks", self._store_batch, size=MAX_BATCH_SIZE
        )

    async def store(self, received: ReceivedDelivery) -> None:
        """Store a delivery, if its shop has the app and it is not stored already."""
        await self._storing.submit(received)
        DELIVERIES.labels(received.topic, "received").inc()

    async def _store_batch(self, received: Sequence[ReceivedDelivery]) -> Sequence[None]:
        async def insert(tx: Tx) -> None:
            if await sql.insert(tx, received):
                await tx.notify(sql.CHANNEL)

        await self._database.transact(insert)
        return [None] * len(received)


class DeliveryGroup(Struct):
    """Deliveries of one shop that are handled together. They have the lease of the first."""

    deliveries: list[LeasedDelivery]

    @property
    def first(self) -> LeasedDelivery:
        return self.deliveries[0]

    @property
    def shop_id(self) -> int:
        return self.first.delivery.shop_id

    def fence(self) -> LeaseFence:
        return LeaseFence("webhooks", "id", [leased.id for leased in self.deliveries], self.first.lease_id)


class WebhookWork(RowWork[DeliveryGroup]):
    """Handles the deliveries in the inbox."""

    name = "webhooks"
    channels = (sql.CHANNEL,)
    max_concurrent = MAX_CONCURRENT_DELIVERIES

    def __init__(self, database: Database, handlers: Handlers) -> None:
        super().__init__()
        self._database = database
        self._handlers = handlers
        self._in_work = collections.Counter[int]()  # by shop, when `busy_keys` was last called
        self._storing_results = Batcher[DeliveryResult, None](
            WEBHOOK_RESULTS, "settle_webhooks", self._store_results, size=MAX_BATCH_SIZE
        )
        # Changes of one shop wait for each other in the database, and would hold connections.
        self._slots = Slots(WEBHOOK_TRANSACTIONS, 1)
        for topic in handlers:
            start_at_zero(DELIVERIES, topic, "parked")

    def busy_keys(self, rows: Sequence[DeliveryGroup]) -> Sequence[int]:
        """The shops that have as many deliveries in work as allowed.

        Also notes how many each shop has in work, for `lease`, which is called right after.
        """
        self._in_work = collections.Counter(group.shop_id for group in rows)
        return [shop_id for shop_id, count in self._in_work.items() if count >= MAX_CONCURRENT_OF_SHOP]

    async def lease(self, limit: int, excluded: Sequence[int], *, scan_all: bool) -> Sequence[DeliveryGroup]:
        lease = partial(
            sql.lease_due,
            limit=limit,
            max_per_shop=MAX_CONCURRENT_OF_SHOP,
            in_work=self._in_work,
            excluded_shops=excluded,
        )
        return [DeliveryGroup([leased]) for leased in await self._database.transact(lease)]

    async def renew(self, row: DeliveryGroup) -> bool:
        return await self._database.transact(row.fence().renew)

    async def seconds_until_due(self, reader: Reader, excluded: Sequence[int]) -> float | None:
        return await sql.seconds_until_due(reader, excluded)

    async def handle(self, row: DeliveryGroup) -> int:
        """Handle a delivery, and those that can join it. Returns how many."""
        handler = self._handlers[row.first.delivery.topic]
        if isinstance(handler, BatchHandler):
            row.deliveries += await self._lease_more(row.first, handler)
            if await self._handle_together(row, handler):
                return len(row.deliveries)
        for leased in row.deliveries:
            await self._store_result(await self._handle_one(leased))
        return len(row.deliveries)

    async def _lease_more(self, leased: LeasedDelivery, handler: BatchHandler) -> Sequence[LeasedDelivery]:
        if leased.attempts > 1:
            return ()
        topics = [topic for topic, topic_handler in self._handlers.items() if topic_handler is handler]
        return await self._database.transact(partial(sql.lease_more, first=leased, topics=topics, limit=MAX_BATCH_SIZE))

    async def _handle_together(self, group: DeliveryGroup, handler: BatchHandler) -> bool:
        """Handle deliveries in one step. Returns whether that succeeded."""
        deliveries = [leased.delivery for leased in group.deliveries]
        earliest = min(deliveries, key=lambda delivery: delivery.received_at)
        steps = _HandlerSteps(self._database, earliest.shop_id, self._slots, earliest, group.fence())
        try:
            await handler.run(steps, deliveries)
        except LeaseLost:
            raise
        except Exception as error:
            log.warning("webhooks are handled one by one", shop=earliest.shop_id, why=first_line(error))
            return False
        await asyncio.gather(*(self._store_result(DeliveryResult(leased)) for leased in group.deliveries))
        return True

    async def _store_result(self, result: DeliveryResult) -> None:
        leased, status = result.leased, "handled"
        topic = leased.delivery.topic
        if result.error is not None:
            status = "parked" if result.pause is None else "retrying"
            log.warning(
                "a webhook is not handled",
                status=status,
                topic=topic,
                id=leased.id,
                attempts=leased.attempts,
                error=result.error,
            )
        # A released label: dashboards know retries by it.
        DELIVERIES.labels(topic, "deferred" if status == "retrying" else status).inc()
        await self._storing_results.submit(result)

    async def _handle_one(self, leased: LeasedDelivery) -> DeliveryResult:
        """Run the handler of one delivery, and return what to store."""
        delivery = leased.delivery
        if leased.attempts > MAX_ATTEMPTS:
            return DeliveryResult(leased, "The process that handled it was ended each time.")
        tenant = None if delivery.topic in CROSS_TENANT_TOPICS else delivery.shop_id
        pause = RETRY_BACKOFF.pause(leased.attempts)
        fence = LeaseFence("webhooks", "id", [leased.id], leased.lease_id)
        try:
            await self._handlers[delivery.topic](
                _HandlerSteps(self._database, tenant, self._slots, delivery, fence), delivery
            )
        except LeaseLost:
            raise
        except msgspec.DecodeError as unreadable:
            # This is not about answers of the platform: an unreadable answer is `PlatformUnreachable`.
            return DeliveryResult(leased, f"It cannot be read: {first_line(unreadable)}")
        except DueLater as later:
            return DeliveryResult(leased, str(later), later.seconds)
        except PlatformUnreachable as unreachable:
            error, pause = str(unreachable), max(pause, unreachable.retry_after or 0.0)
        except Exception as fault:
            is_temporary = isinstance(fault, Problem) and fault.type in {SERVICE_UNAVAILABLE, SHOP_NOT_CONNECTED}
            error = f"{type(fault).__name__}: {first_line(fault)}"
            if not is_temporary:
                log.error("a webhook cannot be handled", topic=delivery.topic, id=leased.id, exc_info=fault)
        else:
            return DeliveryResult(leased)
        return DeliveryResult(leased, error, pause if leased.attempts < MAX_ATTEMPTS else None)

    async def _store_results(self, results: Sequence[DeliveryResult]) -> Sequence[None]:
        await self._database.transact(lambda tx: sql.store_results(tx, results))
        return [None] * len(results)


async def list_retrying_and_parked(tx: Tx) -> Sequence[FailedDelivery]:
    """The retrying and parked deliveries of all shops, the newest first, at most `MAX_LISTED`."""
    return await sql.list_retrying_and_parked(tx, MAX_LISTED)


async def list_waiting_order_webhooks(reader: Reader, shop_id: int) -> list[WaitingWebhook]:
    """The pending and retrying webhooks about orders of a shop: the oldest, at most `MAX_WAITING`."""
    return await sql.list_waiting_order_webhooks(reader, shop_id, MAX_WAITING, only_retrying=False)


async def list_retrying_order_webhooks(reader: Reader, shop_id: int) -> list[WaitingWebhook]:
    """The retrying webhooks about orders of a shop."""
    return await sql.list_waiting_order_webhooks(reader, shop_id, MAX_WAITING, only_retrying=True)


async def retry(tx: Tx, id: int | None) -> int:
    """Retry a retrying or parked delivery now, or all of them. Returns how many. Raises `not_found`."""
    again = await sql.retry_now(tx, id)
    if id is not None and not again:
        raise NOT_FOUND(f"No webhook with the id {id} is parked or waits for another attempt.")
    await tx.notify(sql.CHANNEL)
    return again


async def retry_of_shop(tx: Tx, shop_id: int) -> None:
    """Retry all retrying and parked deliveries of a shop now: it has connected again."""
    await sql.retry_now(tx, None, shop_id)
    await tx.notify(sql.CHANNEL)


async def delete_unhandled(tx: Tx, shop_id: int) -> None:
    """Delete the deliveries of a shop that has uninstalled the app, unless they are handled."""
    await sql.delete_unhandled(tx, shop_id)
