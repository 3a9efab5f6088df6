"""Statements of the pages."""

import datetime as dt
from collections.abc import Sequence

from msgspec import Struct

from holdfast.events.pages.model import PricePoint, Version
from holdfast.events.resources import Reader

MOST_PRICES = 1_000
"""The most prices that a page reads of a price history; the latest ones."""


async def find_versions(reader: Reader, event_ids: Sequence[int]) -> list[Version]:
    """What links to these events show, by one row for each event that exists.

    It is the event itself until that has passed. Then it is the next occurrence that has not passed or was cancelled,
    or else the last occurrence. `xmin` is the transaction that wrote a row last, so no change keeps the version.
    """
    return await reader.rows(
        Version,
        """
        with recursive line as (
            select id as asked, organizer_id, id, 0 as place, cancelled_at is null and datetime <= now() as passed
              from events where id = any(%(event_ids)s)
            union all
            select asked, line.organizer_id, next.id, place + 1, next.cancelled_at is null and next.datetime <= now()
              from line join events as next on next.follows_id = line.id
             where line.passed)
        select distinct on (asked) asked, shown.id as event_id, askeds.slug,
               concat_ws('.', shown.xmin, organizers.xmin, shown.datetime <= now()) as version
          from line
          join events as shown on shown.id = line.id
          join users as organizers on organizers.id = shown.organizer_id
          join users as askeds on askeds.id = line.organizer_id
         order by asked, place desc
        """,
        {"event_ids": list(event_ids)},
    )


class Besides(Struct):
    """What the page of an event shows of other rows."""

    organizer_name: str
    recurs_from: dt.datetime | None
    now: dt.datetime


async def find_besides(reader: Reader, event_id: int) -> Besides | None:
    return await reader.row(
        Besides,
        """
        select organizers.name as organizer_name, recurs_from, now() as now
          from events join users as organizers on organizers.id = events.organizer_id
         where events.id = %(event_id)s
        """,
        {"event_id": event_id},
    )


async def list_prices(reader: Reader, event_id: int) -> list[PricePoint]:
    """The last prices of an event, oldest first."""
    return await reader.rows(
        PricePoint,
        """
        select "timestamp", price
          from (select id, "timestamp", new_price as price from price_changes
                 where event_id = %(event_id)s order by id desc limit %(limit)s) as last
         order by id
        """,
        {"event_id": event_id, "limit": MOST_PRICES},
    )
