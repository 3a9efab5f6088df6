"""The points of a shop: counted as the platform counts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.inventory.shopify.admin import PointBucket

PLAN = {"maximum": 2_000.0, "rate": 100.0}


def bucket_with_points(available: float) -> PointBucket:
    """A bucket that was told at the time 0 how many points there are."""
    bucket = PointBucket(0)
    bucket.take(10, 0)
    bucket.learn(10, 0, available=available, **PLAN)
    return bucket


def test_calls_wait_as_soon_as_there_are_no_points_and_one_after_the_other() -> None:
    bucket = bucket_with_points(150)

    assert [bucket.take(100, 0) for _ in range(3)] == [0, 0.5, 1.5]


def test_points_come_back_at_the_rate_of_the_plan_and_up_to_its_maximum() -> None:
    bucket = bucket_with_points(0)
    assert bucket.take(100, 1) == 0

    bucket = bucket_with_points(0)
    assert bucket.take(2_100, 10**6) == 1


def test_an_answer_does_not_count_the_points_of_calls_in_progress() -> None:
    bucket = bucket_with_points(1_000)
    for _ in range(2):
        assert bucket.take(400, 0) == 0

    bucket.learn(400, 0, available=600, **PLAN)

    assert bucket.take(400, 0) == 2


def test_a_call_that_is_not_made_gives_its_points_back() -> None:
    bucket = bucket_with_points(100)
    bucket.take(500, 0)
    bucket.give_back(500)

    assert bucket.take(100, 0) == 0


def test_an_unknown_shop_begins_with_fewer_points_than_any_plan() -> None:
    bucket = PointBucket(0)

    assert (bucket.take(1_000, 0), bucket.take(50, 0)) == (0, 1)


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 500)), min_size=1, max_size=40))
def test_no_call_comes_too_early_for_a_platform_that_counts_exactly(calls: list[tuple[float, int]]) -> None:
    """The platform: 2,000 points at most, 100 a second, a refusal when there are too few."""
    bucket = PointBucket(0)
    bucket.learn(0, 0, available=1_000, **PLAN)
    points, at, now = 1_000.0, 0.0, 0.0
    for pause, cost in calls:
        now += pause
        start = now + bucket.take(cost, now)
        points, at = min(2_000.0, points + (start - at) * 100) - cost, start
        assert points > -0.001
        now = start
        bucket.learn(cost, now, available=points, **PLAN)


def test_a_background_call_leaves_points_for_the_next_level() -> None:
    bucket = bucket_with_points(2_000)

    assert bucket.take(722, 0, is_background=True) == 0
    assert bucket.take(722, 0, is_background=True) == pytest.approx(4.44)
    assert bucket.take(10, 0) == 0


def test_a_background_call_that_costs_all_points_of_a_shop_is_made_when_all_are_there() -> None:
    bucket = PointBucket(0)

    assert bucket.take(1_000, 0, is_background=True) == 0
