"""Charts have round numbers at their axes, and stay inside their box."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.pages.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    MAX_LABEL_WIDTH,
    MAX_POINTS,
    WIDTH,
    draw_bars,
    draw_steps,
)

START = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)


def hourly(*numbers: int) -> list[tuple[dt.datetime, int]]:
    return [(START + dt.timedelta(hours=hour), number) for hour, number in enumerate(numbers)]


@pytest.mark.parametrize(
    ("most", "ticks"),
    [(1, [0, 1]), (4, [0, 1, 2, 3, 4]), (7, [0, 2, 4, 6, 8]), (60, [0, 20, 40, 60]), (9_999, [0, 5_000, 10_000])],
)
def test_ticks_are_round_numbers(most: int, ticks: list[int]) -> None:
    drawn = draw_bars(hourly(0, most))

    assert drawn
    assert [tick.value for tick in drawn.value_ticks] == ticks


def test_a_line_of_a_chart_stays_level_until_the_next_number() -> None:
    drawn = draw_steps(hourly(4, 0), START + dt.timedelta(hours=2))

    assert drawn
    middle = (LEFT + WIDTH) / 2
    assert drawn.line == f"M{LEFT} 8.0H{float(LEFT)}V8.0H{middle}V{float(HEIGHT - BOTTOM)}H{WIDTH}"


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        (dt.timedelta(seconds=40), ["12:00"]),
        (dt.timedelta(seconds=90), ["12:00", "12:01"]),
        (dt.timedelta(hours=3), ["12:00", "13:00", "14:00", "15:00"]),
        (dt.timedelta(days=2, hours=1), ["1 Nov", "2 Nov", "3 Nov"]),
    ],
)
def test_no_two_moments_of_the_axis_have_the_same_label(span: dt.timedelta, labels: list[str]) -> None:
    drawn = draw_steps([(START, 4), (START + span / 2, 3)], START + span)

    assert drawn
    written = "%H:%M" if drawn.is_brief else "%-d %b"
    assert [tick.moment.strftime(written) for tick in drawn.time_ticks] == labels


def test_a_chart_without_changes_has_no_line() -> None:
    assert draw_steps(hourly(4), START) is None
    assert draw_bars([]) is None


numbers = st.lists(st.integers(min_value=0, max_value=10**12), min_size=2, max_size=300)


@given(numbers)
def test_steps_stay_inside_the_chart(values: list[int]) -> None:
    drawn = draw_steps(hourly(*values), START)

    assert drawn
    assert len(drawn.points) <= MAX_POINTS + 1
    assert all(LEFT <= point.x <= WIDTH for point in drawn.points)
    assert drawn.points[-1].value == values[-1]
    assert all(0 <= tick.at <= HEIGHT - BOTTOM for tick in drawn.value_ticks)
    assert 2 <= len(drawn.value_ticks) <= 6
    assert drawn.value_ticks[-1].value >= max(values)


@given(numbers)
def test_bars_stay_inside_the_box(values: list[int]) -> None:
    drawn = draw_bars(hourly(*values))

    assert drawn
    assert len(drawn.bars) == min(len(values), MAX_POINTS)
    for bar in drawn.bars:
        assert LEFT <= bar.x < bar.x + bar.width <= WIDTH
        assert 0 <= bar.y <= bar.y + bar.height <= HEIGHT - BOTTOM + 0.1


@given(st.lists(st.integers(min_value=0, max_value=100), min_size=1, max_size=70))
def test_the_label_of_a_day_stands_under_its_bar(values: list[int]) -> None:
    drawn = draw_bars([(START + dt.timedelta(days=day), number) for day, number in enumerate(values)])

    assert drawn
    by_moment = {point.moment: bar for point, bar in zip(drawn.points, drawn.bars, strict=True)}
    assert len({tick.moment for tick in drawn.time_ticks}) == len(drawn.time_ticks) == min(4, len(values))
    for tick in drawn.time_ticks:
        bar = by_moment[tick.moment]
        middle = bar.x + bar.width / 2
        left = tick.at - MAX_LABEL_WIDTH / (2 if tick.anchor == "middle" else 1)
        assert left <= middle <= left + MAX_LABEL_WIDTH <= WIDTH
        assert tick.anchor == "end" or abs(tick.at - middle) <= 0.2
