"""The new generation of each log in a database that was restored from a backup."""

from typing import Any, LiteralString

import psycopg

BEGIN_GENERATIONS: LiteralString = """
    with dropped_row as (
        -- As text: in a backup from before the head log, there is no such kind.
        delete from log_pending where kind::text <> 'head' returning log_id, kind),
    old_log as (
        update logs set closed_at = now() where closed_at is null
     returning id, event_id, queue_id, generation, arrivals, moved, removed),
    new_log as (
        insert into logs (event_id, queue_id, generation, arrivals, moved, removed)
        select event_id, queue_id, generation + 1, arrivals, moved, removed from old_log
     returning id, event_id, queue_id, arrivals),
    drawn_list as (
        select new_log.id, new_log.event_id, null::bigint as queue_id, draw_at, draw_round, draw_void_at from new_log
          join events on events.id = new_log.event_id and takes_entries and draw_at is not null
         union all
        select new_log.id, null, new_log.queue_id, draw_at, draw_round, draw_void_at from new_log
          join queues on queues.id = new_log.queue_id and draw_at is not null and drawn_at is null),
    log_state as (
        select new_log.id, coalesce(new_log.event_id, new_log.queue_id) as subject_id,
               new_log.event_id is not null as is_event,
               case when new_log.event_id is not null
                    then jsonb_build_object('of', 'event', 'capacity', capacity, 'waiting_places', waitinglist_capacity,
                                            'seated', registered_count, 'waiting', waitlisted_count,
                                            'first_number', new_log.arrivals + 1)
                         || jsonb_strip_nulls(jsonb_build_object(
                                'event', case when cancelled_at is not null then 'cancelled' end,
                                'in_draw', case when takes_entries
                                                then (select count(*) from registrations
                                                       where event_id = events.id and status::text = 'in_draw') end))
                    else jsonb_build_object('of', 'queue', 'first_number', tickets + 1, 'released', serving)
               end
               || coalesce((select jsonb_build_object('draw', named_draw(draw_at, draw_round))
                              from drawn_list where drawn_list.id = new_log.id), '{}') as details
          from new_log left join events on events.id = new_log.event_id left join queues on queues.id = new_log.queue_id
         where new_log.event_id is not null or new_log.queue_id is not null),
    frozen_list as (
        select drawn_list.id, frozen_at, origin, entries, size, root, round
          from drawn_list join event_freezes using (event_id) where draw_void_at is null
         union all
        select drawn_list.id, frozen_at, origin, entries, size, root, round
          from drawn_list join queue_freezes using (queue_id) where draw_void_at is null),
    entry as (
        select log_state.id as log_id, 1 as place, 0::bigint as number, 'open' as kind, clock_timestamp() as at,
               case when origin is null then details
                    else details || jsonb_build_object('after', jsonb_build_object(
                            'origin', origin, 'size', size, 'root', encode(root, 'base64'))) end as details
          from log_state
          join old_log
            on coalesce(old_log.event_id, old_log.queue_id) = subject_id and (old_log.event_id is not null) = is_event
          left join log_heads on log_heads.log_id = old_log.id
         union all
        select id, 2, number, 'confirmations', clock_timestamp(), jsonb_build_object('numbers', tickets)
          from drawn_list join event_confirmations using (event_id) where draw_void_at is null
         union all
        -- Unless the old log did not have it yet: then the draw becomes void.
        select id, 3, 0, 'freeze', frozen_at,
               jsonb_build_object('origin', origin, 'entries', entries, 'size', size, 'root', encode(root, 'base64'),
                                  'round', round)
          from frozen_list
         where origin not in (select origin from dropped_row join log_heads using (log_id) where kind::text = 'freeze')
         union all
        select id, 4, 0, 'draw', drawn_at,
               jsonb_build_object('round', round, 'signature', encode(signature, 'hex'), 'seed', encode(seed, 'hex'),
                                  'order', encode(order_hash, 'hex'))
          from drawn_list join event_draws using (event_id)
         union all
        select id, 5, 0, 'change', draw_void_at,
               jsonb_build_object('draw', named_draw(draw_at, draw_round) || '{"void": true}', 'by', 'service')
          from drawn_list where draw_void_at is not null)
    insert into log_pending (log_id, kind, at, details)
    select log_id, kind::log_entry_kind, at, details from entry order by log_id, place, number
"""
"""SQL: closes each log, and opens the next one of the same event or queue.

The new log begins with the present places, and repeats what the old one had about a draw that goes on.
"""

BEGIN_HEAD_LOG: LiteralString = """
    with new_log as (
        select id, generation from logs where event_id is null and queue_id is null order by generation desc limit 1),
    pending_head as (
        delete from log_pending where kind = 'head' returning id, details),
    entry as (
        select 0 as place, jsonb_build_object(
                   'text', concat(origin, chr(10), size, chr(10), encode(root, 'base64'), chr(10))) as details
          from new_log
          join logs as old_log
            on old_log.event_id is null and old_log.queue_id is null and old_log.generation = new_log.generation - 1
          join log_heads on log_id = old_log.id
         union all
        select id, details from pending_head)
    insert into log_pending (log_id, kind, details)
    select new_log.id, 'head', details from new_log, entry order by place
"""
"""The new head log begins with the head of the old one. Then come the heads that were not in the old one yet."""


def begin_generations(connection: psycopg.Connection[Any]) -> None:
    """Begin a new generation of every open log, in a database that was restored from a backup.

    The logs went on after the backup was made. If they continued from the backup, they would contradict what was signed
    since. Rows that are pending in the backup are deleted: they belong to the old logs.
    """
    if connection.execute("select to_regclass('log_heads')").fetchone() == (None,):
        return  # the backup is older than logs
    with connection.transaction():
        connection.execute(BEGIN_GENERATIONS)
        if connection.execute("select 1 from logs where event_id is null and queue_id is null").fetchone():
            connection.execute(BEGIN_HEAD_LOG)
