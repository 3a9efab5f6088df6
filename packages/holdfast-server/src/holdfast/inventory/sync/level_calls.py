"""The calls that change and read levels at the platform."""

import asyncio
import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from msgspec import Struct

from holdfast.inventory.installs.access import call_admin_api
from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform_client import PlatformUnreachable
from holdfast.inventory.sync.model import LevelPush, LevelRefusal, ObservedLevel

T = TypeVar("T")

CALL_TIMEOUT_SECONDS = 90.0
"""The most seconds that a call may take with all its waits."""

CHANGE_REASON = "correction"

STALE_CODES = frozenset({"CHANGE_FROM_QUANTITY_STALE", "COMPARE_QUANTITY_STALE", "IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED"})
"""Codes after which a level is read again. With the last one, it is not known which level was at fault."""

RETRYABLE_CODES = frozenset({"IDEMPOTENCY_CONCURRENT_REQUEST", "SERVICE_UNAVAILABLE", "ADJUST_QUANTITIES_FAILED"})
"""Codes after which the call is repeated with its key, so that it takes effect once even if it did already."""

KEY_REUSED_CODE = "IDEMPOTENCY_KEY_PARAMETER_MISMATCH"
"""The key belongs to a different call. The platform does not tell the result of that call."""


class _QuantityError(Struct):
    code: str | None
    field: list[str] | None
    message: str


class _Node(Struct):
    id: str


class _ChangeNode(Struct, rename="camel"):
    quantity_after_change: int | None
    item: _Node | None
    location: _Node | None


class _AdjustmentGroup(Struct, rename="camel"):
    created_at: dt.datetime
    changes: list[_ChangeNode] = []


class _ChangePayload(Struct, rename="camel"):
    inventory_adjustment_group: _AdjustmentGroup | None
    user_errors: list[_QuantityError]


class _SetAnswer(Struct, rename="camel"):
    inventory_set_quantities: _ChangePayload


class _AdjustAnswer(Struct, rename="camel"):
    inventory_adjust_quantities: _ChangePayload


class _QuantityNode(Struct):
    quantity: int


class _LevelNode(Struct, rename="camel"):
    id: str
    item: _Node
    location: _Node
    updated_at: dt.datetime
    quantities: list[_QuantityNode]


class _LevelsAnswer(Struct):
    nodes: list[_LevelNode | None]


class _LevelsOfItemEnd(Struct, rename="camel"):
    has_next_page: bool
    end_cursor: str | None


class _LevelsOfItem(Struct, rename="camel"):
    nodes: list[_LevelNode]
    page_info: _LevelsOfItemEnd


class _ItemWithLevels(Struct, rename="camel"):
    inventory_levels: _LevelsOfItem


class _ItemLevelsAnswer(Struct):
    nodes: list[_ItemWithLevels | None]


SET_LEVELS = Query(
    "set_levels",
    """
    mutation SetLevels($input: InventorySetQuantitiesInput!, $key: String!) {
      inventorySetQuantities(input: $input) @idempotent(key: $key) {
        inventoryAdjustmentGroup { createdAt }
        userErrors { code field message }
      }
    }
    """,
    _SetAnswer,
)
ADJUST = Query(
    "adjust_levels",
    """
    mutation AdjustLevels($input: InventoryAdjustQuantitiesInput!, $key: String!) {
      inventoryAdjustQuantities(input: $input) @idempotent(key: $key) {
        inventoryAdjustmentGroup {
          createdAt changes(quantityNames: ["available"]) { quantityAfterChange item { id } location { id } }
        }
        userErrors { code field message }
      }
    }
    """,
    _AdjustAnswer,
)
READ_LEVELS = Query(
    "read_levels",
    """
    query ReadLevels($ids: [ID!]!) {
      nodes(ids: $ids) {
        ... on InventoryLevel {
          id updatedAt item { id } location { id } quantities(names: ["available"]) { quantity }
        }
      }
    }
    """,
    _LevelsAnswer,
)
READ_ITEMS = Query(
    "read_item_levels",
    """
    query ReadItemLevels($ids: [ID!]!, $first: Int!, $after: String) {
      nodes(ids: $ids) {
        ... on InventoryItem {
          inventoryLevels(first: $first, after: $after) {
            nodes { id updatedAt item { id } location { id } quantities(names: ["available"]) { quantity } }
            pageInfo { hasNextPage endCursor }
          }
        }
      }
    }
    """,
    _ItemLevelsAnswer,
)
LEVEL_COST = 4
"""The cost in points to read one level."""

ITEM_COST = 3
"""The cost in points to read one item, without its levels."""

MAX_READ_COST = 900
"""The most points that one read of items costs; the platform answers none above 1,000."""

MAX_LEVELS_PER_PAGE = 200
"""The most levels of an item in one read."""

MAX_LEVELS_PER_READ = 100
"""The most levels in one read."""


class LevelResult(Struct, frozen=True):
    """A level after a call has changed it."""

    item_gid: str
    location_gid: str
    after: int


class AcceptedPush(Struct, frozen=True):
    """The platform has changed the levels.

    at      when, if the call changed any level
    left    the levels after the call, as far as the platform names them
    """

    at: dt.datetime | None
    left: Sequence[LevelResult] = ()


class UnknownPushResult(Struct, frozen=True):
    """The platform no longer tells the result of a call."""


async def change_levels(
    steps: Steps, shop_id: int, push: LevelPush
) -> AcceptedPush | list[LevelRefusal] | UnknownPushResult:
    """Change all levels of a call, or return the levels that were refused. Raises as `call_admin_api` does."""
    payload = await (_adjust if push.adjusts else _set)(steps, shop_id, push)
    codes = {error.code for error in payload.user_errors}
    if not codes:
        group = payload.inventory_adjustment_group
        return AcceptedPush(group.created_at, _level_results(group)) if group else AcceptedPush(None)
    if passing := sorted(RETRYABLE_CODES & codes):
        raise PlatformUnreachable(f"The platform does not change levels now: {passing[0]}.", 1.0)
    return UnknownPushResult() if KEY_REUSED_CODE in codes else _refused_levels(push, payload.user_errors)


async def _set(steps: Steps, shop_id: int, push: LevelPush) -> _ChangePayload:
    quantities = [
        {
            "inventoryItemId": level.item_gid,
            "locationId": level.location_gid,
            "quantity": level.after,
            "changeFromQuantity": level.before,
        }
        for level in push.levels
    ]
    push_input = {"name": "available", "reason": CHANGE_REASON, "quantities": quantities}
    return (
        await call_in_time(steps, shop_id, SET_LEVELS, {"input": push_input, "key": push.key})
    ).inventory_set_quantities


async def _adjust(steps: Steps, shop_id: int, push: LevelPush) -> _ChangePayload:
    changes = [
        {
            "inventoryItemId": level.item_gid,
            "locationId": level.location_gid,
            "delta": level.after - level.before,
            "changeFromQuantity": None,
        }
        for level in push.levels
    ]
    push_input = {"name": "available", "reason": CHANGE_REASON, "changes": changes}
    return (
        await call_in_time(steps, shop_id, ADJUST, {"input": push_input, "key": push.key})
    ).inventory_adjust_quantities


def _level_results(group: _AdjustmentGroup) -> list[LevelResult]:
    return [
        LevelResult(change.item.id, change.location.id, change.quantity_after_change)
        for change in group.changes
        if change.item and change.location and change.quantity_after_change is not None
    ]


def _refused_levels(push: LevelPush, errors: Sequence[_QuantityError]) -> list[LevelRefusal]:
    reasons: dict[int, str | None] = {}
    for error in errors:
        why = None if error.code in STALE_CODES else f"{error.code or 'REFUSED'}: {error.message}"
        index = _change_index(error.field or ())
        if index is None and why:
            raise RuntimeError(f"The platform does not change levels: {why}")
        for refused_index in range(len(push.levels)) if index is None else (index,):
            reasons[refused_index] = reasons.get(refused_index) or why
    return [
        LevelRefusal(push.levels[index].item_gid, push.levels[index].location_gid, why)
        for index, why in reasons.items()
    ]


def _change_index(field: Sequence[str]) -> int | None:
    """The index of the level that an error is about: its field is like `input.quantities.3.locationId`."""
    named = len(field) > 2 and field[1] in {"quantities", "changes"} and field[2].isdecimal()
    return int(field[2]) if named else None


async def read_levels(steps: Steps, shop_id: int, gids: Sequence[str]) -> list[ObservedLevel]:
    """Levels as they are now, without those that the platform no longer has. Raises as `call_admin_api` does."""
    observed: list[ObservedLevel] = []
    for start in range(0, len(gids), MAX_LEVELS_PER_READ):
        batch = gids[start : start + MAX_LEVELS_PER_READ]
        answer = await call_in_time(
            steps, shop_id, replace(READ_LEVELS, cost=LEVEL_COST * len(batch)), {"ids": [*batch]}
        )
        observed += _observed(level for level in answer.nodes if level)
    return observed


async def read_levels_of_items(steps: Steps, shop_id: int, levels: Sequence[tuple[str, str]]) -> list[ObservedLevel]:
    """All levels of items as they are now, also those that are not known yet. Raises as `call_admin_api` does.

    levels   the known levels, by item and location
    """
    counts = Counter(item for item, _ in levels)
    page_size = min(max(counts.values(), default=0) + 2, MAX_LEVELS_PER_PAGE)
    batch_size = max(1, MAX_READ_COST // (ITEM_COST + LEVEL_COST * page_size))
    items = sorted(counts)
    observed: list[ObservedLevel] = []
    for start in range(0, len(items), batch_size):
        batch = items[start : start + batch_size]
        for item, page in zip(batch, await _read_pages(steps, shop_id, batch, page_size, None), strict=True):
            observed += _observed(page.nodes if page else ())
            while page and page.page_info.has_next_page:
                after = page.page_info.end_cursor
                [page] = await _read_pages(steps, shop_id, [item], MAX_LEVELS_PER_PAGE, after)  # noqa: PLW2901
                observed += _observed(page.nodes if page else ())
    return observed


async def _read_pages(
    steps: Steps, shop_id: int, items: Sequence[str], page_size: int, after: str | None
) -> Sequence[_LevelsOfItem | None]:
    """A page of the levels of each item; None for one that is gone."""
    query = replace(READ_ITEMS, cost=len(items) * (ITEM_COST + LEVEL_COST * page_size))
    answer = await call_in_time(steps, shop_id, query, {"ids": [*items], "first": page_size, "after": after})
    return [node and node.inventory_levels for node in answer.nodes]


def _observed(nodes: Iterable[_LevelNode]) -> list[ObservedLevel]:
    return [
        ObservedLevel(level.item.id, level.location.id, level.id, level.quantities[0].quantity, level.updated_at)
        for level in nodes
        if level.quantities
    ]


async def call_in_time(steps: Steps, shop_id: int, query: Query[T], variables: Mapping[str, Any]) -> T:
    """The platform's answer, within `CALL_TIMEOUT_SECONDS`. Raises as `call_admin_api` does."""
    try:
        async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
            return await call_admin_api(steps, shop_id, query, variables)
    except TimeoutError as error:
        raise PlatformUnreachable(
            f"The platform made the call wait longer than {CALL_TIMEOUT_SECONDS:.0f} seconds."
        ) from error
