"""Fan-out: each new message becomes a delivery for each endpoint that wants it, with the next number of its subject.

The transaction in which something happens only stores a message. Numbers are given here, one statement after the
other, so they have no gaps and no such transaction waits for another. Messages of rows that one transaction after the
other has locked have ascending ids, so their numbers have the order of the commits.

Tenants take turns: a batch has as many messages of each tenant as of any other, so a tenant with a million new messages
delays those of others by no more than one batch for each `MAX_TENANTS` tenants. A tenant with an endpoint that another
transaction has locked is left out of the batch, and is tried again a moment later.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, LiteralString, NamedTuple

from holdfast.kit.background.loops import Loop, LoopStep, RowWaiters
from holdfast.kit.postgres.database import Database, Tx
from holdfast.kit.postgres.notifications import POLL_SECONDS
from holdfast.kit.webhooks.endpoints import MESSAGES_CHANNEL
from holdfast.kit.webhooks.sending import DELIVERIES_CHANNEL

FAN_OUT_BATCH_SIZE = 2_000
"""The most messages of a batch."""

MAX_TENANTS = 100
"""The most tenants of a batch."""

LOCKED_RETRY_SECONDS = 0.05
"""Seconds until tenants with a locked endpoint are tried again."""

FAN_OUT_LOCK = 0x776562686F6F6B73
"""The key of the advisory lock ("webhooks") that one transaction holds while it gives numbers."""

# `turns` jumps from one tenant with new messages to the next, however many messages each has. What an endpoint in
# strict order gets is due only if nothing of the subject waits before it.
FAN_OUT: LiteralString = """
    with recursive turns (tenant_id) as (
        (select tenant_id from webhook_messages where not is_fanned_out and tenant_id > %(after)s
          order by tenant_id limit 1)
        union all
        select (select next.tenant_id from webhook_messages as next
                 where not next.is_fanned_out and next.tenant_id > turns.tenant_id
                 order by next.tenant_id limit 1)
          from turns where turns.tenant_id is not null),
    tenant_in_turn as materialized (select tenant_id from turns where tenant_id is not null limit %(tenants)s),
    endpoints as materialized (
        select id, tenant_id, status, types, is_ordered from webhook_endpoints
         where tenant_id = any(array(select tenant_id from tenant_in_turn))),
    free_endpoint as materialized (
        select id from webhook_endpoints where tenant_id = any(array(select tenant_id from tenant_in_turn))
           for no key update skip locked),
    free_tenant as materialized (
        select tenant_id from tenant_in_turn
         where not exists (select from endpoints
                            where endpoints.tenant_id = tenant_in_turn.tenant_id
                              and endpoints.id <> all(array(select id from free_endpoint)))),
    new_message as materialized (
        select message.* from free_tenant
         cross join lateral (
                select id, tenant_id, endpoint_id, type, subject from webhook_messages
                 where webhook_messages.tenant_id = free_tenant.tenant_id and not is_fanned_out
                 order by id limit %(limit)s / (select count(*) from tenant_in_turn)) as message),
    new_delivery as materialized (
        select new_message.id as message_id, endpoint.id as endpoint_id, new_message.subject, is_ordered,
               row_number() over (partition by endpoint.id, new_message.subject order by new_message.id) as place,
               count(*) over (partition by endpoint.id, new_message.subject) as places
          from new_message
          join endpoints as endpoint using (tenant_id)
         where endpoint.status <> 'paused'
           and case when new_message.endpoint_id is null
                    then endpoint.types = '{}' or new_message.type = any(endpoint.types)
                    else new_message.endpoint_id = endpoint.id end),
    subject_counter as (
        insert into webhook_subjects as counter (endpoint_id, subject, last_number)
        select endpoint_id, subject, count(*) from new_delivery
         group by endpoint_id, subject order by endpoint_id, subject
            on conflict (endpoint_id, subject) do update set last_number = counter.last_number + excluded.last_number
        returning id, endpoint_id, subject, last_number),
    stored_delivery as (
        insert into webhook_deliveries (subject_id, number, endpoint_id, message_id, due_at)
        select subject_counter.id, last_number - places + place, new_delivery.endpoint_id, message_id,
               case when is_ordered and (place > 1 or exists (
                        select from webhook_deliveries as earlier
                         where earlier.subject_id = subject_counter.id and earlier.status = 'waiting'))
                    then null else now() end
          from new_delivery join subject_counter using (endpoint_id, subject)
        returning endpoint_id),
    due_endpoint as (
        update webhook_endpoints set next_due_at = least(next_due_at, now())
         where id = any(array(select endpoint_id from stored_delivery))),
    fanned_out_message as (
        update webhook_messages set is_fanned_out = true where id = any(array(select id from new_message)) returning 1)
    select (select count(*) from tenant_in_turn), (select count(*) from free_tenant),
           (select max(tenant_id) from tenant_in_turn), (select count(*) from fanned_out_message),
           (select count(*) from stored_delivery)
"""


class FanOutBatch(NamedTuple):
    """A batch that was fanned out.

    tenants         the tenants whose turn it was
    free_tenants    those of them whose endpoints no other transaction has locked: their messages were taken
    last            the last tenant, in the order of ids; None: there was none
    messages        the messages that were taken
    """

    tenants: int
    free_tenants: int
    last: int | None
    messages: int


EMPTY_BATCH = FanOutBatch(0, 0, None, 0)


async def fan_out(tx: Tx[Any], after: int = 0) -> FanOutBatch:
    """Store the deliveries of new messages of tenants with ids above `after`."""
    if not await tx.value("select pg_try_advisory_xact_lock(%(key)s)", {"key": FAN_OUT_LOCK}):
        return EMPTY_BATCH  # another process does it
    parameters = {"after": after, "tenants": MAX_TENANTS, "limit": FAN_OUT_BATCH_SIZE}
    [(tenants, free_tenants, last, messages, deliveries)] = await tx.tuples(FAN_OUT, parameters)
    if deliveries:
        await tx.notify(DELIVERIES_CHANNEL)
    return FanOutBatch(tenants, free_tenants, last, messages)


@asynccontextmanager
async def _open_fan_out(_: Database[Any]) -> AsyncGenerator[LoopStep]:
    """The step of the loop. It remembers whose turn was the last."""
    after = 0

    async def step(database: Database[Any], _: RowWaiters) -> float:
        nonlocal after
        begun_after = after
        batch = await database.transact(partial(fan_out, after=after))
        after = batch.last if batch.last is not None and batch.tenants == MAX_TENANTS else 0
        if batch.messages or begun_after:
            return 0.0
        return LOCKED_RETRY_SECONDS if batch.free_tenants < batch.tenants else POLL_SECONDS

    yield step


FAN_OUT_LOOP = Loop("webhooks.fan_out", channels=(MESSAGES_CHANNEL,), open_step=_open_fan_out)
