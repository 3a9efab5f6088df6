"""A batch of pending registrations that one transaction settles."""

from typing import LiteralString, NamedTuple


class SettledBatch(NamedTuple):
    """The result of one batch.

    outcomes    the number of registrations by their new status
    locked      the events that were left out, because others have locked them or one of their registrations
    """

    outcomes: dict[str, int]
    locked: list[int]


OLDEST: LiteralString = """
        -- The xmax of a row that nobody has locked is 0. Only the other rows are locked here, one by one.
        pending as materialized (
            select event_id, user_id, received_at, arrival, amount_due, xmax <> '0'::xid as was_locked
              from registrations
             where status = 'pending' and received_at <= %(cut)s::timestamptz and event_id = any(%(event_ids)s)
             order by received_at, arrival limit %(limit)s),
        locked_registrations as materialized (
            select mine.* from pending
             cross join lateral (select event_id, user_id from registrations
                                  where was_locked and event_id = pending.event_id and user_id = pending.user_id
                                  limit 1 for no key update skip locked) as mine),
        oldest as materialized (
            select event_id, user_id, amount_due, row_number() over line as rank,
                   bool_and(not was_locked
                            or (event_id, user_id) in (select event_id, user_id from locked_registrations)) over line
                   as is_next
              from pending
            window line as (partition by event_id order by received_at, arrival))
"""
"""SQL for WITH: the `pending` registrations to settle next, and as `oldest` those of them that nobody has locked.

A registration behind a locked one of its event has `is_next` false.
"""
