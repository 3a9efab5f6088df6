"""Statements on events."""

from collections.abc import Collection, Sequence
from typing import Any, LiteralString

from holdfast.events.events.model import CHANGE_CHANNEL, EVENT_COLUMNS, EventRow
from holdfast.events.resources import Reader, Tx
from holdfast.kit.postgres.pagination import OffsetPage, Page, page_of_long_items

EVENT: LiteralString = f"""
select {EVENT_COLUMNS}
  from events join users as organizers on organizers.id = events.organizer_id
"""


COUNT_OPEN: LiteralString = """
    select count(*) from events
     where organizer_id = %(organizer_id)s and cancelled_at is null and datetime > now()
"""
TEXT: LiteralString = """
    select coalesce(sum(octet_length(title) + octet_length(body) + coalesce(octet_length(address), 0)
                        + coalesce(octet_length(location_name), 0)), 0)
      from events where organizer_id = %(organizer_id)s
"""
"""The bytes of text in all events of an organizer."""


async def find_event(reader: Reader, id: int) -> EventRow | None:
    return await reader.row(
        EventRow,
        f"{EVENT} where events.id = %(id)s",
        {"id": id},
    )


async def find_events(reader: Reader, ids: Collection[int]) -> dict[int, EventRow]:
    """The events that exist among the ids, by id."""
    rows = await reader.rows(
        EventRow,
        f"""
        select event.*
          from unnest(%(ids)s::bigint[]) as requested (id)
         cross join lateral ({EVENT} where events.id = requested.id limit 1) as event
        """,
        {"ids": list(ids)},
    )
    return {row.id: row for row in rows}


async def lock_event(tx: Tx, id: int) -> EventRow | None:
    """Lock the event: until the transaction ends, no other can change it, settle it or free its seats."""
    return await tx.row(
        EventRow,
        f"{EVENT} where events.id = %(id)s for no key update of events",
        {"id": id},
    )


async def lock_out_registrations(tx: Tx, id: int) -> None:
    """Lock the event more strongly: registrations that are being stored are committed, and others wait until the end.

    Storing a registration locks its event by the foreign key, which `lock_event` allows.
    """
    await tx.run("select from events where id = %(id)s for update", {"id": id})


async def has_registrations(reader: Reader, id: int) -> bool:
    """Whether there are registrations for an event, of any status."""
    return await reader.value("select exists (select from registrations where event_id = %(id)s)", {"id": id})


async def has_arrivals(reader: Reader, id: int) -> bool:
    """Whether an event has, or once had, a registration."""
    return await reader.value(
        """
        select exists (select from registrations where event_id = %(id)s)
            or exists (select from logs where event_id = %(id)s and arrivals > 0)
        """,
        {"id": id},
    )


async def list_events(reader: Reader, organizer_id: int | None, command: OffsetPage) -> Page[EventRow]:
    """The events of one organizer, or of all with None."""
    return await page_of_long_items(
        reader,
        EventRow,
        EVENT,
        {"organizer_id": organizer_id},
        command,
        table="events",
        where="true" if organizer_id is None else "organizer_id = %(organizer_id)s",
        size="1000 + octet_length(body) + 100 * cardinality(image_keys)",
    )


async def insert_event(tx: Tx, event: dict[str, Any]) -> int | None:
    """Insert an event. Returns its id; None when no organizer has the organizer id."""
    return await tx.value(
        """
        insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
                            price, min_price, max_price, current_price, recurrence_frequency, recurrence_interval,
                            recurs_from, address, location_name, latitude, longitude, image_keys, timezone,
                            cancellation_hours, end_datetime, published, public_log, draw_at, draw_round, draw_round_at,
                            takes_entries)
        select id, %(title)s, %(body)s, %(datetime)s, %(capacity)s, %(waitinglist_capacity)s, %(currency)s,
               %(pricing_mode)s, %(price)s, %(min_price)s, %(max_price)s, %(current_price)s, %(recurrence_frequency)s,
               %(recurrence_interval)s, %(datetime)s, %(address)s, %(location_name)s, %(latitude)s, %(longitude)s,
               %(image_keys)s, %(timezone)s, %(cancellation_hours)s, %(ends_at)s,
               %(published)s, %(public_log)s, %(draw_at)s, %(draw_round)s, %(draw_round_at)s, %(takes_entries)s
          from users where id = %(organizer_id)s and slug is not null and erased_at is null
        returning id
        """,
        event,
    )


async def update_event(tx: Tx, event: dict[str, Any]) -> bool:
    """Update an event. Returns False when no organizer has the organizer id."""
    updated = await tx.value(
        """
        update events
           set title = %(title)s, body = %(body)s, datetime = %(datetime)s, end_datetime = %(ends_at)s,
               capacity = %(capacity)s, waitinglist_capacity = %(waitinglist_capacity)s, price = %(price)s,
               min_price = %(min_price)s, max_price = %(max_price)s,
               -- Here the price is only kept within the new bounds; `reprice` computes it.
               current_price = case pricing_mode
                   when 'fixed' then %(price)s
                   when 'dynamic' then least(greatest(current_price, %(min_price)s), %(max_price)s) end,
               recurrence_frequency = %(recurrence_frequency)s, recurrence_interval = %(recurrence_interval)s,
               -- With another date, frequency, interval or time zone, the dates of the series are computed from this
               -- event.
               recurs_from = case
                   when (datetime, recurrence_frequency, recurrence_interval, timezone) is not distinct from
                        (%(datetime)s, %(recurrence_frequency)s, %(recurrence_interval)s, %(timezone)s)
                   then recurs_from else %(datetime)s end,
               address = %(address)s, location_name = %(location_name)s, latitude = %(latitude)s,
               longitude = %(longitude)s, timezone = %(timezone)s, cancellation_hours = %(cancellation_hours)s,
               image_keys = %(image_keys)s, organizer_id = organizers.id, published = %(published)s,
               public_log = %(public_log)s, draw_at = %(draw_at)s, draw_round = %(draw_round)s,
               draw_round_at = %(draw_round_at)s, takes_entries = %(takes_entries)s,
               -- The sale begins when a draft is published.
               inserted_at = case when not events.published and %(published)s then now() else events.inserted_at end
          from users as organizers
         where events.id = %(id)s and organizers.id = %(organizer_id)s and organizers.slug is not null
           and organizers.erased_at is null
        returning true
        """,
        event,
    )
    await _notify_changed(tx, event["id"])
    return bool(updated)


async def cancel_event(tx: Tx, id: int) -> None:
    await tx.run("update events set cancelled_at = coalesce(cancelled_at, now()) where id = %(id)s", {"id": id})
    await _notify_changed(tx, id)


async def update_image_keys(tx: Tx, id: int, keys: Sequence[str]) -> None:
    await tx.run("update events set image_keys = %(keys)s where id = %(id)s", {"id": id, "keys": list(keys)})
    await _notify_changed(tx, id)


async def _notify_changed(tx: Tx, id: int) -> None:
    """Notify this process before it answers; a trigger notifies the others."""
    await tx.notify(CHANGE_CHANNEL, str(id))
