"""The history of a price as a small picture: a line in steps, from the first change to now."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.events.pages.model import PricePoint

WIDTH = 600
HEIGHT = 120
MAX_STEPS = 100
"""The most steps of the line. More steps would not be visible."""


class PriceLine(NamedTuple):
    """A line in a box of WIDTH by HEIGHT as the path of an SVG, with the first, lowest, highest and last price."""

    line: str
    since: dt.datetime
    first: int
    lowest: int
    highest: int
    last: int


def draw(prices: Sequence[PricePoint], until: dt.datetime) -> PriceLine | None:
    """The line of a price. `prices` are oldest first. None if the price has never changed."""
    if len({point.price for point in prices}) < 2:
        return None
    start = prices[0].timestamp
    span = max((until - start).total_seconds(), 1.0)
    # Only the last change in a step is drawn.
    heights = {
        min(MAX_STEPS, int((point.timestamp - start).total_seconds() / span * MAX_STEPS)): point.price
        for point in prices
    }
    amounts = [point.price for point in prices]
    lowest, highest = min(amounts), max(amounts)

    def across(step: int) -> int:
        return step * WIDTH // MAX_STEPS

    def down(price: int) -> int:
        return 4 + (highest - price) * (HEIGHT - 8) // (highest - lowest)

    steps = [*heights.items()]
    line = [f"M0 {down(prices[0].price)}V{down(steps[0][1])}"]
    line += [f"H{across(step)}V{down(price)}" for step, price in steps[1:]]
    return PriceLine("".join([*line, f"H{WIDTH}"]), start, amounts[0], lowest, highest, amounts[-1])
