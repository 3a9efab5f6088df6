"""What a seat of a dynamic event costs: the ratio policy.

Two shares are compared: of the seats, how many are left, and of the time from the event's creation to its datetime, how
much is left. While they are equal the sale is on schedule, and a seat costs what the organizer asked, `price`. When
seats go faster than time, the price moves towards `max_price` by the part of the way that seats are ahead; when time
goes faster than seats, towards `min_price` likewise. The last seat sold makes it `max_price`, nothing sold until the
end `min_price`.

It moves in steps of a hundredth of the range between the bounds, counted from `price`, so that it does not flicker. It
is a function of what is, not of how it came about: the same seats at the same moment always cost the same.
"""

import datetime as dt
from typing import LiteralString

MICROSECOND = dt.timedelta(microseconds=1)
STEPS = 100
"""Steps between the bounds, where the range is wide enough for so many."""


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
    # Both as a share of capacity x (datetime - created), so that they can be compared without dividing.
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
"""`current_price` in SQL, where many events are priced at once: of a row of `events`, and a column `now`.

The function above is the definition; `tests/events/pricing/test_policy.py` holds the two equal.
"""
