"""Draws the stock of a pool as a small chart: a line in steps, from the oldest moment to now, above zero."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.inventory.stock.pool_page import StockMoment

WIDTH = 600
HEIGHT = 120
EDGE = 4


class StockChart(NamedTuple):
    """A line in a box of WIDTH by HEIGHT, as the path of an SVG, and its figures.

    changes    the moments with another stock than the one before, the newest first
    """

    path: str
    first: StockMoment
    last: StockMoment
    lowest: int
    highest: int
    changes: Sequence[StockMoment]


def draw(moments: Sequence[StockMoment]) -> StockChart:
    """Return the chart of the stock at some moments, at least two, from the first to the last."""
    amounts = [moment.on_hand for moment in moments]
    # The chart always has zero in it, so that half the height is half the stock.
    bottom, top = min(0, *amounts), max(1, *amounts)

    def down(amount: int) -> int:
        return EDGE + (top - amount) * (HEIGHT - 2 * EDGE) // (top - bottom)

    begin, length = moments[0].at, moments[-1].at - moments[0].at

    def across(at: datetime) -> int:
        return int(WIDTH * ((at - begin) / length)) if length else WIDTH

    changed = [
        moment
        for place, moment in enumerate(moments)
        if not place or (moment.on_hand, moment.held) != (moments[place - 1].on_hand, moments[place - 1].held)
    ]
    steps = [f"H{across(moment.at)}V{down(moment.on_hand)}" for moment in changed[1:]]
    path = f"M0 {down(amounts[0])}{''.join(steps)}H{WIDTH}"
    return StockChart(path, moments[0], moments[-1], min(amounts), max(amounts), changed[::-1])
