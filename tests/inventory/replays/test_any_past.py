"""A replay of any past orders gives the result of a plain model, and never sells more than the pool has."""

from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.inventory.replays.model import PastOrder, ReplayedPool
from holdfast.inventory.replays.simulation import replay
from tests.inventory.replays.stories import SINCE, UNTIL, gid, orders, pool

SIZES = (1, 4, 6, 12)

levels = st.dictionaries(st.sampled_from(SIZES), st.integers(-4, 40), min_size=2)
pasts = st.lists(
    st.tuples(
        st.integers(0, 29).map(lambda day: day + 0.25),
        st.dictionaries(st.sampled_from(SIZES), st.integers(1, 9), min_size=1, max_size=3),
    ),
    max_size=25,
)


class ModelResult(NamedTuple):
    """What the model says: by order how much was missing and whether the pool had it; more sales by units; the end."""

    oversold: list[tuple[str, int, bool]]
    more: dict[int, int]
    ends_with: int


def model(levels: dict[int, int], past: list[tuple[float, dict[int, int]]], numbers: list[str]) -> ModelResult:
    """The same in plain numbers. Days are counted in quarters."""
    past = [(day, {units: packs for units, packs in sold.items() if units in levels}) for day, sold in past]
    numbers_of_shop = {units: level + sum(sold.get(units, 0) for _, sold in past) for units, level in levels.items()}
    worths = [max(level, 0) * units for units, level in numbers_of_shop.items()]
    once = all(max(level, 0) == max(worths) // units for units, level in numbers_of_shop.items())
    shelf = pooled = max(worths) if once else sum(worths)
    sold_by, sold_after, gone = dict.fromkeys(levels, 0), dict.fromkeys(levels, 0), {}
    gone = {units: 0.0 for units, level in numbers_of_shop.items() if level <= 0}
    oversold: list[tuple[str, int, bool]] = []
    for number, (day, sold) in zip(numbers, past, strict=True):
        requested = sum(units * packs for units, packs in sold.items())
        if not requested:
            continue
        missing = 0
        for units, packs in sold.items():
            (sold_after if units in gone else sold_by)[units] += packs
            missing += units * max(0, min(packs, packs - numbers_of_shop[units]))
            numbers_of_shop[units] -= packs
        for units in sold:
            if numbers_of_shop[units] <= 0:
                gone.setdefault(units, day)
        missing = max(missing, min(requested, requested - shelf))
        shelf -= requested
        is_served = requested <= pooled
        pooled -= requested if is_served else 0
        if missing > 0:
            oversold.append((number, missing, is_served))
    more = dict.fromkeys(gone, 0)
    for quarter in range(4, 121, 4):
        for units, day in gone.items():
            paced = max(int(4 * day), 12)
            demand = max(0, quarter - int(4 * day)) * sold_by[units] // paced - sold_after[units]
            packs = max(0, min(max(0, demand) - more[units], pooled // units))
            more[units] += packs
            pooled -= packs * units
    return ModelResult(oversold, more, pooled)


def replay_past(suggested: ReplayedPool, past: list[PastOrder]) -> ModelResult:
    result = replay(suggested, past, SINCE, UNTIL)
    sold_out = {pack.units_per_sale: pack.more for pack in result.packs if pack.sold_out_at}
    assert all(pack.more == 0 for pack in result.packs if pack.sold_out_at is None)
    oversold = [(sell.order, sell.missing, sell.is_served) for sell in result.oversells]
    return ModelResult(oversold, sold_out, result.ends_with)


@given(levels, pasts)
@example({12: 0, 1: 0, 6: -1}, [(0.25, {12: 1, 6: 2})])
def test_a_replay_of_any_past_gives_the_result_of_the_plain_model(
    levels: dict[int, int], past: list[tuple[float, dict[int, int]]]
) -> None:
    past = sorted(past, key=lambda order: order[0])
    placed = orders(*past)

    result = replay_past(pool(levels), placed)

    assert result == model(levels, past, [order.name for order in placed])


@given(levels, pasts)
def test_a_replayed_pool_never_sells_more_than_it_has(
    levels: dict[int, int], past: list[tuple[float, dict[int, int]]]
) -> None:
    result = replay(pool(levels), orders(*past), SINCE, UNTIL)

    assert result.ends_with >= 0
    refused_units = sum(sell.requested for sell in result.oversells if not sell.is_served)
    sold = sum(pack.units_per_sale * (pack.sold + pack.more) for pack in result.packs)
    assert result.began_with - sold + refused_units == result.ends_with
    assert {pack.gid for pack in result.packs} == {gid(units) for units in levels}
