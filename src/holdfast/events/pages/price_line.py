"""The history of a price as a small picture: a line in steps, from the first change to now."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.events.pages.model import PricePoint

WIDTH = 600
HEIGHT = 120
STEPS = 100
"""The most steps of the line: more would be finer than anybody sees."""


class History(NamedTuple):
    """A line in a box of WIDTH by HEIGHT, as the path of an SVG; and what it shows, in figures."""

    line: str
    since: dt.datetime
    first: int
    lowest: int
    highest: int
    last: int


def draw(prices: Sequence[PricePoint], until: dt.datetime) -> History | None:
    """The picture of a price, whose changes are given oldest first. None if it has never changed."""
    if len({each.price for each in prices}) < 2:
        return None
    start = prices[0].timestamp
    span = max((until - start).total_seconds(), 1.0)
    # Of all changes in a step the last is drawn.
    heights = {min(STEPS, int((each.timestamp - start).total_seconds() / span * STEPS)): each.price for each in prices}
    amounts = [each.price for each in prices]
    lowest, highest = min(amounts), max(amounts)

    def across(step: int) -> int:
        return step * WIDTH // STEPS

    def down(price: int) -> int:
        return 4 + (highest - price) * (HEIGHT - 8) // (highest - lowest)

    steps = [*heights.items()]
    line = [f"M0 {down(prices[0].price)}V{down(steps[0][1])}"]
    line += [f"H{across(step)}V{down(price)}" for step, price in steps[1:]]
    return History("".join([*line, f"H{WIDTH}"]), start, amounts[0], lowest, highest, amounts[-1])
