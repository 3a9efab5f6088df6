"""Explains the differences of the levels of an item by the orders that the platform tells of. No database, no clock.

The platform tells of an order and of the level that it changed in two webhooks, in any order. An order does not name
its location. So both sides are compared here, and nowhere else: the changes by orders (`PendingChange`), and the levels
with what is explained of them (`ExplainedLevel`). A change is at one of three places:

* at a level that is set from pools;
* at another level, which is left alone;
* in the first quantity that we saw of a level, if the order had changed it before; or in a level that no longer exists.

The places that leave the fewest unexplained differences are taken; of several, those at levels that are set from pools,
because a difference there would be an edit.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

MAX_CHANGES = 8
"""How many changes of an item wait until levels are seen, at most, before the oldest of them are taken as seen."""

MAX_COMBINATIONS = 4_000
"""The most combinations of places that are compared. Beyond it, further changes of one kind have the same place."""


Place = Literal["set", "others", "included"]
"""The place of a change: a level that is set from pools, another level, or what was there before we saw the levels."""


class ExplainedLevel(NamedTuple):
    """A level whose quantity is explained.

    expected    what calls and orders explain of `available`
    is_set      whether it is set from pools
    """

    location_gid: str
    available: int
    expected: int
    is_set: bool


class PendingChange(NamedTuple):
    """A change of a level of an item by an order, whose place is not certain.

    location_gid    the level whose `expected` has it; None: none
    amount          the change: a sale of two is -2
    may_be_included whether the first quantity that we saw of a level can have it already, or a level that is gone
    """

    id: int
    location_gid: str | None
    amount: int
    may_be_included: bool


class ItemExplanation(NamedTuple):
    """What explains the levels of an item.

    expected     by location
    locations    by id, the level whose `expected` has the change; None: none
    certain      the changes whose place is certain: they need not be compared again. A change that may be included in a
                 quantity is not among them, since a later webhook may still show another place for it
    is_settled   whether no difference is left
    is_moved     whether it is settled because units were moved from one level to another
    """

    expected: Mapping[str, int]
    locations: Mapping[int, str | None]
    certain: Collection[int]
    is_settled: bool
    is_moved: bool


class _Placement(NamedTuple):
    """A place for each of some groups of changes.

    set_amount         the sum of the changes whose place is `set`
    included_amount    the sum of the changes whose place is `included`
    set_count          the number of groups whose place is `set`
    places             the places of the groups, in the order of the groups
    """

    set_amount: int = 0
    included_amount: int = 0
    set_count: int = 0
    places: tuple[Place, ...] = ()


def explain(
    levels: Sequence[ExplainedLevel], changes: Sequence[PendingChange], *, is_complete: bool = False
) -> ItemExplanation:
    """Explain the levels of an item, at least one of which is set from pools. No call changes one of them now.

    is_complete    all levels of the item were read just now. Then what is missing of changes that may be included in a
                   quantity is included there: an order that was changed can be told as one change, and be included
                   in part
    """
    # `movements` is what each level has moved by, apart from what calls and certain changes explain.
    amounts_in_expected = dict.fromkeys((level.location_gid for level in levels), 0)
    for change in changes:
        if change.location_gid in amounts_in_expected:
            amounts_in_expected[change.location_gid] += change.amount
    movements = {
        level.location_gid: level.available - level.expected + amounts_in_expected[level.location_gid]
        for level in levels
    }
    set_levels = [level for level in levels if level.is_set]
    other_levels = [level for level in levels if not level.is_set]
    set_movement = sum(movements[level.location_gid] for level in set_levels)
    others_movement = sum(movements[level.location_gid] for level in other_levels)
    places, best = _best_places(changes, set_movement, others_movement, has_others=bool(other_levels))
    total = sum(change.amount for change in changes)
    set_unexplained = set_movement - best.set_amount
    others_unexplained = others_movement - (total - best.set_amount - best.included_amount)
    is_moved = set_unexplained != 0 and set_unexplained + others_unexplained == 0
    if is_moved:
        set_unexplained = others_unexplained = 0
    if is_complete and set_unexplained and _is_included_in_part(changes, places, set_unexplained):
        set_unexplained = 0
    expected: dict[str, int] = {}
    locations: dict[int, str | None] = {change.id: None for change in changes}
    for place_levels, place, unexplained in (
        (set_levels, "set", set_unexplained),
        (other_levels, "others", others_unexplained),
    ):
        place_changes = [change for change in changes if places[change.id] == place]
        expected |= _attribute(place_levels, place_changes, movements, locations)
        if unexplained == 0:
            expected |= {level.location_gid: level.available for level in place_levels}
    # By id, so the oldest first.
    set_changes = sorted(change for change in changes if places[change.id] == "set" and not change.may_be_included)
    certain = [change.id for change in set_changes] if set_unexplained == 0 else []
    if len(changes) > MAX_CHANGES:
        certain = certain or _surely_seen(set_changes, set_movement)
    return ItemExplanation(expected, locations, certain, set_unexplained == others_unexplained == 0, is_moved)


def _is_included_in_part(changes: Sequence[PendingChange], places: Mapping[int, Place], set_unexplained: int) -> bool:
    """Whether levels have moved less than the changes that may be included, by no more than these."""
    missing_units = sum(
        change.amount
        for change in changes
        if change.may_be_included and places[change.id] == "set" and change.amount * set_unexplained < 0
    )
    return abs(set_unexplained) <= abs(missing_units)


def _best_places(
    changes: Sequence[PendingChange], set_movement: int, others_movement: int, *, has_others: bool
) -> tuple[Mapping[int, Place], _Placement]:
    """The place of each change, `set`, `others` or `included`, and the sums of these places."""
    combinations = {(0, 0): _Placement()}
    groups: list[Sequence[PendingChange]] = []
    for number, change in enumerate(changes):
        if len(combinations) > MAX_COMBINATIONS:
            for group in _by_kind(changes[number:]):
                groups.append(group)
                combinations = _extend(combinations, group, has_others=has_others)
            break
        groups.append([change])
        combinations = _extend(combinations, [change], has_others=has_others)
    total = sum(change.amount for change in changes)

    def rank(placement: _Placement) -> tuple[int, int, int]:
        set_unexplained = set_movement - placement.set_amount
        others_unexplained = others_movement - (total - placement.set_amount - placement.included_amount)
        differences = (set_unexplained != 0) + (others_unexplained != 0 and set_unexplained + others_unexplained != 0)
        return differences, -placement.set_count, abs(set_unexplained)

    best = min(combinations.values(), key=rank)
    return {change.id: place for group, place in zip(groups, best.places, strict=True) for change in group}, best


def _by_kind(changes: Sequence[PendingChange]) -> list[Sequence[PendingChange]]:
    kinds: dict[tuple[bool, bool], list[PendingChange]] = {}
    for change in changes:
        kinds.setdefault((change.may_be_included, change.amount > 0), []).append(change)
    return [*kinds.values()]


def _extend(
    combinations: Mapping[tuple[int, int], _Placement], group: Sequence[PendingChange], *, has_others: bool
) -> dict[tuple[int, int], _Placement]:
    """The combinations with a place of a further group. Among combinations with equal sums, those with most groups at
    set levels.
    """
    amount = sum(change.amount for change in group)
    extended: dict[tuple[int, int], _Placement] = {}
    for before in combinations.values():
        placements = [
            _Placement(
                before.set_amount + amount, before.included_amount, before.set_count + 1, (*before.places, "set")
            )
        ]
        if has_others:
            placements.append(before._replace(places=(*before.places, "others")))
        if group[0].may_be_included:
            placements.append(
                before._replace(included_amount=before.included_amount + amount, places=(*before.places, "included"))
            )
        for placement in placements:
            key = (placement.set_amount, placement.included_amount)
            if key not in extended or extended[key].set_count < placement.set_count:
                extended[key] = placement
    return extended


def _attribute(
    levels: Sequence[ExplainedLevel],
    changes: Sequence[PendingChange],
    movements: Mapping[str, int],
    locations: dict[int, str | None],
) -> Mapping[str, int]:
    """Attribute changes to levels that have moved like them, the largest first. Returns what is expected of each."""
    unexplained = {level.location_gid: movements[level.location_gid] for level in levels}
    for change in sorted(changes, key=lambda change: (-abs(change.amount), change.id)):
        sign = 1 if change.amount > 0 else -1
        location_gid = min(unexplained, key=lambda location_gid: (-unexplained[location_gid] * sign, location_gid))
        unexplained[location_gid] -= change.amount
        locations[change.id] = location_gid
    return {level.location_gid: level.available - unexplained[level.location_gid] for level in levels}


def _surely_seen(set_changes: Sequence[PendingChange], set_movement: int) -> Sequence[int]:
    """The oldest changes that the levels set from pools have moved by already, so that they do not pile up."""
    if any(change.amount * set_movement <= 0 for change in set_changes):
        return []
    seen: list[int] = []
    for change in set_changes:
        set_movement -= change.amount
        if set_movement * change.amount < 0:
            break
        seen.append(change.id)
    return seen
