"""Statements on endpoints of webhooks, and on what is sent to them."""

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.webhooks.model import (
    MAX_COUNTED,
    CreateWebhookEndpoint,
    DueMessage,
    EndpointRow,
    ListWebhookDeliveries,
    MessageCounts,
    ResendWebhookMessages,
    WebhookAttempt,
    WebhookDelivery,
    WebhookFailure,
    id_of,
)

COLUMNS: LiteralString = """
    id, tenant_id, url, types, is_ordered, status, sealed, created_at, failing_since,
    case when lease_id is null and leased_until > clock_timestamp() then leased_until end as waits_until
"""

ENDPOINT: LiteralString = f"select {COLUMNS} from webhook_endpoints"


async def list_endpoints(reader: Reader[Any], tenant_id: int) -> list[EndpointRow]:
    return await reader.rows(
        EndpointRow, f"{ENDPOINT} where tenant_id = %(tenant_id)s order by id", {"tenant_id": tenant_id}
    )


async def find_endpoint_of_tenant(reader: Reader[Any], tenant_id: int, id: int) -> EndpointRow | None:
    return await reader.row(
        EndpointRow,
        f"{ENDPOINT} where tenant_id = %(tenant_id)s and id = %(id)s",
        {"tenant_id": tenant_id, "id": id},
    )


async def find_active_endpoint(reader: Reader[Any], id: int) -> EndpointRow | None:
    """An endpoint of any tenant, if its status is `active`."""
    return await reader.row(
        EndpointRow,
        """
        select id, tenant_id, url, types, is_ordered, status, sealed, created_at, failing_since,
               null as waits_until
          from webhook_endpoints
         where id = %(id)s and status = 'active'
        """,
        {"id": id},
    )


async def count_messages(reader: Reader[Any], endpoint_ids: Sequence[int]) -> dict[int, MessageCounts]:
    """How many messages wait, and how many failed, for each endpoint: at most `MAX_COUNTED` of both are counted."""
    rows = await reader.tuples(
        """
        select id, (select count(*) from (
                     select from webhook_deliveries
                      where endpoint_id = id and status = 'waiting' limit %(max_counted)s) as waiting),
               (select count(*) from (
                     select from webhook_deliveries
                      where endpoint_id = id and status = 'failed' limit %(max_counted)s) as failed)
          from unnest(%(ids)s::bigint[]) as id
        """,
        {"ids": [*endpoint_ids], "max_counted": MAX_COUNTED},
    )
    return {id: MessageCounts(waiting_count, failed_count) for id, waiting_count, failed_count in rows}


async def lock_endpoint(tx: Tx[Any], tenant_id: int, id: int) -> EndpointRow | None:
    return await tx.row(
        EndpointRow,
        f"{ENDPOINT} where tenant_id = %(tenant_id)s and id = %(id)s for no key update",
        {"tenant_id": tenant_id, "id": id},
    )


async def insert_endpoint(tx: Tx[Any], tenant_id: int, command: CreateWebhookEndpoint, sealed: bytes) -> EndpointRow:
    row = await tx.row(
        EndpointRow,
        f"""
        insert into webhook_endpoints (tenant_id, url, types, is_ordered, sealed, language)
        values (%(tenant_id)s, %(url)s, %(types)s, %(is_ordered)s, %(sealed)s, %(language)s)
        returning {COLUMNS}
        """,
        {
            "tenant_id": tenant_id,
            "url": command.url,
            "types": command.types,
            "is_ordered": command.ordered,
            "sealed": sealed,
            "language": command.language,
        },
    )
    assert row
    return row


async def update_endpoint(tx: Tx[Any], row: EndpointRow) -> None:
    """Store an endpoint that was changed by a person, and have what waits for it sent."""
    await tx.run(
        """
        update webhook_endpoints
           set url = %(url)s, types = %(types)s, is_ordered = %(is_ordered)s, status = %(status)s,
               failing_since = %(failing_since)s, failures = 0,
               leased_until = case when lease_id is null then now() else leased_until end,
               next_due_at = (select min(due_at) from webhook_deliveries
                               where endpoint_id = %(id)s and status = 'waiting' and due_at is not null)
         where id = %(id)s
        """,
        {
            "id": row.id,
            "url": row.url,
            "types": row.types,
            "is_ordered": row.is_ordered,
            "status": row.status,
            "failing_since": row.failing_since,
        },
    )


async def make_all_due(tx: Tx[Any], endpoint_id: int) -> None:
    """Let deliveries that wait for the one before them wait no longer."""
    await tx.run(
        """
        with made_due as (
            update webhook_deliveries set due_at = now()
             where endpoint_id = %(id)s and status = 'waiting' and due_at is null)
        update webhook_endpoints set next_due_at = least(next_due_at, now()) where id = %(id)s
        """,
        {"id": endpoint_id},
    )


async def delete_endpoint(tx: Tx[Any], id: int) -> None:
    await tx.run("delete from webhook_endpoints where id = %(id)s", {"id": id})


async def pause_endpoints(tx: Tx[Any], tenant_id: int) -> None:
    await tx.run("update webhook_endpoints set status = 'paused' where tenant_id = %(id)s", {"id": tenant_id})


async def delete_endpoints(tx: Tx[Any], tenant_id: int) -> None:
    """Delete the endpoints of a tenant, and its messages. First the endpoints: the fan-out leaves out a tenant with one
    that is locked.
    """
    await tx.run("delete from webhook_endpoints where tenant_id = %(id)s", {"id": tenant_id})
    await tx.run("delete from webhook_messages where tenant_id = %(id)s", {"id": tenant_id})


async def store_secrets(tx: Tx[Any], id: int, sealed: bytes) -> None:
    await tx.run("update webhook_endpoints set sealed = %(sealed)s where id = %(id)s", {"id": id, "sealed": sealed})


async def insert_ping(tx: Tx[Any], row: EndpointRow, type: str) -> None:
    """Store a test message for one endpoint."""
    await tx.run(
        """
        insert into webhook_messages (tenant_id, endpoint_id, type, subject, data)
        values (%(tenant_id)s, %(id)s, %(type)s, 'endpoint ' || %(id)s, jsonb_build_object('endpoint_id', %(id)s))
        """,
        {"tenant_id": row.tenant_id, "id": row.id, "type": type},
    )
    await tx.run(WAKE, {"endpoint_id": row.id})


async def due_messages(reader: Reader[Any], endpoint_id: int, limit: int) -> list[DueMessage]:
    """The messages that are due for an endpoint, those that wait longest first; none after it was paused."""
    return await reader.rows(
        DueMessage,
        """
        select message_id as id, type, subject, number, data, created_at, attempts, early_attempts
          from webhook_deliveries join webhook_messages on webhook_messages.id = message_id
         where webhook_deliveries.endpoint_id = %(endpoint_id)s and status = 'waiting' and due_at <= now()
           and exists (select from webhook_endpoints where id = %(endpoint_id)s and status = 'active')
         order by due_at, message_id limit %(limit)s
        """,
        {"endpoint_id": endpoint_id, "limit": limit},
    )


async def list_deliveries(
    reader: Reader[Any], endpoint_id: int, command: ListWebhookDeliveries
) -> list[WebhookDelivery]:
    of_status: LiteralString = "and status = %(status)s" if command.status else ""
    of_message: LiteralString = "and message_id = %(message_id)s" if command.message_id else ""
    return await reader.rows(
        WebhookDelivery,
        f"""
        select 'msg_' || message_id as message_id, type, subject, number, status, attempts, created_at,
               due_at as next_attempt_at, ended_at, data
          from (select message_id, number, status, attempts, due_at, ended_at from webhook_deliveries
                 where endpoint_id = %(endpoint_id)s {of_status} {of_message}
                 order by message_id desc offset %(offset)s limit %(limit)s + 1) as delivery
         cross join lateral (
                select type, subject, created_at, data from webhook_messages where id = message_id limit 1) as message
         order by delivery.message_id desc
        """,
        {
            "endpoint_id": endpoint_id,
            "status": command.status,
            "message_id": id_of(command.message_id) if command.message_id else None,
            "offset": command.offset,
            "limit": command.limit,
        },
    )


async def list_attempts(reader: Reader[Any], endpoint_id: int, message_id: int) -> list[WebhookAttempt]:
    return await reader.rows(
        WebhookAttempt,
        """
        select row_number() over (order by id) as attempt, attempted_at, status, milliseconds, reason, error
          from webhook_attempts
         where endpoint_id = %(endpoint_id)s and message_id = %(message_id)s order by id
        """,
        {"endpoint_id": endpoint_id, "message_id": message_id},
    )


MAX_SCANNED_FAILURES = 25
"""The most messages that wait, and that failed, of which the last attempts are read for the newest failure."""


async def find_failure(reader: Reader[Any], tenant_id: int | None, endpoint_id: int) -> WebhookFailure | None:
    """The newest attempt that failed, of the messages that are due last and of those that failed last."""
    return await reader.row(
        WebhookFailure,
        """
        with endpoint as (
            select id from webhook_endpoints where tenant_id = %(tenant_id)s and id = %(endpoint_id)s),
        delivery as (
            (select message_id from webhook_deliveries
              where endpoint_id = (select id from endpoint) and status = 'waiting' and due_at is not null
              order by due_at desc limit %(max_scanned)s)
            union all
            (select message_id from webhook_deliveries
              where endpoint_id = (select id from endpoint) and status = 'failed'
              order by message_id desc limit %(max_scanned)s))
        select attempted_at, attempt.status, reason
          from delivery cross join lateral (
                select id, attempted_at, status, reason, error from webhook_attempts
                 where endpoint_id = %(endpoint_id)s and message_id = delivery.message_id
                 order by id desc limit 1) as attempt
         where error is not null order by attempt.id desc limit 1
        """,
        {"tenant_id": tenant_id, "endpoint_id": endpoint_id, "max_scanned": MAX_SCANNED_FAILURES},
    )


RESEND: LiteralString = """
    update webhook_deliveries
       set status = 'waiting', due_at = now(), ended_at = null, attempts = 0, early_attempts = 0
     where endpoint_id = %(endpoint_id)s and
"""

WAKE: LiteralString = """
    update webhook_endpoints
       set next_due_at = least(next_due_at, now()),
           leased_until = case when lease_id is null then now() else leased_until end
     where id = %(endpoint_id)s
"""
"""What a person has asked for is sent at once, also in the pause after a failure."""


async def resend_message(tx: Tx[Any], endpoint_id: int, message_id: int) -> int:
    """Make the delivery of a message due. Returns how many there are: 1 or 0."""
    parameters = {"endpoint_id": endpoint_id, "message_id": message_id}
    rows = await tx.tuples(f"{RESEND} message_id = %(message_id)s returning 1", parameters)
    await tx.run(WAKE, parameters)
    return len(rows)


async def resend_range(
    tx: Tx[Any], row: EndpointRow, command: ResendWebhookMessages, limit: int
) -> tuple[int, int | None]:
    """Make the deliveries of the first `limit` messages of a time due.

    Returns their number, and the id of the last of them if more may follow.
    """
    [(count, last)] = await tx.tuples(
        f"""
        with batch as materialized ({_batch(command)}),
        resent as ({RESEND} message_id = any(array(select message_id from batch)))
        select count(*), max(message_id) from batch
        """,
        _range_parameters(row, command, limit),
    )
    await tx.run(WAKE, {"endpoint_id": row.id})
    return count, last if count == limit else None


async def count_range(
    reader: Reader[Any], row: EndpointRow, command: ResendWebhookMessages, limit: int
) -> tuple[int, int | None]:
    """What `resend_range` would return. It changes nothing."""
    [(count, last)] = await reader.tuples(
        f"select count(*), max(message_id) from ({_batch(command)}) as batch", _range_parameters(row, command, limit)
    )
    return count, last if count == limit else None


def _batch(command: ResendWebhookMessages) -> LiteralString:
    """The first messages of a time that are sent again.

    Ids ascend with times, except for transactions at the same moment: that is the reason for the minute.
    """
    status: LiteralString = "status = 'failed'" if command.only_failed else "status in ('failed', 'delivered')"
    return f"""
        select message_id
          from webhook_deliveries cross join lateral (
               select created_at from webhook_messages where id = message_id limit 1) as message
         where endpoint_id = %(endpoint_id)s and {status} and message_id > %(after)s
           and message_id >= (
               select id from webhook_messages
                where tenant_id = %(tenant_id)s and created_at >= %(since)s::timestamptz - interval '1 minute'
                order by created_at limit 1)
           and created_at >= %(since)s and created_at <= coalesce(%(until)s::timestamptz, 'infinity')
         order by message_id limit %(limit)s
    """


def _range_parameters(row: EndpointRow, command: ResendWebhookMessages, limit: int) -> dict[str, object]:
    return {
        "endpoint_id": row.id,
        "tenant_id": row.tenant_id,
        "since": command.since,
        "until": command.until,
        "after": id_of(command.after) if command.after else 0,
        "limit": limit,
    }


async def delete_old_messages(tx: Tx[Any], days: int, limit: int) -> int:
    """Delete at most `limit` older messages, with their deliveries and attempts. Returns the number deleted.

    A subject of which no delivery is left goes too: a hold has two messages, and would keep its row for good.
    """
    [(count, subjects)] = await tx.tuples(
        """
        with old_message as materialized (
            select id from webhook_messages where created_at < now() - %(days)s * interval '1 day'
             order by created_at limit %(limit)s for update skip locked),
        subjects as materialized (
            select distinct subject_id from webhook_deliveries
             where message_id = any(array(select id from old_message))),
        deleted as (delete from webhook_messages where id = any(array(select id from old_message)) returning 1)
        select (select count(*) from deleted), array(select subject_id from subjects)
        """,
        {"days": days, "limit": limit},
    )
    # The fan-out may number a message of such a subject now. A locked one is left; once we have locked it, the next
    # statement sees what was numbered before, and a later message waits and begins at 1.
    locked = await tx.tuples(
        "select id from webhook_subjects where id = any(%(ids)s) order by id for update skip locked", {"ids": subjects}
    )
    await tx.run(
        """
        delete from webhook_subjects
         where id = any(%(ids)s) and not exists (select from webhook_deliveries where subject_id = webhook_subjects.id)
        """,
        {"ids": [id for (id,) in locked]},
    )
    return count
