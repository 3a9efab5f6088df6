"""Fan-out: each new message becomes a delivery for each endpoint that wants it, with the next number of its subject.

The transaction in which something happens only stores a message. Numbers are given here, one statement after the
other, so they have no gaps and no such transaction waits for another. Messages of rows that one transaction after the
other has locked have ascending ids, so their numbers have the order of the commits.
"""

from typing import Any, LiteralString

from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.postgres.database import Database, Tx
from holdfast.kit.postgres.notifications import POLL_SECONDS
from holdfast.kit.webhooks.endpoints import CHANNEL
from holdfast.kit.webhooks.sending import DELIVERIES_CHANNEL

BATCH_SIZE = 2_000

FAN_OUT_LOCK = 0x776562686F6F6B73
"""The key of the advisory lock ("webhooks") that one transaction holds while it gives numbers."""

# What an endpoint in strict order gets is due only if nothing of the subject waits before it.
FAN_OUT: LiteralString = """
    with fresh as materialized (
        select id, tenant_id, endpoint_id, type, subject from webhook_messages
         where not is_fanned_out order by id limit %(limit)s),
    wanted as materialized (
        select fresh.id as message_id, endpoint.id as endpoint_id, fresh.subject, is_ordered,
               row_number() over (partition by endpoint.id, fresh.subject order by fresh.id) as place,
               count(*) over (partition by endpoint.id, fresh.subject) as places
          from fresh
          join webhook_endpoints as endpoint using (tenant_id)
         where endpoint.status <> 'paused'
           and case when fresh.endpoint_id is null
                    then endpoint.types = '{}' or fresh.type = any(endpoint.types)
                    else fresh.endpoint_id = endpoint.id end),
    counted as (
        insert into webhook_subjects as counter (endpoint_id, subject, last_number)
        select endpoint_id, subject, count(*) from wanted group by endpoint_id, subject order by endpoint_id, subject
            on conflict (endpoint_id, subject) do update set last_number = counter.last_number + excluded.last_number
        returning id, endpoint_id, subject, last_number),
    stored as (
        insert into webhook_deliveries (subject_id, number, endpoint_id, message_id, due_at)
        select counted.id, last_number - places + place, wanted.endpoint_id, message_id,
               case when is_ordered and (place > 1 or exists (
                        select from webhook_deliveries as before
                         where before.subject_id = counted.id and before.status = 'waiting'))
                    then null else now() end
          from wanted join counted using (endpoint_id, subject)
        returning endpoint_id),
    woken as (
        update webhook_endpoints set next_due_at = least(next_due_at, now())
         where id = any(array(select endpoint_id from stored))),
    done as (
        update webhook_messages set is_fanned_out = true where id = any(array(select id from fresh)) returning 1)
    select (select count(*) from done), (select count(*) from stored)
"""


async def fan_out(tx: Tx[Any]) -> int:
    """Store the deliveries of a batch of new messages. Returns the number of messages."""
    if not await tx.value("select pg_try_advisory_xact_lock(%(key)s)", {"key": FAN_OUT_LOCK}):
        return 0  # another process does it
    [(messages, deliveries)] = await tx.tuples(FAN_OUT, {"limit": BATCH_SIZE})
    if deliveries:
        await tx.notify(DELIVERIES_CHANNEL)
    return messages


async def _step(database: Database[Any], locked: RowWaiters) -> float:
    messages = await database.transact(fan_out)
    return 0.0 if messages == BATCH_SIZE else POLL_SECONDS


FAN_OUT_LOOP = Loop("webhooks.fan_out", _step, channels=(CHANNEL,))
