"""The levels at the platform, and the calls that change them."""

import datetime as dt
from typing import Literal, TypeAlias

from msgspec import Struct

Rule: TypeAlias = Literal["all", "one", "shares"]
"""How the quantity of a variant is spread: all of it to each location, all to one, or fixed shares."""

GRACE_SECONDS = 15
"""How long an unexplained difference may be a sale of which the platform has not told yet."""


ORDER_LAG_SECONDS = 60
"""How much later than its level an order may have changed, by the platform's clock, where a read of all levels finds
one that was not known: no document says that the two moments are the same. It holds for no other level: an edit just
after a level began would be taken for an order.
"""


class ObservedLevel(Struct, frozen=True):
    """A level as the platform shows it.

    gid        of the level
    seen_at    when it changed last, by the platform's clock
    """

    item_gid: str
    location_gid: str
    gid: str
    available: int
    seen_at: dt.datetime | None = None


class OrderLevelChange(Struct, frozen=True):
    """A change that the platform has made to the level of a variant because of an order: a sale of two is -2.

    not_before    a moment that is not after the change, by the platform's clock and in whole seconds
    """

    variant_gid: str
    change: int
    not_before: dt.datetime


class LevelChange(Struct, frozen=True):
    """A level that a call changes, from its last known quantity. `gid`: of the level."""

    item_gid: str
    location_gid: str
    gid: str
    before: int
    after: int


class LevelPush(Struct, frozen=True):
    """A call that changes levels. It is repeated with its key until its result is known.

    adjusts    it changes levels by a difference; otherwise it sets them, and compares them first
    age        seconds since it was first to be made
    """

    id: int
    key: str
    adjusts: bool
    age: float
    levels: list[LevelChange]


class LevelRefusal(Struct, frozen=True):
    """A level that the platform refused to change.

    why    the platform's error; None: the level was not as expected, and is to be read again
    """

    item_gid: str
    location_gid: str
    why: str | None


class UnexplainedDifference(Struct, frozen=True):
    """A difference at the levels of a variant that neither our calls nor orders explain.

    amount    how many more units there are than explained
    pools     the pools that the variant draws on, with the units of one sale and their policies
    """

    item_gid: str
    variant_gid: str
    amount: int
    pools: list[tuple[int, int, str]]
