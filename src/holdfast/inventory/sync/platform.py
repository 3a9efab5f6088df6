"""What is asked of the platform: to set levels, and to say what they are."""

import asyncio
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from msgspec import Struct

from holdfast.inventory.installs.access import ask
from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform import Unreachable
from holdfast.inventory.sync.model import Observed, Push, Unsettable

T = TypeVar("T")

SECONDS = 90.0
"""How long a call may take with all its waits: less than the lease of a shop."""

REASON = "correction"

STALE = frozenset(
    {
        "CHANGE_FROM_QUANTITY_STALE",
        "COMPARE_QUANTITY_STALE",
        "IDEMPOTENCY_KEY_PARAMETER_MISMATCH",
        "IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED",
    }
)
"""Codes after which a level is read again. With the last two, it is not known which level was at fault."""

BUSY = "IDEMPOTENCY_CONCURRENT_REQUEST"


class _UserError(Struct):
    code: str | None
    field: list[str] | None
    message: str


class _Group(Struct, rename="camel"):
    created_at: dt.datetime


class _Done(Struct, rename="camel"):
    inventory_adjustment_group: _Group | None
    user_errors: list[_UserError]


class _Set(Struct, rename="camel"):
    inventory_set_quantities: _Done


class _Id(Struct):
    id: str


class _Quantity(Struct):
    quantity: int


class _Level(Struct, rename="camel"):
    id: str
    item: _Id
    location: _Id
    updated_at: dt.datetime
    quantities: list[_Quantity]


class _Levels(Struct):
    nodes: list[_Level | None]


SET = Query(
    "set_levels",
    """
    mutation SetLevels($input: InventorySetQuantitiesInput!, $key: String!) {
      inventorySetQuantities(input: $input) @idempotent(key: $key) {
        inventoryAdjustmentGroup { createdAt }
        userErrors { code field message }
      }
    }
    """,
    _Set,
)
READ = Query(
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
    _Levels,
)
COST = 4
"""The points of a level that is read."""

READ_AT_ONCE = 100
"""The most levels that are read by one call."""


class Accepted(Struct, frozen=True):
    """The platform has set the levels. `at`: when, if any level changed by it."""

    at: dt.datetime | None


async def set_levels(steps: Steps, shop_id: int, push: Push) -> Accepted | list[Unsettable]:
    """Set the levels of a call; or what was wrong with some of them, and then none is set. Raises as `ask` does."""
    quantities = [
        {
            "inventoryItemId": each.item_gid,
            "locationId": each.location_gid,
            "quantity": each.after,
            "changeFromQuantity": each.before,
        }
        for each in push.levels
    ]
    given = {"name": "available", "reason": REASON, "quantities": quantities}
    done = (await ask_in_time(steps, shop_id, SET, {"input": given, "key": push.key})).inventory_set_quantities
    if not done.user_errors:
        return Accepted(done.inventory_adjustment_group and done.inventory_adjustment_group.created_at)
    if any(error.code == BUSY for error in done.user_errors):
        raise Unreachable("The platform is still at work on the same call.", 1.0)
    return _unsettable(push, done.user_errors)


def _unsettable(push: Push, errors: Sequence[_UserError]) -> list[Unsettable]:
    found: dict[int, str | None] = {}
    for error in errors:
        why = None if error.code in STALE else f"{error.code or 'REFUSED'}: {error.message}"
        place = _place(error.field or ())
        if place is None and why:
            raise RuntimeError(f"The platform does not set levels: {why}")
        for each in range(len(push.levels)) if place is None else (place,):
            found[each] = found.get(each) or why
    return [
        Unsettable(push.levels[place].item_gid, push.levels[place].location_gid, why) for place, why in found.items()
    ]


def _place(field: Sequence[str]) -> int | None:
    """Which of the quantities an error is about: its field is such as `input.quantities.3.locationId`."""
    return int(field[2]) if len(field) > 2 and field[1] == "quantities" and field[2].isdecimal() else None


async def read_levels(steps: Steps, shop_id: int, gids: Sequence[str]) -> list[Observed]:
    """What levels are now. Those that the platform does not have any more are left out. Raises as `ask` does."""
    read = await ask_in_time(steps, shop_id, replace(READ, cost=COST * len(gids)), {"ids": [*gids]})
    return [
        Observed(each.item.id, each.location.id, each.id, each.quantities[0].quantity, each.updated_at)
        for each in read.nodes
        if each and each.quantities
    ]


async def ask_in_time(steps: Steps, shop_id: int, query: Query[T], variables: Mapping[str, Any]) -> T:
    """What the platform answers, before the lease of the shop ends. Raises as `ask` does."""
    try:
        async with asyncio.timeout(SECONDS):
            return await ask(steps, shop_id, query, variables)
    except TimeoutError as error:
        raise Unreachable(f"The platform made the call wait longer than {SECONDS:.0f} seconds.") from error
