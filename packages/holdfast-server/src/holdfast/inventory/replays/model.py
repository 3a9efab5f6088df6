"""Replays: what the past orders of a shop would have done with pools that are only suggested."""

import datetime as dt
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from holdfast.inventory.catalog.pool_suggestions import SuggestedMember
from holdfast.inventory.cursor import CursorPage
from holdfast.kit.contract.command import Command
from holdfast.kit.postgres.transactions import Task

ReplayStatus = Literal["none", "running", "failed", "done"]

REPLAY_DAYS = 30
"""How many days of orders are replayed. The platform shows an app without a further scope the orders of 60 days."""

MAX_ORDERS = 2_000
"""The most orders of a replay, the newest. A shop with more has fewer days."""


class BeginReplay(CursorPage):
    """Replay past orders through the pools that a page of suggestions suggests."""


class GetReplay(Command):
    """Get the last replay of the shop."""


class ReplayTask(Struct):
    """The arguments of the task of a replay."""

    shop_id: int
    replay_id: int


REPLAY = Task("replay_orders", ReplayTask)
"""Do the next step of the replay of a shop."""


class ReplayedPool(Struct, frozen=True):
    """A suggested pool, with its variants as they were at the platform when the replay was begun."""

    name: str
    members: Sequence[SuggestedMember]


class PastLine(Struct, frozen=True):
    """How many units of a variant an order has taken: those ordered that did not come back into stock."""

    id: int
    variant_gid: str
    quantity: int


class PastOrder(Struct, frozen=True):
    """A past order, with those of its lines that are of suggested pools."""

    id: int
    name: str
    placed_at: dt.datetime
    lines: Sequence[PastLine]


class Oversell(Struct, frozen=True):
    """An order that took more than there was.

    requested    the units of the pool that it took
    missing      how many of them were not there
    is_served    whether the pool would have had them, in packs of another size; else the shop would have sold no more
                 than there was
    """

    order_id: int
    order: str
    placed_at: dt.datetime
    requested: int
    missing: int
    is_served: bool


class PackResult(Struct, frozen=True):
    """What became of one variant, and what would have.

    began_with     what the shop showed of it at the beginning; None: the platform does not count it
    sold           how many were sold
    sold_out_at    when the shop had none left; None: it always had some
    more           how many more would have been sold
    orders         the names of the orders from which the pace of these comes
    """

    gid: str
    title: str
    units_per_sale: int
    began_with: int | None
    sold: int
    sold_out_at: dt.datetime | None
    more: int
    orders: Sequence[str] = ()


class PoolResult(Struct, frozen=True):
    """What the orders did to the goods of a suggested pool, and what they would have done to the pool.

    began_with    single units at the beginning
    orders        how many orders took something
    ends_with     what the pool would have at the end
    suggested     with how many units the pool is suggested
    """

    name: str
    began_with: int
    orders: int
    ends_with: int
    suggested: int
    oversells: Sequence[Oversell]
    packs: Sequence[PackResult]

    @property
    def more(self) -> int:
        """How many packs more would have been sold."""
        return sum(pack.more for pack in self.packs)

    @property
    def more_units(self) -> int:
        """How many units these packs have."""
        return sum(pack.more * pack.units_per_sale for pack in self.packs)

    @property
    def goods_left(self) -> int:
        """How many units the orders have left; below zero: how many more were sold than there were."""
        return self.began_with - sum(pack.sold * pack.units_per_sale for pack in self.packs)

    @property
    def missing_units(self) -> int:
        """How many units were sold that were not there."""
        return max(0, -self.goods_left)

    @property
    def is_doubtful(self) -> bool:
        """Whether the suggestion counts more than the orders have left: the shop may show the same goods twice."""
        return self.suggested > max(self.goods_left, 0)

    @property
    def is_better(self) -> bool:
        """Whether anything would have been different."""
        return bool(self.oversells or self.more)


class ReplayResult(Struct, frozen=True):
    """The result of a replay.

    since         the moment from which orders were replayed
    until         the moment until which
    orders        how many orders the shop had in this time
    is_cut        whether it had more in `REPLAY_DAYS` days than are read
    gone_lines    how many lines were of variants that are no longer there
    """

    since: dt.datetime
    until: dt.datetime
    orders: int
    is_cut: bool
    gone_lines: int
    pools: Sequence[PoolResult]

    @property
    def oversells(self) -> int:
        """How many orders took more than there was of a pool."""
        return len({oversell.order_id for pool in self.pools for oversell in pool.oversells})

    @property
    def more(self) -> int:
        return sum(pool.more for pool in self.pools)


class Replay(Struct):
    """The last replay of a shop, or that there was none.

    read      how many orders are read
    pools     how many suggested pools there are
    result    None: it is not done
    """

    status: ReplayStatus
    read: int = 0
    pools: int = 0
    requested_at: dt.datetime | None = None
    error: str | None = None
    result: ReplayResult | None = None
