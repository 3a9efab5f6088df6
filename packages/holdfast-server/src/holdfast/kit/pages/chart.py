"""Charts of numbers over time, laid out for the macro `chart` of components.html."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

WIDTH = 640
HEIGHT = 200
LEFT = 56
"""The width of the labels at the left, in units of the drawing."""
BOTTOM = 20
"""The height of the labels below."""
TOP = 8
MAX_POINTS = 200
"""The most points of a chart. More would not be visible."""
MAX_BAR_WIDTH = 48
VALUE_TICKS = 4
TIME_TICKS = 4
MAX_LABEL_WIDTH = 56
"""The width of the longest label of a day, such as `28. Nov.`, in units of the drawing."""
MINUTE, DAY = dt.timedelta(minutes=1), dt.timedelta(days=1)
"""The spans that labels of moments name."""


class Point(Struct, frozen=True):
    """A number, the moment from which it holds, and the kind of what changed it. `x`: its place from the left."""

    moment: dt.datetime
    value: int
    x: float
    kind: str = ""


class Mark(Struct, frozen=True):
    """Where something of a kind changed the number."""

    kind: str
    x: float
    y: float


class ValueTick(Struct, frozen=True):
    """A round number, and its place from above."""

    value: int
    at: float


class TimeTick(Struct, frozen=True):
    """A moment, its place from the left, and the side at which its label is anchored."""

    moment: dt.datetime
    at: float
    anchor: Literal["start", "middle", "end"]


class Bar(Struct, frozen=True):
    x: float
    y: float
    width: float
    height: float


class Chart(Struct, frozen=True):
    """A chart in a box of `width` by `height`. It has bars, or else a line with the area below it.

    marks     what changed the number, for lines whose values have kinds
    is_brief  whether it shows less than two days, so that the hours tell its moments apart
    """

    points: list[Point]
    value_ticks: list[ValueTick]
    time_ticks: list[TimeTick]
    line: str
    area: str
    bars: list[Bar]
    marks: list[Mark] = []
    is_brief: bool = False
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


def draw_steps(
    values: Sequence[tuple[dt.datetime, int]], until: dt.datetime, kinds: Sequence[str] = ()
) -> Chart | None:
    """A line in steps: each number holds until the next one, the last until `until`.

    values    at least two moments with their numbers, oldest first; None is returned for fewer
    kinds     what changed each number, to be told apart by marks; empty: no mark
    """
    if len(values) < 2:
        return None
    start, end = values[0][0], max(until, values[-1][0])
    ticks, down = _value_axis([value for _, value in values])
    span = max((end - start).total_seconds(), 1.0)

    def across(moment: dt.datetime) -> float:
        return round(LEFT + (moment - start).total_seconds() / span * (WIDTH - LEFT), 1)

    by_step: dict[int, Point] = {}
    marks: dict[tuple[int, str], Mark] = {}
    for (moment, value), kind in zip(values, kinds or [""] * len(values), strict=True):
        # Only the last change in a step of the drawing is visible, and the last mark of each kind.
        step = int((moment - start).total_seconds() / span * MAX_POINTS)
        by_step[step] = Point(moment, value, across(moment), kind)
        if kind:
            marks[step, kind] = Mark(kind, across(moment), down(value))
    points = [*by_step.values()]
    line = (
        f"M{LEFT} {down(values[0][1])}" + "".join(f"H{point.x}V{down(point.value)}" for point in points) + f"H{WIDTH}"
    )
    area = f"{line}V{HEIGHT - BOTTOM}H{LEFT}Z"
    is_brief = end - start < dt.timedelta(days=2)
    axis = _time_axis(start, end, MINUTE if is_brief else DAY)
    return Chart(points, ticks, axis, line, area, [], [*marks.values()], is_brief)


def draw_bars(values: Sequence[tuple[dt.datetime, int]], *, is_brief: bool = False) -> Chart | None:
    """A bar for each period, such as a day: its beginning and its number, oldest first. None if there are none.

    is_brief    the periods are shorter than a day, so that their hours tell them apart
    """
    if not values:
        return None
    values = values[-MAX_POINTS:]
    ticks, down = _value_axis([0, *(value for _, value in values)])
    width = (WIDTH - LEFT) / len(values)
    wide = round(min(MAX_BAR_WIDTH, width * 0.8), 1)
    points: list[Point] = []
    bars: list[Bar] = []
    for number, (moment, value) in enumerate(values):
        left = LEFT + number * width
        points.append(Point(moment, value, round(left + width / 2, 1)))
        top = down(value)
        bars.append(Bar(round(left + (width - wide) / 2, 1), top, wide, round(HEIGHT - BOTTOM - top, 1)))
    return Chart(points, ticks, _bar_labels(points), "", "", bars, is_brief=is_brief)


def _bar_labels(points: Sequence[Point]) -> list[TimeTick]:
    """The labels of some bars, each under the middle of its bar; at the right edge it ends there."""
    count = min(TIME_TICKS, len(points))
    labelled_points = [points[round(number * (len(points) - 1) / max(1, count - 1))] for number in range(count)]
    return [
        TimeTick(point.moment, WIDTH, "end")
        if point.x + MAX_LABEL_WIDTH / 2 > WIDTH
        else TimeTick(point.moment, point.x, "middle")
        for point in labelled_points
    ]


def _value_axis(values: Sequence[int]) -> tuple[list[ValueTick], Callable[[int], float]]:
    """The ticks of an axis that begins at 0 or below, and the function from a number to its place from above."""
    step = _round_step(max(values) - min(0, *values))
    lowest = min(0, *values) // step * step
    highest = max(-(-max(values) // step) * step, lowest + step)

    def down(value: int) -> float:
        return round(TOP + (highest - value) / (highest - lowest) * (HEIGHT - BOTTOM - TOP), 1)

    return [ValueTick(value, down(value)) for value in range(lowest, highest + 1, step)], down


def _round_step(span: int) -> int:
    """The distance of ticks: 1, 2 or 5 times a power of ten."""
    least = max(1.0, span / VALUE_TICKS)
    power = 10 ** (len(str(int(least))) - 1)
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def _time_axis(start: dt.datetime, end: dt.datetime, label_span: dt.timedelta) -> list[TimeTick]:
    """Moments from `start` to `end`, at least a `label_span` apart: so no two have the same label."""
    if start == end:
        return [TimeTick(start, LEFT, "start")]
    span, last = WIDTH - LEFT, min(TIME_TICKS - 1, (end - start) // label_span)
    if last == 0:
        return [TimeTick(end, WIDTH, "end")]
    return [
        TimeTick(
            start + number * (end - start) / last,
            round(LEFT + number * span / last, 1),
            "start" if number == 0 else "end" if number == last else "middle",
        )
        for number in range(last + 1)
    ]
