"""The stock of a pool as a small picture: a line in steps, from the oldest moment to now, above zero."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.inventory.stock.seen import Moment

WIDTH = 600
HEIGHT = 120
EDGE = 4


class Line(NamedTuple):
    """A line in a box of WIDTH by HEIGHT, as the path of an SVG; and what it shows, in figures.

    changes    the moments with another stock than the one before, the newest first
    """

    path: str
    first: Moment
    last: Moment
    lowest: int
    highest: int
    changes: Sequence[Moment]


def draw(moments: Sequence[Moment]) -> Line:
    """The picture of the stock at some moments, at least two, which are equally far from one another."""
    amounts = [each.on_hand for each in moments]
    # The picture always has zero in it, so that half the height is half the stock.
    bottom, top = min(0, *amounts), max(1, *amounts)

    def down(amount: int) -> int:
        return EDGE + (top - amount) * (HEIGHT - 2 * EDGE) // (top - bottom)

    def across(place: int) -> int:
        return place * WIDTH // (len(moments) - 1)

    changed = [
        (place, each)
        for place, each in enumerate(moments)
        if not place or (each.on_hand, each.held) != (moments[place - 1].on_hand, moments[place - 1].held)
    ]
    steps = [f"H{across(place)}V{down(each.on_hand)}" for place, each in changed[1:]]
    path = f"M0 {down(amounts[0])}{''.join(steps)}H{WIDTH}"
    return Line(path, moments[0], moments[-1], min(amounts), max(amounts), [each for _, each in reversed(changed)])
