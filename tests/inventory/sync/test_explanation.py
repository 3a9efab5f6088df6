"""The function that compares levels with orders: changes by orders are never taken as an edit."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.inventory.sync.explanation import ExplainedLevel, PendingChange, explain

amounts = st.integers(-6, 6).filter(bool)
INCLUDED = 3
"""The place of a change that a level began with."""


def left_at_set_levels(levels: list[ExplainedLevel], changes: list[PendingChange]) -> int:
    """What would be taken as an edit."""
    explanation = explain(levels, changes)
    return sum(level.available - explanation.expected[level.location_gid] for level in levels if level.is_set)


@given(
    placed=st.lists(st.tuples(amounts, st.integers(0, INCLUDED), st.booleans()), max_size=14),
    set_count=st.integers(1, 3),
    edit=st.integers(-3, 3).map(lambda number: number * 1_000),
)
def test_a_difference_caused_by_orders_is_always_explained_by_them(
    placed: list[tuple[int, int, bool]], set_count: int, edit: int
) -> None:
    moved = [sum(amount for amount, place, _ in placed if place == number) for number in range(3)]
    if any(place == INCLUDED or may_be_included for _, place, may_be_included in placed):
        edit = 0  # nobody could tell 999 and a return of 1 from 1,000
    levels = [
        ExplainedLevel(str(number), 50 + moved[number] + (edit if number == 0 else 0), 50, number < set_count)
        for number in range(3)
    ]
    changes = [
        PendingChange(id, None, amount, place == INCLUDED or may_be_included)
        for id, (amount, place, may_be_included) in enumerate(placed)
    ]

    assert left_at_set_levels(levels, changes) == edit


@given(st.lists(amounts, min_size=1, max_size=40), st.data())
def test_orders_explained_one_by_one_leave_no_difference(moves: list[int], data: st.DataObject) -> None:
    """The orders of a busy level come one by one, and so does the level: at the end nothing is left."""
    expected, changes, seen = 50, list[PendingChange](), 0
    for id, amount in enumerate(moves):
        changes.append(PendingChange(id, None, amount, may_be_included=False))
        seen = data.draw(st.integers(seen, id + 1)) if id + 1 < len(moves) else len(moves)
        levels = [ExplainedLevel("1", 50 + sum(moves[:seen]), expected, is_set=True)]
        explanation = explain(levels, changes)
        expected = explanation.expected["1"]
        changes = [
            change._replace(location_gid=explanation.locations[change.id])
            for change in changes
            if change.id not in explanation.certain
        ]

    assert (expected, changes) == (50 + sum(moves), [])


def test_an_order_whose_level_was_not_observed_is_expected_of_a_level_that_is_set() -> None:
    levels = [ExplainedLevel("1", 20, 20, is_set=False), ExplainedLevel("2", 50, 50, is_set=True)]

    explanation = explain(levels, [PendingChange(7, None, -6, may_be_included=False)])

    assert (explanation.expected, explanation.locations, explanation.certain) == ({"1": 20, "2": 44}, {7: "2"}, [])


def test_units_that_were_moved_from_one_location_to_another_are_no_edit() -> None:
    levels = [ExplainedLevel("1", 25, 20, is_set=False), ExplainedLevel("2", 45, 50, is_set=True)]

    explanation = explain(levels, [])

    assert (explanation.expected, explanation.is_settled, explanation.is_moved) == ({"1": 25, "2": 45}, True, True)
