"""Results of sending webhooks: what an attempt causes for its message, for the next ones, and for the endpoint."""

from collections.abc import Sequence
from typing import Any, LiteralString

from msgspec import Struct

from holdfast.kit.postgres.database import Tx
from holdfast.kit.webhooks.failures import FailureReason

FAILING_DAYS = 5
"""Days without any delivery after which an endpoint gets the status `failing`."""


class SendResult(Struct, kw_only=True):
    """The result of sending a message.

    status            the HTTP status; None: no answer came
    reason            why it failed, in one word; None: it was delivered
    error             why it failed, in sentences
    retry_pause       seconds until the next attempt; None: there is none
    endpoint_pause    seconds for which the endpoint gets nothing, because it asked for that or has too much to do
    """

    message_id: int
    status: int | None
    milliseconds: int
    reason: FailureReason | None = None
    error: str | None = None
    retry_pause: float | None = None
    endpoint_pause: float = 0.0


STORE_RESULTS: LiteralString = """
    with endpoint as materialized (
        select id from webhook_endpoints where id = %(endpoint_id)s for no key update),
    result as materialized (
        select * from unnest(%(ids)s::bigint[], %(statuses)s::integer[], %(milliseconds)s::integer[],
                             %(reasons)s::text[], %(errors)s::text[], %(pauses)s::float8[])
                   as result (message_id, http_status, milliseconds, reason, error, pause)),
    logged as (
        insert into webhook_attempts (endpoint_id, message_id, status, milliseconds, reason, error)
        select endpoint.id, message_id, http_status, milliseconds, reason, error
          from endpoint cross join result join webhook_messages on webhook_messages.id = message_id),
    sent_message as materialized (
        select result.*, subject_id, number from result
         cross join lateral (
                select subject_id, number from webhook_deliveries
                 where endpoint_id = %(endpoint_id)s and message_id = result.message_id limit 1) as delivery),
    changed_delivery as (
        update webhook_deliveries
           set attempts = attempts + 1,
               status = case when error is null then 'delivered'
                             when pause is null then 'failed' else 'waiting' end,
               due_at = case when error is not null then now() + pause * interval '1 second' end,
               ended_at = case when error is null or pause is null then now() end
          from sent_message
         where webhook_deliveries.subject_id = sent_message.subject_id
           and webhook_deliveries.number = sent_message.number
        returning webhook_deliveries.subject_id, webhook_deliveries.number, webhook_deliveries.status),
    -- If the endpoint wants strict order, the next message of the subject may be sent now.
    next_delivery as (
        update webhook_deliveries as delivery set due_at = now()
          from changed_delivery, webhook_endpoints
         where webhook_endpoints.id = %(endpoint_id)s and is_ordered and changed_delivery.status <> 'waiting'
           and delivery.subject_id = changed_delivery.subject_id and delivery.due_at is null
           and delivery.number = (
                select min(number) from webhook_deliveries as later
                 where later.subject_id = changed_delivery.subject_id and later.number > changed_delivery.number
                   and later.status = 'waiting')),
    -- If something was delivered, a few messages that failed before are due now, the oldest first. After a single
    -- attempt the next one comes within seconds anyway. A message that was brought forward five times fails by its own
    -- fault.
    brought_forward as (
        update webhook_deliveries as delivery set due_at = created_at, early_attempts = early_attempts + 1
          from webhook_messages
         where %(delivered)s and delivery.endpoint_id = %(endpoint_id)s
           and delivery.message_id = any(array(
                select message_id
                  from (select message_id, due_at from webhook_deliveries
                         where endpoint_id = %(endpoint_id)s and status = 'waiting'
                           and attempts > 1 and early_attempts < 5
                         order by message_id limit %(max_scanned)s) as failed
                 where due_at > now() order by message_id limit %(max_brought_forward)s))
           and webhook_messages.id = delivery.message_id)
    update webhook_endpoints
       set failures = case when %(delivered)s then 0 else failures + 1 end,
           failing_since = case when not %(delivered)s then coalesce(failing_since, now()) end,
           status = case when %(is_gone)s then 'paused'
                         when not %(delivered)s
                              and failing_since < now() - %(days)s * interval '1 day' then 'failing'
                         else status end
     where id = (select id from endpoint)
    returning failures
"""


async def store_results(
    tx: Tx[Any], endpoint_id: int, results: Sequence[SendResult], *, max_brought_forward: int, max_scanned: int
) -> int:
    """Store the results of a batch of messages. Returns how many batches in a row, up to this one, delivered nothing.

    Nothing is stored if the endpoint was deleted meanwhile.

    max_brought_forward    the most messages to bring forward, if one of the batch was delivered
    max_scanned            the most messages to read for that, with those that are due already
    """
    return await tx.value(
        STORE_RESULTS,
        {
            "endpoint_id": endpoint_id,
            "ids": [result.message_id for result in results],
            "statuses": [result.status for result in results],
            "milliseconds": [result.milliseconds for result in results],
            "reasons": [result.reason for result in results],
            "errors": [result.error for result in results],
            "pauses": [result.retry_pause for result in results],
            "delivered": any(result.error is None for result in results),
            "is_gone": any(result.status == 410 for result in results),
            "days": FAILING_DAYS,
            "max_scanned": max_scanned,
            "max_brought_forward": max_brought_forward,
        },
    )
