"""What a seat of a dynamic event costs: the ratio policy.

Two shares are compared: the share of the seats that is left, and the share of the time that is left, from the event's
creation to its datetime. While they are equal, the sale is on schedule, and a seat costs `price`. When the share of the
seats is smaller, the price rises by the fraction (time - seats) / time of the distance to `max_price`. When the share
of the time is smaller, it falls by the fraction (seats - time) / seats of the distance to `min_price`. After the last
seat is sold it is `max_price`; if no seat is sold, it is `min_price` at the end.

It moves in steps of a hundredth of the range between the bounds, counted from `price`, so that it does not change all
the time. It depends only on the present seats and the present time, not on earlier prices.
"""

import datetime as dt
from typing import LiteralString

MICROSECOND = dt.timedelta(microseconds=1)
STEPS = 100
"""The number of steps between the bounds, if the range is wide enough."""


def current_price(
    *,
    price: int,
    min_price: int,
    max_price: int,
    capacity: int,
    registered: int,
    created: dt.datetime,
    now: dt.datetime,
    datetime: dt.datetime,
) -> int:
    """What a seat costs, in minor units.

    Only seats taken count as `registered`, not those who wait. `created` is when the event was created.
    """
    if registered >= capacity:
        return max_price
    # Both are multiplied by capacity x (datetime - created), so that they can be compared without dividing.
    seats_left = (capacity - registered) * max(0, (datetime - created) // MICROSECOND)
    time_left = capacity * max(0, (datetime - max(now, created)) // MICROSECOND)
    if seats_left == time_left:
        return price
    bound = max_price if time_left > seats_left else min_price
    whole = abs(bound - price)
    way = whole * abs(time_left - seats_left) // max(time_left, seats_left)
    if way == whole:
        return bound
    step = max(1, (max_price - min_price) // STEPS)
    moved = min((way + step // 2) // step * step, whole)
    return price + moved if bound > price else price - moved


PRICE: LiteralString = """(
    select case when events.registered_count >= events.capacity then events.max_price
                when way = whole then bound
                else events.price + sign(bound - events.price) * least(div(way + step / 2, step) * step, whole)
           end::bigint
      from (select (events.capacity - events.registered_count)
                   * greatest(0, extract(epoch from events.datetime - events.inserted_at)) as seats_left,
                   events.capacity
                   * greatest(0, extract(epoch from events.datetime - greatest(now, events.inserted_at))) as time_left,
                   greatest(1, (events.max_price - events.min_price) / 100) as step) as shares
     cross join lateral (
        select case when time_left > seats_left then events.max_price
                    when time_left < seats_left then events.min_price
                    else events.price end as bound) as direction
     cross join lateral (
        select abs(bound - events.price) as whole,
               case when bound = events.price then 0
                    else div(abs(bound - events.price) * abs(time_left - seats_left), greatest(time_left, seats_left))
               end as way) as journey)
"""
"""`current_price` in SQL, to price many events at once. It reads a row of `events` and a column `now`.

The function above is the definition; `tests/events/pricing/test_policy.py` checks that both give the same prices.
"""
