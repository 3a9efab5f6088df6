"""After holds, sales, releases and counts in any order, a hold has ended once, and every balance is explained."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.databases import scratch_database
from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop, ToolRefusal, running_inventory, unlimited

JARS, BOXES = "Jars", "Boxes"
DRAWS = {SINGLE: {JARS: 1}, SIX_PACK: {JARS: 6, BOXES: 1}, JARS: {JARS: 1}, BOXES: {BOXES: 1}}
"""What can be sold, with what one takes of each pool; a six-pack is a kit."""

Hold = tuple[Literal["hold"], str, int]
Sell = tuple[Literal["sell"], str, int, int | None, int]
Release = tuple[Literal["release"], int]
Step = Hold | Sell | Release


class Pools(NamedTuple):
    """A shop with pools of 20 jars and 3 boxes, whose ids these are."""

    shop: Shop
    ids: dict[str, int]

    def named(self, what: str) -> dict[str, Any]:
        return {"pool_id": self.ids[what]} if what in self.ids else {"variant_gid": what}


class Model:
    """What the shop should answer: its balances, and its holds with what each keeps."""

    def __init__(self) -> None:
        self.on_hand = {JARS: 20, BOXES: 3}
        self.holds: dict[int, dict[str, int] | None] = {}

    def held(self, pool: str) -> int:
        return sum(draws.get(pool, 0) for draws in self.holds.values() if draws)

    def free(self, pool: str) -> int:
        return self.on_hand[pool] - self.held(pool)

    def hold(self, what: str, quantity: int) -> dict[str, int] | str:
        lines = {pool: quantity * units for pool, units in DRAWS[what].items()}
        return lines if all(self.free(pool) >= needed for pool, needed in lines.items()) else "not_enough_stock"

    def sell(self, what: str, quantity: int, hold: int | None) -> str | None:
        draws = {} if hold is None else self.holds[hold]
        if draws is None:
            return "hold_ended"
        if draws.keys() - DRAWS[what].keys():
            return "validation_failed"
        needed = {pool: quantity * units for pool, units in DRAWS[what].items()}
        if any(self.free(pool) + draws.get(pool, 0) < number for pool, number in needed.items()):
            return "not_enough_stock"
        for pool, number in needed.items():
            self.on_hand[pool] -= number
        if hold is not None:
            self.holds[hold] = None
        return None


wares, numbers = st.sampled_from(sorted(DRAWS)), st.integers(1, 9)
steps = st.lists(
    st.tuples(st.just("hold"), wares, numbers)
    | st.tuples(st.just("sell"), wares, numbers, st.none() | st.integers(0, 5), st.integers(1, 3))
    | st.tuples(st.just("release"), st.integers(0, 5)),
    max_size=12,
)


async def answer_or_code(call: Awaitable[Any]) -> tuple[str | None, Any]:
    """The code that a call is refused with, or None and its answer."""
    try:
        return None, await call
    except ToolRefusal as refusal:
        return refusal.code, None


async def play(pools: Pools, model: Model, step: Step) -> None:
    shop, known = pools.shop, [*model.holds]
    match step:
        case ("hold", what, quantity):
            expected = model.hold(what, quantity)
            code, change = await answer_or_code(shop.call("hold_quantity", **pools.named(what), quantity=quantity))
            assert code == (expected if isinstance(expected, str) else None)
            if isinstance(expected, dict):
                model.holds[change["hold"]["id"]] = expected
        case ("sell", what, quantity, chosen, times):
            hold = known[chosen % len(known)] if known and chosen is not None else None
            sale = {**pools.named(what), "quantity": quantity, **({"hold_id": hold} if hold else {})}
            answers = await asyncio.gather(*(answer_or_code(shop.call("record_sale", **sale)) for _ in range(times)))
            # The calls are equal, so their order does not matter.
            expected = [model.sell(what, quantity, hold) for _ in range(times)]
            assert sorted(str(code) for code, _ in answers) == sorted(map(str, expected))
        case ("release", chosen):
            if known:
                hold = known[chosen % len(known)]
                code, _ = await answer_or_code(shop.call("release_hold", hold_id=hold))
                assert code == (None if model.holds[hold] else "hold_ended")
                model.holds[hold] = None


@pytest.fixture(scope="module")
def tell(inventory_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[list[Step]], None]]:
    """Tells a story in a new shop, and compares each answer and the balances with the model."""
    with scratch_database(inventory_template, "sales") as url, asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        inventory: Inventory = runner.run(
            stack.enter_async_context(running_inventory(unlimited(url, tmp_path_factory.mktemp("data"))))
        )

        async def story(history: list[Step]) -> None:
            shop, model = await inventory.create_shop(), Model()
            members = {
                name: [
                    {"variant_gid": gid, "units_per_sale": draws[name]}
                    for gid, draws in DRAWS.items()
                    if name in draws and gid.startswith("gid:")
                ]
                for name in (JARS, BOXES)
            }
            ids = {
                name: (await shop.create_pool(number, name=name, members=members[name]))["id"]
                for name, number in model.on_hand.items()
            }
            for step in history:
                await play(Pools(shop, ids), model, step)
                for name, id in ids.items():
                    pool = await shop.call("get_pool", pool_id=id)
                    assert (pool["on_hand"], pool["held"]) == (model.on_hand[name], model.held(name))
                    assert pool["on_hand"] >= pool["held"] >= 0
            kits = min(math.floor(model.free(pool) / units) for pool, units in DRAWS[SIX_PACK].items())
            assert (await shop.read_storefront()).json()["variants"][SIX_PACK] == kits

        yield lambda history: runner.run(story(history))

        assert runner.run(inventory.ledger_differences()) == []
        runner.run(stack.aclose())


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(history=steps)
def test_a_hold_ends_once_and_balances_match_the_sales_after_any_history(
    tell: Callable[[list[Step]], None], history: list[Step]
) -> None:
    tell(history)
