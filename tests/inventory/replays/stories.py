"""Suggested pools and past orders, as short to write as possible."""

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence

from holdfast.inventory.catalog.pool_suggestions import ProductVariant, SuggestedMember
from holdfast.inventory.replays.model import PastLine, PastOrder, ReplayedPool

SINCE = dt.datetime(2030, 5, 1, tzinfo=dt.UTC)
UNTIL = SINCE + dt.timedelta(days=30)


def gid(units: int) -> str:
    """The id of the variant that has this many units."""
    return f"gid://shopify/ProductVariant/{units}"


def pool(levels: Mapping[int, int], uncounted: Sequence[int] = ()) -> ReplayedPool:
    """A suggested pool. `levels`: by the units of each variant how many of it there are at the end."""
    members = [
        SuggestedMember(
            ProductVariant(
                gid(units),
                "gid://shopify/Product/1",
                "Jars",
                f"{units}-pack",
                None,
                units not in uncounted,
                packs,
                False,
            ),
            units,
        )
        for units, packs in levels.items()
    ]
    return ReplayedPool("Jars", members)


def orders(*placed: tuple[float, Mapping[int, int]]) -> list[PastOrder]:
    """Orders: on which day, and by the units of each variant how many were sold."""
    lines = itertools.count(1)
    return [
        PastOrder(
            number,
            f"#{number}",
            SINCE + dt.timedelta(days=day),
            [PastLine(next(lines), gid(units), packs) for units, packs in sold.items()],
        )
        for number, (day, sold) in enumerate(placed, start=1001)
    ]
