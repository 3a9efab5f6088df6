"""The deletion of old visitors of queues, with what is then no longer needed.

Visitors and releases are deleted 30 days after the token of a release can last be valid; those of a deleted queue soon.
A deleted queue is deleted with its last visitor, unless it has a public log: people have receipts and heads of that
log. Then the row stays without the texts of the organizer, and the log stays readable.
"""

from typing import LiteralString

from holdfast.events.resources import Tx

NO_URL = "https://deleted.invalid"
"""The target of a deleted queue whose log is kept: an address that cannot exist (RFC 2606)."""

DELETE_BATCH_SIZE = 20_000
"""The most visitors, and the most releases, that one run deletes, so that requests do not wait for it."""

# A token can be picked up for `token_ttl_minutes`, and is then valid for the same time again.
IS_OLD: LiteralString = "released_at < now() - interval '30 days' - token_ttl_minutes * interval '2 minutes'"
"""SQL: whether a release of a queue is so old that its visitors are not needed any more."""


async def forget_visitors(tx: Tx) -> int:
    """Delete one batch of rows that are no longer needed. Returns the number of deleted rows."""
    return await _delete_visitors(tx) + await _delete_releases(tx) + await _delete_queues(tx)


async def _delete_visitors(tx: Tx) -> int:
    """Delete released visitors, and all visitors of deleted queues. Returns the number deleted."""
    return await tx.value(
        f"""
        with old_visitor as (
            select visitor.queue_id, visitor.visitor_id
              from queues
             cross join lateral (
                select case when deleted_at is not null then tickets
                            else (select max(last_ticket) from queue_releases
                                   where queue_id = queues.id
                                     and {IS_OLD}) end as up_to
                  ) as released
             -- Tickets of a drawn list have other places, so they are deleted when the whole list is past.
             cross join lateral (
                select case when deleted_at is not null or drawn_at is null or released.up_to >= draw_entries
                            then released.up_to end as up_to) as old_tickets
             cross join lateral (
                select queue_id, visitor_id from queue_visitors
                 where queue_id = queues.id and ticket <= old_tickets.up_to
                   and (queues.deleted_at is not null or expires_at is null or expires_at < now())
                 limit %(limit)s for update skip locked) as visitor
             limit %(limit)s),
        deleted_visitor as (
            delete from queue_visitors using old_visitor
             where queue_visitors.queue_id = old_visitor.queue_id and queue_visitors.visitor_id = old_visitor.visitor_id
         returning 1)
        select count(*) from deleted_visitor
        """,
        {"limit": DELETE_BATCH_SIZE},
    )


async def _delete_releases(tx: Tx) -> int:
    """Delete releases that have no visitor any more. Returns the number deleted."""
    return await tx.value(
        f"""
        with old_release as (
            select queue_id, last_ticket
              from queue_releases join queues on queues.id = queue_releases.queue_id
             cross join lateral (
                select case when is_drawn then 1 else first_ticket end as first,
                       case when is_drawn then greatest(last_ticket, draw_entries) else last_ticket end as last
                  from (select drawn_at is not null and first_ticket <= draw_entries as is_drawn) as release
                   ) as tickets_of
             where not exists (select from queue_visitors
                                where queue_id = queues.id and ticket <= tickets_of.last and ticket >= tickets_of.first)
               and (deleted_at is not null
                    or {IS_OLD})
             limit %(limit)s for update of queue_releases skip locked),
        deleted_release as (
            delete from queue_releases using old_release
             where queue_releases.queue_id = old_release.queue_id
               and queue_releases.last_ticket = old_release.last_ticket
         returning 1)
        select count(*) from deleted_release
        """,
        {"limit": DELETE_BATCH_SIZE},
    )


async def _delete_queues(tx: Tx) -> int:
    """Delete queues that were deleted and are empty, or their texts if they have a log. Returns how many."""
    return await tx.value(
        """
        with empty_queue as (
            select id, exists (select from logs where queue_id = queues.id) as has_log from queues
             where deleted_at is not null and target_url <> %(no_url)s
               and not exists (select from queue_visitors where queue_id = queues.id)
               and not exists (select from queue_releases where queue_id = queues.id)
               for update skip locked),
        deleted_queue as (
            delete from queues using empty_queue where queues.id = empty_queue.id and not has_log returning 1),
        cleared_queue as (
            update queues set title = '', description = null, target_url = %(no_url)s
              from empty_queue where queues.id = empty_queue.id and has_log
         returning 1)
        select (select count(*) from deleted_queue) + (select count(*) from cleared_queue)
        """,
        {"no_url": NO_URL},
    )
