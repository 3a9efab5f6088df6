"""Concurrent calls in two processes never move more units in a day than the limit of the shop's key."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.accounts.agents.limits import SetLimit
from holdfast.inventory.shops.operations import SHOP_LIMITS
from holdfast.kit.contract.caller import system
from tests.helpers.databases import scratch_database
from tests.helpers.inventory_service import Inventory, ToolRefusal, run_sql, running_inventory, unlimited

POOLS = st.integers(0, 2)
UNITS = st.integers(1, 9)
CALL = st.one_of(
    st.tuples(st.just("adjust_pool_quantity"), POOLS, UNITS.map(lambda units: -units)),
    st.tuples(st.just("adjust_pool_quantity"), POOLS, UNITS),
    st.tuples(st.just("hold_quantity"), POOLS, UNITS),
    st.tuples(st.just("record_sale"), POOLS, UNITS),
    st.tuples(st.just("transfer_quantity"), POOLS, UNITS),
)
Call = tuple[str, int, int]
PHASE = st.tuples(st.integers(0, 80), st.lists(st.tuples(CALL, st.integers(0, 1)), min_size=1, max_size=64))
Phase = tuple[int, Sequence[tuple[Call, int]]]

MOVED = """
    select coalesce(sum(greatest(units_in, units_out)), 0)
      from (select sum(greatest(delta, 0)) as units_in,
                   sum(case when delta = 0 then held_delta else greatest(-delta, 0) end) as units_out
              from ledger where shop_id = %(id)s and source <> 'create_pool' group by version) as change
"""
"""SQL: the units that the changes of a shop have moved, as its ledger says it."""


def arguments(call: Call, ids: Sequence[int]) -> dict[str, Any]:
    """The arguments of a call for pools with these ids."""
    tool, pool, units = call
    match tool:
        case "adjust_pool_quantity":
            return {"pool_id": ids[pool], "delta": units}
        case "hold_quantity":
            return {"pool_id": ids[pool], "quantity": units, "ttl_s": 600}
        case "transfer_quantity":
            return {"from_pool_id": ids[pool], "to_pool_id": ids[pool - 1], "quantity": units}
        case _:
            return {"pool_id": ids[pool], "quantity": units}


async def try_phases(services: Sequence[Inventory], phases: Sequence[Phase]) -> None:
    """Ask for all of this, and see after each phase that the limit was not broken, and counts what the ledger has."""
    shop = await services[0].create_shop()
    shops = [shop.at_service(service) for service in services]
    ids = [(await shop.create_pool(1_000))["id"] for _ in range(3)]
    database = services[0].database
    [(key_id,)] = await run_sql(database, "select id from api_keys where shop_id = %(id)s", id=shop.id)
    before = 0
    for daily_limit, calls in phases:
        command = SetLimit(key_id=key_id, daily_limit=daily_limit)
        await database.transact(lambda tx, command=command: SHOP_LIMITS.store_limit(tx, system(shop.id), command))

        async def attempt(call: Call, process: int) -> str:
            try:
                await shops[process].call(call[0], **arguments(call, ids))
            except ToolRefusal as refusal:
                return refusal.code
            return "done"

        codes = await asyncio.gather(*(attempt(*call) for call in calls))
        [(used,)] = await run_sql(database, "select used from agent_limits where tenant_id = %(id)s", id=shop.id)
        [(moved,)] = await run_sql(database, MOVED, id=shop.id)
        assert {*codes} <= {"done", "daily_limit_reached"}
        assert used == moved
        assert used <= max(daily_limit, before)
        before = used


@pytest.fixture(scope="module")
def run(
    inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Sequence[Phase]], None]]:
    """Tries phases in two processes on a database that all examples share."""
    with scratch_database(inventory_template, "limits") as url, asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        where = unlimited(url, tmp_path_factory.mktemp("limits"))

        async def begin() -> list[Inventory]:
            return [await stack.enter_async_context(running_inventory(where)) for _ in range(2)]

        services = runner.run(begin())
        yield lambda phases: runner.run(try_phases(services, phases))
        runner.run(stack.aclose())


@given(st.lists(PHASE, min_size=1, max_size=3))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_agent_never_moves_more_units_than_the_daily_limit(
    run: Callable[[list[Phase]], None], phases: list[Phase]
) -> None:
    run(phases)
