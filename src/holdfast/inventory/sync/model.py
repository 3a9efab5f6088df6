"""Levels out: what is known of the levels at the platform, and the calls that set them."""

import datetime as dt
from typing import Literal, TypeAlias

from msgspec import Struct

Rule: TypeAlias = Literal["all", "one", "shares"]
"""How the quantity of a variant is spread: all of it to each location, all to one, or fixed shares."""

GRACE_SECONDS = 15
"""How long what is not explained may be a sale of which the platform has not told yet."""


class Observed(Struct, frozen=True):
    """What the platform says of a level.

    gid        of the level
    seen_at    when it changed last, by the platform's clock
    """

    item_gid: str
    location_gid: str
    gid: str
    available: int
    seen_at: dt.datetime | None = None


class Moved(Struct, frozen=True):
    """How the platform has changed the level of a variant by itself, because of an order: a sale of two is -2.

    at    when it did, by its clock and in whole seconds
    """

    variant_gid: str
    change: int
    at: dt.datetime


class Setting(Struct, frozen=True):
    """A level that a call sets, from what it is taken to be."""

    item_gid: str
    location_gid: str
    before: int
    after: int


class Push(Struct, frozen=True):
    """A call that sets levels. It is made with its key until its outcome is known.

    age    seconds since it was first to be made
    """

    id: int
    key: str
    age: float
    levels: list[Setting]


class Unsettable(Struct, frozen=True):
    """A level that the platform refused to set.

    why    what the platform said; None: the level was not as expected, and is to be read again
    """

    item_gid: str
    location_gid: str
    why: str | None


class Suspect(Struct, frozen=True):
    """A difference at the levels of a variant that neither our calls nor orders explain.

    amount    how many more there are than explained
    pools     the pools that the variant draws on, with the units of one sale and their policies
    """

    item_gid: str
    variant_gid: str
    amount: int
    pools: list[tuple[int, int, str]]
