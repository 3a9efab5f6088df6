"""The new generation of each log in a database that was restored from a backup."""

from typing import Any, LiteralString

import psycopg

BEGIN_GENERATIONS: LiteralString = """
    with old as (
        update logs set closed_at = now() where closed_at is null
     returning id, event_id, queue_id, generation, arrivals, moved, removed),
    new as (
        insert into logs (event_id, queue_id, generation, arrivals, moved, removed)
        select event_id, queue_id, generation + 1, arrivals, moved, removed from old
     returning id, event_id, queue_id, arrivals),
    state as (
        select new.id, coalesce(new.event_id, new.queue_id) as subject_id, new.event_id is not null as is_event,
               case when new.event_id is not null
                    then jsonb_build_object('of', 'event', 'capacity', capacity, 'waiting_places', waitinglist_capacity,
                                            'seated', registered_count, 'waiting', waitlisted_count,
                                            'first_number', new.arrivals + 1)
                    else jsonb_build_object('of', 'queue', 'first_number', tickets + 1, 'released', serving)
               end
               || case when events.draw_at is not null and events.drawn_at is null
                       then jsonb_build_object('draw', named_draw(events.draw_at, events.draw_round))
                       when queues.draw_at is not null and queues.drawn_at is null
                       then jsonb_build_object('draw', named_draw(queues.draw_at, queues.draw_round))
                       else '{}' end as details
          from new left join events on events.id = new.event_id left join queues on queues.id = new.queue_id
         where new.event_id is not null or new.queue_id is not null)
    insert into log_pending (log_id, kind, details)
    select state.id, 'open',
           case when origin is null then details
                else details || jsonb_build_object('after', jsonb_build_object(
                        'origin', origin, 'size', size, 'root', encode(root, 'base64'))) end
      from state
      join old on coalesce(old.event_id, old.queue_id) = subject_id and (old.event_id is not null) = is_event
      left join log_heads on log_heads.log_id = old.id
"""

BEGIN_HEAD_LOG: LiteralString = """
    with new as (
        select id, generation from logs where event_id is null and queue_id is null order by generation desc limit 1),
    moved as (
        delete from log_pending where kind = 'head' returning id, details),
    entry as (
        select 0 as place, jsonb_build_object(
                   'text', concat(origin, chr(10), size, chr(10), encode(root, 'base64'), chr(10))) as details
          from new
          join logs as old on old.event_id is null and old.queue_id is null and old.generation = new.generation - 1
          join log_heads on log_id = old.id
         union all
        select id, details from moved)
    insert into log_pending (log_id, kind, details) select new.id, 'head', details from new, entry order by place
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
        # As text: in a backup from before the head log, there is no such kind.
        connection.execute("delete from log_pending where kind::text <> 'head'")
        connection.execute(BEGIN_GENERATIONS)
        if connection.execute("select 1 from logs where event_id is null and queue_id is null").fetchone():
            connection.execute(BEGIN_HEAD_LOG)
