"""The app is subscribed to every topic that it handles, at our address, and to none with data of customers."""

import pytest

from holdfast.inventory.installs import operations, subscriptions
from holdfast.inventory.installs.model import ShopTask
from holdfast.inventory.installs.subscriptions import NotSubscribed
from holdfast.inventory.orders import part as orders
from holdfast.inventory.partner_webhooks.payloads import fields_of
from holdfast.inventory.service import HANDLERS
from holdfast_demo.shopify.model import Subscription
from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import BASE_URL, DOMAIN, PlatformScene

TOPICS = ("orders/updated", "inventory_levels/update", "app/uninstalled", "shop/redact")
ADDRESS = f"{BASE_URL}/webhooks/shopify"


@pytest.fixture
async def shop(scene: PlatformScene) -> Shop:
    await scene.install()
    return await scene.find_shop()


def platform_subscriptions(scene: PlatformScene) -> list[tuple[str, str]]:
    """The subscriptions at the platform: topic and address."""
    return sorted(
        (subscription.topic, subscription.uri)
        for subscription in scene.platform.state.store.select(Subscription, DOMAIN)
    )


async def test_an_install_enqueues_the_task_that_subscribes(scene: PlatformScene, shop: Shop) -> None:
    tasks = await scene.inventory.sql("select args from procrastinate_jobs where task_name = 'subscribe_shop'")

    assert tasks == [({"tenant": shop.id, "arguments": {"shop_id": shop.id}},)]
    await orders.subscribe(scene.steps_of(shop), ShopTask(shop.id), HANDLERS.keys())
    assert ("APP_UNINSTALLED", ADDRESS) in platform_subscriptions(scene)


async def test_missing_subscriptions_are_made_and_those_to_other_addresses_are_ended(
    scene: PlatformScene, shop: Shop
) -> None:
    moved = Subscription(topic="ORDERS_UPDATED", uri="https://old.example.com/webhooks/shopify")
    needless = Subscription(topic="SHOP_UPDATE", uri=ADDRESS)
    for subscription in (moved, needless):
        scene.platform.state.store.put(DOMAIN, subscription)

    for _ in range(2):
        await subscriptions.subscribe(scene.steps_of(shop), ShopTask(shop.id), TOPICS)

        assert platform_subscriptions(scene) == [
            ("APP_UNINSTALLED", ADDRESS),
            ("INVENTORY_LEVELS_UPDATE", ADDRESS),
            ("ORDERS_UPDATED", ADDRESS),
        ]


async def test_subscriptions_that_the_platform_ended_are_made_again(scene: PlatformScene, shop: Shop) -> None:
    await subscriptions.subscribe(scene.steps_of(shop), ShopTask(shop.id), TOPICS)
    for subscription in scene.platform.state.store.select(Subscription, DOMAIN):
        scene.platform.state.store.remove(DOMAIN, subscription)

    assert await subscriptions.subscribe_all(scene.steps) == 1
    await subscriptions.subscribe(scene.steps_of(shop), ShopTask(shop.id), TOPICS)

    assert len(platform_subscriptions(scene)) == 3


async def test_a_subscription_sends_only_the_fields_that_are_stored(scene: PlatformScene, shop: Shop) -> None:
    await subscriptions.subscribe(scene.steps_of(shop), ShopTask(shop.id), TOPICS)

    fields = {
        subscription.topic: subscription.include_fields
        for subscription in scene.platform.state.store.select(Subscription, DOMAIN)
    }
    assert fields["ORDERS_UPDATED"] == fields_of("orders/updated")


async def test_a_shop_without_access_is_not_subscribed(scene: PlatformScene, shop: Shop) -> None:
    scene.platform.oauth.revoke(DOMAIN)

    await subscriptions.subscribe(scene.steps_of(shop), ShopTask(shop.id), TOPICS)

    assert platform_subscriptions(scene) == []
    assert await subscriptions.subscribe_all(scene.steps) == 0


async def test_a_topic_that_the_platform_refuses_does_not_stop_the_others(scene: PlatformScene, shop: Shop) -> None:
    installed = scene.platform.shop(DOMAIN)
    granted, installed.scopes = installed.scopes, ["read_products"]
    scene.platform.state.store.put(DOMAIN, installed)

    with pytest.raises(NotSubscribed, match=r"orders/updated: You do not have permission.*inventory_levels/update: "):
        await subscriptions.subscribe(scene.steps_of(shop), ShopTask(shop.id), (*TOPICS, "products/update"))

    assert platform_subscriptions(scene) == [("APP_UNINSTALLED", ADDRESS), ("PRODUCTS_UPDATE", ADDRESS)]
    await scene.inventory.regenerate_key(shop, "read_inventory")
    errors = (await shop.call("get_sync_status"))["subscription_errors"]
    assert [error.partition(":")[0] for error in errors] == ["orders/updated", "inventory_levels/update"]
    states = await scene.inventory.database.transact(operations.connection_statuses)
    assert states[shop.id].startswith("connected, but the platform does not tell of orders/updated: You do not have")

    installed.scopes = granted
    scene.platform.state.store.put(DOMAIN, installed)
    await subscriptions.subscribe(scene.steps_of(shop), ShopTask(shop.id), TOPICS)

    assert (await shop.call("get_sync_status"))["subscription_errors"] == []
