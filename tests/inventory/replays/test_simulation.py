"""Simulating past orders with a suggested pool."""

from holdfast.inventory.replays.simulation import replay
from tests.inventory.replays.stories import SINCE, UNTIL, gid, orders, pool


def test_jars_that_the_shop_showed_twice_are_oversold_and_the_pool_sells_none_too_many() -> None:
    # 50 jars, shown as 50 singles and 8 6-packs. The shop never noticed that they are the same ones.
    past = orders((1, {6: 5}), (2, {1: 15}), (3, {1: 10}), (4, {1: 5}))

    result = replay(pool({1: 20, 6: 3}), past, SINCE, UNTIL)

    assert result.began_with == 50
    oversold = [(sell.order, sell.requested, sell.missing, sell.is_served) for sell in result.oversells]
    assert oversold == [("#1003", 10, 5, False), ("#1004", 5, 5, True)]
    assert result.ends_with == 0
    assert result.more == 0


def test_packs_that_were_sold_out_would_have_been_packed_from_others() -> None:
    # Six 6-packs in twelve days, and then none for eighteen: nine more at that pace. Seven are in 42 singles.
    past = orders(*((2 * day, {6: 1}) for day in range(1, 7)), (20, {1: 18}))

    result = replay(pool({1: 42, 6: 0}), past, SINCE, UNTIL)

    assert result.oversells == []
    [single, six] = result.packs
    assert (six.began_with, six.sold, six.sold_out_at, six.more) == (6, 6, past[5].placed_at, 7)
    assert (single.sold, single.sold_out_at, single.more) == (18, None, 0)
    assert (result.began_with, result.ends_with) == (96, 0)


def test_a_sale_below_zero_is_an_oversell_and_no_lost_sale() -> None:
    past = orders((10, {6: 2}), (11, {6: 1}), (30, {6: 1}))

    result = replay(pool({1: 30, 6: -2}), past, SINCE, UNTIL)

    assert [(sell.order, sell.missing, sell.is_served) for sell in result.oversells] == [
        ("#1002", 6, True),
        ("#1003", 6, True),
    ]
    # Two 6-packs in ten days are four more in twenty, and two of these were sold.
    [_, six] = result.packs
    assert six.more == 2
    assert result.ends_with == 30 + 2 * 6 - 4 * 6 - 2 * 6


def test_a_variant_that_was_sold_out_within_a_day_is_sold_no_faster_than_in_three() -> None:
    result = replay(pool({1: 10_000, 6: 0}), orders((0.5, {6: 3})), SINCE, UNTIL)

    [_, six] = result.packs
    assert six.more == 29  # 3 in 3 days, and 29.5 days without


def test_an_untracked_variant_takes_units_and_is_never_sold_out_or_oversold() -> None:
    result = replay(pool({1: 5, 6: 0}, uncounted=[6]), orders((1, {6: 4}), (2, {1: 5})), SINCE, UNTIL)

    assert (result.began_with, result.ends_with) == (34, 5)
    assert (result.oversells, result.more) == ([], 0)
    assert [(pack.gid, pack.began_with) for pack in result.packs] == [(gid(1), 10), (gid(6), None)]


def test_a_replay_without_orders_changes_nothing() -> None:
    result = replay(pool({1: 5, 6: 0}), [], SINCE, UNTIL)

    assert (result.orders, result.oversells, result.more, result.began_with, result.ends_with) == (0, [], 0, 5, 5)
