"""Statements on partner webhooks."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString
from uuid import UUID, uuid4

from msgspec import Struct

from holdfast.inventory.partner_webhooks.model import (
    EVEN_UNINSTALLED,
    Delivery,
    FailedDelivery,
    ReceivedDelivery,
    WaitingWebhook,
)
from holdfast.inventory.resources import Reader, Tx
from holdfast.kit.background.leases import LEASE_SECONDS

CHANNEL = "webhooks"
"""The channel on which deliveries are announced."""

SELECT_LEASED: LiteralString = """
    select id, attempts, lease_id, shop_id, topic, webhook_id, event_id, triggered_at, payload, received_at
      from leased_webhooks order by id
"""

RETRYING_OR_PARKED: LiteralString = "handled_at is null and (due_at is null or error is not null and lease_id is null)"
"""The condition on retrying and parked deliveries."""


class LeasedDelivery(Struct, frozen=True):
    """A delivery that this process has leased."""

    id: int
    attempts: int
    lease_id: UUID
    delivery: Delivery


class DeliveryResult(Struct, frozen=True):
    """The result of handling a delivery.

    error    why it was not handled; None: it was handled
    pause    seconds until the retry; None: there is none
    """

    leased: LeasedDelivery
    error: str | None = None
    pause: float | None = None


async def insert(tx: Tx, received: Sequence[ReceivedDelivery]) -> int:
    """Store deliveries for shops that have the app, each once. Returns how many were new."""
    return await tx.value(
        """
        with new_delivery as (
            insert into webhooks (shop_id, topic, webhook_id, event_id, triggered_at, payload)
            select shops.id, delivery.topic, delivery.webhook_id, delivery.event_id, delivery.triggered_at,
                   delivery.payload
              from unnest(%(domains)s::text[], %(topics)s::text[], %(webhook_ids)s::text[], %(event_ids)s::text[],
                          %(triggered)s::timestamptz[], %(payloads)s::bytea[])
                       as delivery (domain, topic, webhook_id, event_id, triggered_at, payload)
              join shops on shops.domain = delivery.domain
              join installs on installs.shop_id = shops.id
             where installs.uninstalled_at is null or delivery.topic = any(%(even_uninstalled)s)
                on conflict do nothing
            returning 1)
        select count(*) from new_delivery
        """,
        {
            "domains": [delivery.domain for delivery in received],
            "topics": [delivery.topic for delivery in received],
            "webhook_ids": [delivery.webhook_id for delivery in received],
            "event_ids": [delivery.event_id for delivery in received],
            "triggered": [delivery.triggered_at for delivery in received],
            "payloads": [delivery.payload for delivery in received],
            "even_uninstalled": [*EVEN_UNINSTALLED],
        },
    )


async def lease_due(
    tx: Tx, limit: int, max_per_shop: int, in_work: Mapping[int, int], excluded_shops: Sequence[int]
) -> list[LeasedDelivery]:
    """Lease deliveries that are due, the oldest first. No other process leases them before the lease ends.

    max_per_shop      the most deliveries of one shop, with those in work
    in_work           by shop, how many this process handles now
    excluded_shops    shops of which none are leased
    """
    rows = await tx.tuples(
        f"""
        with due as (
            select id, shop_id, due_at from webhooks where due_at <= now() and shop_id <> all(%(excluded_shops)s)
             order by due_at limit 200 for update skip locked),
        in_turn as (
            select id, due_at,
                   coalesce(busy.count, 0) + row_number() over (partition by due.shop_id order by due_at, id) as place
              from due left join unnest(%(busy_shops)s::bigint[], %(busy_counts)s::int[]) as busy (shop_id, count)
                              on busy.shop_id = due.shop_id),
        leased_webhooks as (
            update webhooks
               set due_at = clock_timestamp() + %(seconds)s * interval '1 second', attempts = attempts + 1,
                   lease_id = %(lease_id)s
             where id = any(array(select id from in_turn where place <= %(max_per_shop)s
                                   order by place, due_at limit %(limit)s))
            returning *)
        {SELECT_LEASED}
        """,
        {
            "limit": limit,
            "max_per_shop": max_per_shop,
            "busy_shops": [*in_work.keys()],
            "busy_counts": [*in_work.values()],
            "excluded_shops": list(excluded_shops),
            "seconds": LEASE_SECONDS,
            "lease_id": uuid4(),
        },
    )
    return [_leased_delivery(*row) for row in rows]


async def lease_more(tx: Tx, first: LeasedDelivery, topics: Sequence[str], limit: int) -> list[LeasedDelivery]:
    """Lease deliveries of the same shop and these topics that are due and did not fail yet, the oldest first.

    They get the lease of the first.
    """
    rows = await tx.tuples(
        f"""
        with leased_webhooks as (
            update webhooks
               set due_at = clock_timestamp() + %(seconds)s * interval '1 second', attempts = attempts + 1,
                   lease_id = %(lease_id)s
             where id = any(array(select id from webhooks
                                   where due_at <= now() and shop_id = %(shop_id)s and topic = any(%(topics)s)
                                     and attempts = 0
                                   order by due_at limit %(limit)s for update skip locked))
            returning *)
        {SELECT_LEASED}
        """,
        {
            "shop_id": first.delivery.shop_id,
            "topics": list(topics),
            "limit": limit,
            "seconds": LEASE_SECONDS,
            "lease_id": first.lease_id,
        },
    )
    return [_leased_delivery(*row) for row in rows]


def _leased_delivery(id: int, attempts: int, lease_id: UUID, *delivery: Any) -> LeasedDelivery:
    return LeasedDelivery(id, attempts, lease_id, Delivery(*delivery))


async def store_results(tx: Tx, results: Sequence[DeliveryResult]) -> None:
    """Store the results of deliveries, unless another process has leased them meanwhile."""
    await tx.run(
        """
        update webhooks
           set lease_id = null, handled_at = case when result.error is null then clock_timestamp() end,
               payload = case when result.error is not null then payload end,
               due_at = clock_timestamp() + result.pause * interval '1 second',
               error = left(result.error, 1000)
          from unnest(%(ids)s::bigint[], %(lease_ids)s::uuid[], %(errors)s::text[], %(pauses)s::float8[])
                   as result (id, lease_id, error, pause)
         where webhooks.id = result.id and webhooks.lease_id = result.lease_id
        """,
        {
            "ids": [result.leased.id for result in results],
            "lease_ids": [result.leased.lease_id for result in results],
            "errors": [result.error for result in results],
            "pauses": [result.pause for result in results],
        },
    )


async def seconds_until_due(reader: Reader, excluded_shops: Sequence[int] = ()) -> float | None:
    """The seconds until the next delivery is due; None if none is. `excluded_shops`: shops that are left out."""
    return await reader.value(
        """
        select extract(epoch from due_at - clock_timestamp())::float8 from webhooks
         where due_at is not null and shop_id <> all(%(excluded_shops)s) order by due_at limit 1
        """,
        {"excluded_shops": list(excluded_shops)},
    )


async def list_retrying_and_parked(reader: Reader, limit: int) -> list[FailedDelivery]:
    """The retrying and parked deliveries, the newest first."""
    return await reader.rows(
        FailedDelivery,
        f"""
        select webhooks.id, shops.domain, topic, attempts,
               case when due_at is not null then greatest(due_at, now()) end as next_attempt_at,
               coalesce(error, '') as error
          from webhooks join shops on shops.id = webhooks.shop_id
         where {RETRYING_OR_PARKED} order by webhooks.id desc limit %(limit)s
        """,
        {"limit": limit},
    )


async def list_waiting_order_webhooks(
    reader: Reader, shop_id: int, limit: int, *, only_retrying: bool
) -> list[WaitingWebhook]:
    """The pending and retrying webhooks about orders of a shop, or only the retrying ones, the oldest first."""
    return await reader.rows(
        WaitingWebhook,
        """
        select topic, received_at, attempts,
               case when lease_id is null and due_at > now() then due_at end as next_attempt_at, error
          from webhooks
         where shop_id = %(shop_id)s and handled_at is null and due_at is not null
           and (topic like 'orders/%%' or topic like 'refunds/%%') and (error is not null or not %(only_retrying)s)
         order by received_at limit %(limit)s
        """,
        {"shop_id": shop_id, "limit": limit, "only_retrying": only_retrying},
    )


async def retry_now(tx: Tx, id: int | None, shop_id: int | None = None) -> int:
    """Make a retrying or parked delivery due now, or all of them, or all of a shop. Returns how many."""
    return await tx.value(
        f"""
        with retried as (
            update webhooks set due_at = now(), attempts = 0, error = null
             where {RETRYING_OR_PARKED}
               and (%(id)s::bigint is null or id = %(id)s) and (%(shop_id)s::bigint is null or shop_id = %(shop_id)s)
            returning 1)
        select count(*) from retried
        """,
        {"id": id, "shop_id": shop_id},
    )


async def delete_unhandled(tx: Tx, shop_id: int) -> None:
    """Delete the deliveries of a shop that are not handled, except those that a shop without the app may have."""
    await tx.run(
        """
        delete from webhooks where shop_id = %(shop_id)s and handled_at is null and topic <> all(%(even_uninstalled)s)
        """,
        {"shop_id": shop_id, "even_uninstalled": [*EVEN_UNINSTALLED]},
    )


async def forget_handled(tx: Tx) -> int:
    """Delete a batch of the deliveries that were handled 8 days ago. Returns how many."""
    return await tx.value(
        """
        with old_webhook as (
            select id from webhooks where handled_at < now() - interval '8 days'
             order by handled_at limit 5000 for update skip locked),
        deleted as (delete from webhooks using old_webhook where webhooks.id = old_webhook.id returning 1)
        select count(*) from deleted
        """
    )
