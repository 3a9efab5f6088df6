"""PostgreSQL itself shows a transaction of a shop only that shop, for any SQL.

Everything here is asked with the ids of Ada's shop, by a transaction that has entered Ben's. Nothing of it changes
Ada's shop, so all tests share it.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import psycopg
import pytest
import pytest_asyncio

from holdfast.inventory.api import OPERATIONS
from holdfast.inventory.availability import sql as availability
from holdfast.inventory.resources import Tx
from holdfast.kit.contract.caller import system
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.operation import Batch, Batched, Call, Operation, Stepwise
from holdfast.kit.operations.steps import Steps
from tests.helpers.inventory_service import SINGLE, Inventory, Shop
from tests.inventory.samples import ARGUMENTS, prepare_shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

TABLES = (
    "shops shared_inventories pools variants members availability ledger holds hold_lines idempotency_answers "
    "api_keys agent_registrations installs platform_tokens webhooks links orders order_lines order_draws "
    "order_catches catalogs catalog_variants locations levels syncs pushes sync_lags cart_numbers merchants drawn "
    "order_level_changes ended_levels"
).split()

SECRETS = ("Honey", "Lids", SINGLE, "cart 7")


@pytest.fixture(scope="module")
def inventory(shared_inventory: Inventory) -> Inventory:
    return shared_inventory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ada(inventory: Inventory) -> Shop:
    """The shop reached for: three pools, a hold, a history."""
    return await prepare_shop(inventory)


@pytest_asyncio.fixture(loop_scope="module")
async def ben(inventory: Inventory, ada: Shop) -> Shop:
    """The shop that reaches, a new one for each test."""
    ben = await inventory.create_shop()
    assert ben.id != ada.id
    return ben


@pytest.mark.parametrize("table", TABLES)
async def test_no_row_of_another_shop_can_be_read(inventory: Inventory, ada: Shop, ben: Shop, table: str) -> None:
    column = "id" if table == "shops" else "shop_id"

    async def others(tx: Tx) -> int:
        return await tx.value(f"select count(*) from {table} where {column} is distinct from {ben.id}")  # pyright: ignore[reportArgumentType]

    try:
        seen = await inventory.database.transact(others, ben.id)
    except psycopg.errors.InsufficientPrivilege:
        seen = 0
    assert seen == 0


NO_SHOPS = ("signing_keys", "sessions", "sign_in_links", "mails", "stopped_mails", "oauth_grants", "trusted_auth_keys")


@pytest.mark.parametrize("table", NO_SHOPS)
async def test_keys_and_sessions_are_unreadable_in_a_transaction_of_a_shop(
    inventory: Inventory, ben: Shop, table: str
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await inventory.database.transact(lambda tx: tx.tuples(f"select * from {table}"), ben.id)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_every_operation_called_with_the_id_of_another_shop_finds_nothing(
    inventory: Inventory, ada: Shop, ben: Shop, operation: Operation
) -> None:
    """The first wall is taken away: the operation is told that the caller is Ada. The second one stands."""
    before = await rows_of_shop(inventory, ada)
    pretender = system(ada.id)
    command = check(operation.command, ARGUMENTS[operation.name])

    async def work(tx: Tx) -> Any:
        function = operation.mode.function
        if isinstance(operation.mode, Stepwise):
            return await function(Steps(inventory.database, ben.id), pretender, command)
        if isinstance(operation.mode, Batched):
            return await function(tx, Batch(ada.id, [Call(pretender, command)]))
        return await function(tx, pretender, command)

    try:
        answer = msgspec.json.encode(await inventory.database.transact(work, ben.id), enc_hook=str).decode()
    except (Problem, psycopg.Error, ValueError, TypeError) as error:
        answer = str(error)

    echoed = str(ARGUMENTS[operation.name])
    assert [secret for secret in SECRETS if secret in answer and secret not in echoed] == []
    assert await rows_of_shop(inventory, ada) == before


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_no_operation_of_the_agent_endpoint_finds_data_of_another_shop(
    inventory: Inventory, ada: Shop, ben: Shop, operation: Operation
) -> None:
    before = await rows_of_shop(inventory, ada)
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": operation.name, "arguments": ARGUMENTS[operation.name]},
    }

    answer = (await ben.post_message(message)).text

    echoed = str(ARGUMENTS[operation.name])
    assert [secret for secret in SECRETS if secret in answer and secret not in echoed] == []
    assert await rows_of_shop(inventory, ada) == before


@pytest.mark.parametrize("uri", ["pool://1", "pool://1/history"])
async def test_a_pool_of_another_shop_is_no_resource(ada: Shop, ben: Shop, uri: str) -> None:
    read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}}
    listed = {"jsonrpc": "2.0", "id": 2, "method": "resources/list"}

    answers = [(await ben.post_message(message)).text for message in (read, listed)]

    assert not any(secret in answer for secret in SECRETS for answer in answers)


async def test_the_storefront_of_a_shop_has_its_own_variants_only(ada: Shop, ben: Shop) -> None:
    assert (await ben.read_storefront()).json()["variants"] == {}
    assert SINGLE in (await ada.read_storefront()).json()["variants"]


async def test_availability_of_another_shop_reads_as_empty(inventory: Inventory, ada: Shop, ben: Shop) -> None:
    delta = await inventory.database.read(lambda tx: availability.read_all(tx, ada.id), ben.id)

    assert delta is None


WRITES: list[Callable[[Tx, int], Awaitable[object]]] = [
    lambda tx, shop: tx.value("update pools set name = 'Mine' where shop_id = %(shop)s returning id", {"shop": shop}),
    lambda tx, shop: tx.value("delete from members where shop_id = %(shop)s returning pool_id", {"shop": shop}),
    lambda tx, shop: tx.value(
        "insert into pools (shop_id, name, unit, version) values (%(shop)s, 'Mine', 'g', 1) returning id",
        {"shop": shop},
    ),
    lambda tx, shop: tx.value("update pools set on_hand = 1000000 where id = 1 returning id"),
    lambda tx, shop: tx.value("update ledger set delta = 1 returning id"),
    lambda tx, shop: tx.value("update api_keys set active = false returning id"),
]


@pytest.mark.parametrize("number", range(len(WRITES)))
async def test_no_row_of_another_shop_can_be_written(inventory: Inventory, ada: Shop, ben: Shop, number: int) -> None:
    before = await rows_of_shop(inventory, ada)
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
        assert await inventory.database.transact(lambda tx: WRITES[number](tx, ada.id), ben.id) is None

    assert await rows_of_shop(inventory, ada) == before


async def test_a_failed_transaction_does_not_leave_its_connection_in_the_shop(inventory: Inventory, ada: Shop) -> None:
    """The shop that a transaction has entered is left with the transaction: the connection serves the next one as it
    should.
    """

    async def fail(tx: Tx) -> None:
        await tx.value("select 1 / 0")

    for _ in range(20):
        with pytest.raises(psycopg.Error):
            await inventory.database.transact(fail, ada.id)
    who = await inventory.database.read(
        lambda tx: tx.tuples("select current_user, current_setting('holdfast.shop', true)")
    )

    assert who[0][0] != "holdfast_shop"
    assert who[0][1] in {None, ""}


async def rows_of_shop(inventory: Inventory, shop: Shop) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a shop."""
    return {
        table: sorted(await inventory.sql(f"select t.*::text from {table} t where shop_id = {shop.id}"))
        for table in ("pools", "members", "variants", "ledger", "holds", "hold_lines", "shared_inventories", "api_keys")
    }
