"""The end of an install: keys and tokens at once, everything else when the platform says so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.inventory.installs import uninstalling
from holdfast.inventory.installs.access import shop_access
from holdfast.inventory.installs.model import ShopTask
from holdfast.kit.contract.problems import Problem
from holdfast_demo.shopify.errors import Fault
from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.platform_shop import DOMAIN, KEY_PATTERN, PlatformScene, key_in
from tests.helpers.platform_webhooks import deliver, handle, install_app
from tests.helpers.webhook_receiver import fan_all_out, receivers_of
from tests.inventory.installs.uninstalling import move_uninstall_back, tell_of_uninstall, uninstall_app
from tests.inventory.samples import prepare_shop
from tests.inventory.webhooks.programs import ShopPrograms


def moment_before(**time: float) -> str:
    return (datetime.now(UTC) - timedelta(**time)).isoformat()


@pytest.fixture
async def shop(scene: PlatformScene) -> Shop:
    """A shop that has the app, with a pool of 50."""
    shop = await scene.find_shop(key_in((await scene.install()).text))
    await shop.create_golden_pool()
    return shop


async def test_the_key_and_the_tokens_of_a_shop_end_at_once(scene: PlatformScene, shop: Shop) -> None:
    identity = (await shop.http.post("/api/agent/identity", json={"type": "service_auth", "api_key": shop.key})).json()[
        "identity_assertion"
    ]

    await uninstall_app(scene, shop)

    for credential in (shop.key, identity):
        refusal = await shop.post_message(
            {"jsonrpc": "2.0", "id": 1, "method": "ping"}, authorization=f"Bearer {credential}"
        )
        assert refusal.status_code == 401
    with pytest.raises(Problem, match="not connected"):
        await shop_access(scene.steps, shop.id)
    assert await scene.inventory.sql("select from platform_tokens") == []


async def test_webhooks_not_yet_handled_are_dropped_when_the_app_is_uninstalled(
    scene: PlatformScene, shop: Shop
) -> None:
    await scene.inventory.sql(
        "insert into webhooks (shop_id, webhook_id, topic, payload) values (%(shop)s, 'w', 'orders/updated', '{}')",
        shop=shop.id,
    )

    await uninstall_app(scene, shop)

    assert await scene.inventory.sql("select topic from webhooks") == [("app/uninstalled",)]


async def test_programs_of_a_shop_are_told_nothing_more_when_the_app_is_uninstalled(
    scene: PlatformScene, shop: Shop
) -> None:
    async with receivers_of(scene.inventory.database) as receivers:
        program = await ShopPrograms(scene.inventory, receivers).add(shop)
        await shop.call("adjust_pool_quantity", pool_id=1, delta=-1)

        await uninstall_app(scene, shop)

        assert await program.messages() == []
    assert await scene.inventory.sql("select status from webhook_endpoints") == [("paused",)]


async def test_a_shop_that_installs_the_app_again_finds_its_pools_and_gets_a_new_key(
    scene: PlatformScene, shop: Shop
) -> None:
    await uninstall_app(scene, shop)

    page = await scene.install()

    again = await scene.find_shop(key_in(page.text))
    assert again.id == shop.id
    assert again.key != shop.key
    assert await again.on_hand(1) == 50
    assert (await shop_access(scene.steps, shop.id)).token


async def test_an_uninstall_of_an_earlier_install_that_comes_late_ends_nothing(
    scene: PlatformScene, shop: Shop
) -> None:
    await tell_of_uninstall(scene, shop, triggered_at=moment_before(days=7))

    assert await shop.on_hand(1) == 50
    assert (await shop_access(scene.steps, shop.id)).token


@pytest.mark.parametrize("body", [{}, {"myshopify_domain": "ben.myshopify.com"}, {"shop_domain": None}])
async def test_an_uninstall_whose_body_names_another_shop_ends_nothing(
    scene: PlatformScene, shop: Shop, body: Any
) -> None:
    """The headers of a webhook are not signed: the body of another one could come under them."""
    scene.platform.uninstall(DOMAIN)
    await tell_of_uninstall(scene, shop, body)

    assert await shop.on_hand(1) == 50


async def test_an_uninstall_that_the_platform_does_not_confirm_ends_nothing(scene: PlatformScene, shop: Shop) -> None:
    """A signature alone is not enough: the platform still accepts the tokens."""
    await tell_of_uninstall(scene, shop)
    [(waits,)] = await scene.inventory.sql("select due_at > now() from webhooks where topic = 'app/uninstalled'")
    assert waits
    await scene.inventory.sql("update webhooks set received_at = now() - interval '2 minutes', due_at = now()")
    await handle(scene.inventory)

    assert await scene.inventory.sql("select from webhooks where handled_at is null") == []
    assert await shop.on_hand(1) == 50
    assert (await shop_access(scene.steps, shop.id)).token


async def test_an_uninstall_is_confirmed_with_tokens_that_are_refreshed_first(scene: PlatformScene, shop: Shop) -> None:
    await scene.inventory.sql("update platform_tokens set generation = 1, expires_at = now() - interval '1 hour'")

    await tell_of_uninstall(scene, shop)

    assert await shop.on_hand(1) == 50
    assert await scene.row("generation", "platform_tokens") == (2,)


async def test_an_uninstall_waits_while_the_platform_cannot_be_reached(scene: PlatformScene, shop: Shop) -> None:
    scene.platform.plan(Fault("down", times=100))

    await tell_of_uninstall(scene, shop)

    assert await shop.on_hand(1) == 50
    assert await scene.inventory.sql("select due_at > now() from webhooks where handled_at is null") == [(True,)]


async def test_a_shop_is_not_deleted_before_the_platform_requests_it(scene: PlatformScene, shop: Shop) -> None:
    await uninstall_app(scene, shop)

    await deliver(shop, "shop/redact", {"shop_domain": DOMAIN})
    await handle(scene.inventory)

    assert await scene.row("redacted_at") == (None,)


async def test_a_request_to_delete_that_comes_early_is_done_when_it_is_due(scene: PlatformScene, shop: Shop) -> None:
    await uninstall_app(scene, shop)
    await deliver(shop, "shop/redact", {"shop_domain": DOMAIN})
    await handle(scene.inventory)
    of_request = "select extract(epoch from due_at - now())::float8 / 3600 from webhooks where topic = 'shop/redact'"
    [(hours,)] = await scene.inventory.sql(of_request)
    assert 39 < hours <= 40

    await move_uninstall_back(scene)
    await scene.inventory.sql("update webhooks set due_at = now() where due_at is not null")
    await handle(scene.inventory)
    await uninstalling.delete(scene.steps, ShopTask(shop.id))

    assert await scene.inventory.sql("select from shops") == []


async def test_a_waiting_request_to_delete_does_not_delete_a_later_install(scene: PlatformScene, shop: Shop) -> None:
    await uninstall_app(scene, shop)
    await deliver(shop, "shop/redact", {"shop_domain": DOMAIN}, triggered_at=moment_before(minutes=1))
    await handle(scene.inventory)
    await scene.install()
    await scene.inventory.sql("update webhooks set due_at = now() where due_at is not null")
    await handle(scene.inventory)

    assert await scene.row("redacted_at, uninstalled_at") == (None, None)
    assert await scene.inventory.sql("select from webhooks where topic = 'shop/redact' and handled_at is null") == []


async def test_an_uninstall_received_twice_is_done_once(scene: PlatformScene, shop: Shop) -> None:
    await uninstall_app(scene, shop)
    await uninstall_app(scene, shop)

    assert not KEY_PATTERN.search(str(await scene.inventory.all_rows()))
    assert (await scene.row("uninstalled_at is not null")) == (True,)


async def test_all_data_of_a_shop_is_deleted_when_the_platform_says_so_and_none_of_others(
    scene: PlatformScene,
) -> None:
    inventory = scene.inventory
    shop, other = await prepare_shop(inventory), await inventory.create_shop()
    await install_app(inventory, shop)
    await shop.call("adjust_pool_quantity", pool_id=1, delta=-1, idempotency_key="k")
    await shop.call("revert_entry", entry_id=4)
    await shop.http.post("/api/agent/identity", json={"type": "service_auth", "api_key": shop.key})
    await other.create_golden_pool()
    [other_pool] = (await other.call("list_pools"))["pools"]
    for owner, pool_id in ((shop, 1), (other, other_pool["id"])):
        await owner.call("set_webhook", url="https://shop.example/webhooks")
        await owner.call("adjust_pool_quantity", pool_id=pool_id, delta=-1)
    await fan_all_out(inventory.database)
    before = await of_others(inventory, shop)
    await tell_of_uninstall(scene, shop, {"myshopify_domain": shop.domain})
    await move_uninstall_back(scene)

    await deliver(shop, "shop/redact", {"shop_id": 1, "shop_domain": shop.domain})
    await handle(inventory)
    await uninstalling.delete(scene.steps, ShopTask(shop.id))

    assert await inventory.sql("select from shops where id = %(id)s", id=shop.id) == []
    for table, owner in await tables(inventory):
        assert await inventory.sql(f"select from {table} where {owner} = {shop.id}") == [], table
    for table in ("webhook_subjects", "webhook_deliveries"):
        rows = await inventory.sql(
            f"select tenant_id from {table} join webhook_endpoints on webhook_endpoints.id = endpoint_id"
        )
        assert {tenant for (tenant,) in rows} == {other.id}, table
    assert await of_others(inventory, shop) == before
    assert (await deliver(shop, "shop/redact", {"shop_domain": shop.domain})).status_code == 200


async def test_the_task_that_deletes_is_enqueued_with_the_confirmation_of_the_platform(
    scene: PlatformScene, shop: Shop
) -> None:
    await uninstall_app(scene, shop)
    await move_uninstall_back(scene)
    await deliver(shop, "shop/redact", {"shop_domain": DOMAIN})
    await handle(scene.inventory)

    tasks = await scene.inventory.sql("select args from procrastinate_jobs where task_name = 'redact_shop'")
    assert tasks == [({"tenant": None, "arguments": {"shop_id": shop.id}},)]


async def test_a_shop_that_has_the_app_is_never_deleted(scene: PlatformScene, shop: Shop) -> None:
    await deliver(shop, "shop/redact", {"shop_domain": DOMAIN})
    await handle(scene.inventory)
    await uninstalling.delete(scene.steps, ShopTask(shop.id))

    assert await shop.on_hand(1) == 50


async def test_the_ledger_of_a_shop_that_is_not_being_deleted_cannot_be_deleted(
    scene: PlatformScene, shop: Shop
) -> None:
    await uninstall_app(scene, shop)

    with pytest.raises(Exception, match="the ledger is append-only"):
        await scene.inventory.sql("delete from ledger")


async def test_a_shop_that_the_platform_forgot_to_delete_is_deleted_after_30_days(
    scene: PlatformScene, shop: Shop
) -> None:
    await uninstall_app(scene, shop)
    assert await uninstalling.redact_forgotten(scene.steps) == 0
    await scene.inventory.sql("update installs set uninstalled_at = now() - interval '31 days'")

    assert await uninstalling.redact_forgotten(scene.steps) == 1
    assert await uninstalling.redact_forgotten(scene.steps) == 0
    await uninstalling.delete(scene.steps, ShopTask(shop.id))
    assert await scene.inventory.sql("select from shops") == []


@pytest.mark.parametrize("topic", ["customers/data_request", "customers/redact"])
async def test_requests_about_customers_are_answered_and_change_nothing(
    scene: PlatformScene, shop: Shop, topic: str
) -> None:
    before = await scene.inventory.all_rows()

    answer = await deliver(shop, topic, {"shop_domain": DOMAIN, "customer": {"id": 1, "email": "ada@example.com"}})

    assert answer.status_code == 200
    assert await scene.inventory.all_rows() == before


async def tables(inventory: Inventory) -> list[tuple[str, str]]:
    """Every table with rows of shops, and its column that names the shop."""
    rows = await inventory.sql(
        """
        select columns.table_name, column_name
          from information_schema.columns join information_schema.tables using (table_name)
         where column_name in ('shop_id', 'tenant_id') and table_type = 'BASE TABLE' and columns.table_schema = 'public'
        """
    )
    return [(name, column) for name, column in rows]


async def of_others(inventory: Inventory, shop: Shop) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of all other shops."""
    return {
        table: sorted(await inventory.sql(f"select t::text from {table} t where {owner} <> {shop.id}"))
        for table, owner in await tables(inventory)
    }
