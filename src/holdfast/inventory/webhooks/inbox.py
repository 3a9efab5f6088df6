"""The inbox: deliveries of the platform are stored in batches, and then handled, each until it succeeds.

A process takes deliveries by moving `due_at` a while ahead, and commits that. Then it calls their handlers. If it is
killed, they are due again after that while. A delivery that fails is tried again after pauses that grow; after
`ATTEMPTS` it is parked until an operator has it tried again.
"""

import asyncio
from collections import Counter as Counted
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import structlog
from prometheus_client import Counter

from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Database, Steps, Tx
from holdfast.inventory.shopify.platform import Unreachable
from holdfast.inventory.webhooks import sql
from holdfast.inventory.webhooks.model import BEYOND_THE_SHOP, Delivery, Handlers, Parked, Received, Together
from holdfast.inventory.webhooks.sql import Settled, Taken
from holdfast.kit.batch import Batcher
from holdfast.kit.ending import end
from holdfast.kit.limits import Slots
from holdfast.kit.logs import first_line
from holdfast.kit.metrics import begin
from holdfast.kit.notifications import notified
from holdfast.kit.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem

T = TypeVar("T")

AT_ONCE = 8
"""The most deliveries that one process handles at the same time."""

OF_ONE_SHOP = 3
"""The most of one shop among them: a shop with many orders, or with slow answers, does not delay the others."""

TOGETHER = 100
"""The most deliveries that join one with which they can be handled together."""

LEASE_SECONDS = 120
"""How long a process has for a delivery: longer than its calls may take."""

PATROL_SECONDS = 5.0
PAUSES = (1.0, 1800.0)
"""Seconds until a delivery is tried again after a failure, at first and at most; they double."""

ATTEMPTS = 14
"""How often a delivery is tried: for about two hours."""

LISTED = 100
"""The most parked deliveries that are listed at once."""

WEBHOOKS = Counter(
    "holdfast_webhooks", "Deliveries of the storefront platform, and what came of them.", ["topic", "how"]
)

log = structlog.get_logger()

drop_pending = sql.drop_pending
forget = sql.forget


class _Steps(Steps):
    """Steps of a handler. Entries that it makes in the ledger say when their cause was heard of."""

    def __init__(self, database: Database, tenant: int | None, turns: Slots, delivery: Delivery) -> None:
        super().__init__(database, tenant, turns)
        self._heard_at = delivery.received_at.isoformat()

    async def transact(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        async def heard(tx: Tx) -> T:
            await tx.run("select set_config('holdfast.heard_at', %(at)s, true)", {"at": self._heard_at})
            return await work(tx)

        return await super().transact(heard)


class Inbox:
    """Takes deliveries that the platform signed, and answers when they are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._storing = Batcher[Received, None]("receive_webhooks", self._store, size=100)

    async def take(self, received: Received) -> None:
        """Store a delivery, if its shop has the app and it is not there already."""
        await self._storing.submit(received)
        WEBHOOKS.labels(received.topic, "received").inc()

    async def _store(self, received: Sequence[Received]) -> Sequence[None]:
        async def store(tx: Tx) -> None:
            if await sql.insert(tx, received):
                await tx.notify(sql.CHANNEL)

        await self._database.transact(store)
        return [None] * len(received)


class Handling:
    """Handles the deliveries in the inbox."""

    def __init__(self, database: Database, handlers: Handlers) -> None:
        self._database = database
        self._handlers = handlers
        self._settling = Batcher[Settled, None]("settle_webhooks", self._settle, size=100)
        self._turns = Slots(1)  # changes of one shop wait for each other in the database, and would hold connections

    async def run(self) -> None:
        """Handle deliveries when they are due, until cancelled."""
        changed = asyncio.Event()
        tasks: dict[asyncio.Task[int], int] = {}

        def ended(task: asyncio.Task[int]) -> None:
            del tasks[task]
            changed.set()

        for topic in self._handlers:
            begin(WEBHOOKS, topic, "parked")
        with self._database.listen(sql.CHANNEL, lambda _: changed.set()):
            try:
                while True:
                    changed.clear()
                    for taken in await self._take(AT_ONCE - len(tasks), _busy(tasks.values())):
                        task = asyncio.create_task(self._handle(taken), name=f"webhook {taken.id}")
                        tasks[task] = taken.delivery.shop_id
                        task.add_done_callback(ended)
                    pause = PATROL_SECONDS
                    if len(tasks) < AT_ONCE:
                        soon = await self._database.read(partial(sql.next_due, busy=_busy(tasks.values())))
                        pause = pause if soon is None else min(max(soon, 0.01), pause)
                    await notified(changed, pause)
            finally:
                await end(tasks)

    async def handle_all(self) -> int:
        """Handle everything that is due now. Returns how many deliveries that were."""
        handled = 0
        while taken := await self._take(AT_ONCE):
            handled += sum(await asyncio.gather(*map(self._handle, taken)))
        return handled

    async def _take(self, limit: int, busy: Sequence[int] = ()) -> Sequence[Taken]:
        if not limit:
            return ()
        take = partial(sql.take, limit=limit, of_one=OF_ONE_SHOP, busy=busy, seconds=LEASE_SECONDS)
        return await self._database.transact(take)

    async def _handle(self, taken: Taken) -> int:
        """Handle a delivery, and others with it that can be handled together. Returns how many."""
        handler = self._handlers[taken.delivery.topic]
        if isinstance(handler, Together) and (more := await self._more(taken, handler)):
            group = [taken, *more]
            if not await self._handle_together(group, handler):
                for each in group:
                    await self._settle_one(await self._outcome(each))
            return len(group)
        await self._settle_one(await self._outcome(taken))
        return 1

    async def _more(self, taken: Taken, handler: Together) -> Sequence[Taken]:
        if taken.attempts > 1:
            return ()
        topics = [topic for topic, each in self._handlers.items() if each is handler]
        take = partial(
            sql.take_more, shop_id=taken.delivery.shop_id, topics=topics, limit=TOGETHER, seconds=LEASE_SECONDS
        )
        return await self._database.transact(take)

    async def _handle_together(self, group: Sequence[Taken], handler: Together) -> bool:
        """Whether deliveries could be handled in one step."""
        earliest = min((each.delivery for each in group), key=lambda delivery: delivery.received_at)
        try:
            await handler.run(
                _Steps(self._database, earliest.shop_id, self._turns, earliest), [each.delivery for each in group]
            )
        except Exception as error:
            log.warning("webhooks are handled one by one", shop=earliest.shop_id, why=first_line(error))
            return False
        await asyncio.gather(*(self._settle_one(Settled(each)) for each in group))
        return True

    async def _settle_one(self, settled: Settled) -> None:
        taken, how = settled.taken, "handled"
        topic = taken.delivery.topic
        if settled.error is not None:
            how = "parked" if settled.pause is None else "put off"
            log.warning(f"a webhook is {how}", topic=topic, id=taken.id, attempts=taken.attempts, error=settled.error)
        WEBHOOKS.labels(topic, how).inc()
        await self._settling.submit(settled)

    async def _outcome(self, taken: Taken) -> Settled:
        delivery = taken.delivery
        if taken.attempts > ATTEMPTS:
            return Settled(taken, "The process that handled it was ended each time.")
        tenant = None if delivery.topic in BEYOND_THE_SHOP else delivery.shop_id
        first, longest = PAUSES
        pause = min(first * 2 ** (taken.attempts - 1), longest)
        try:
            await self._handlers[delivery.topic](_Steps(self._database, tenant, self._turns, delivery), delivery)
        except Unreachable as unreachable:
            error, pause = str(unreachable), max(pause, unreachable.retry_after or 0.0)
        except Exception as fault:
            passing = isinstance(fault, Problem) and fault.type in {SERVICE_UNAVAILABLE, SHOP_NOT_CONNECTED}
            error = f"{type(fault).__name__}: {first_line(fault)}"
            if not passing:
                log.error("a webhook cannot be handled", topic=delivery.topic, id=taken.id, exc_info=fault)
        else:
            return Settled(taken)
        return Settled(taken, error, pause if taken.attempts < ATTEMPTS else None)

    async def _settle(self, settled: Sequence[Settled]) -> Sequence[None]:
        await self._database.transact(lambda tx: sql.settle(tx, settled))
        return [None] * len(settled)


def _busy(shop_ids: Iterable[int]) -> Sequence[int]:
    """The shops of which as many deliveries are handled as may be."""
    return [shop_id for shop_id, count in Counted(shop_ids).items() if count >= OF_ONE_SHOP]


async def parked(tx: Tx) -> Sequence[Parked]:
    """Deliveries that could not be handled, the newest first, and at most `LISTED`."""
    return await sql.list_parked(tx, LISTED)


async def retry(tx: Tx, id: int | None) -> int:
    """Have a parked delivery tried again, or all of them. Returns how many. Raises `not_found`."""
    again = await sql.unpark(tx, id)
    if id is not None and not again:
        raise NOT_FOUND(f"No webhook with the id {id} is parked.")
    await tx.notify(sql.CHANNEL)
    return again


async def retry_of_shop(tx: Tx, shop_id: int) -> None:
    """Have all parked deliveries of a shop tried again: it is connected now."""
    await sql.unpark(tx, None, shop_id)
    await tx.notify(sql.CHANNEL)
