"""Subscriptions: the platform tells of every topic that is handled, at our address, and of nothing of customers."""

import pytest

from holdfast.inventory import topics
from holdfast.inventory.installs import subscriptions
from holdfast.inventory.installs.model import OfShop
from holdfast.inventory.shopify.double.model import Subscription
from holdfast.inventory.webhooks.fields import KEPT
from tests.inventory.installs.merchants import BASE_URL, DOMAIN, Scene
from tests.inventory.support import Shop

TOPICS = ("orders/updated", "inventory_levels/update", "app/uninstalled", "shop/redact")
ADDRESS = f"{BASE_URL}/webhooks/shopify"


@pytest.fixture
async def shop(scene: Scene) -> Shop:
    await scene.install()
    return await scene.shop()


def there(scene: Scene) -> list[tuple[str, str]]:
    """The subscriptions at the platform: topic and address."""
    return sorted((each.topic, each.uri) for each in scene.platform.world.store.some(Subscription, DOMAIN))


async def test_an_install_sees_to_the_subscriptions_soon(scene: Scene, shop: Shop) -> None:
    tasks = await scene.inventory.sql("select args from procrastinate_jobs where task_name = 'subscribe_shop'")

    assert tasks == [({"tenant": shop.id, "arguments": {"shop_id": shop.id}},)]
    await topics.subscribe(scene.steps_of(shop), OfShop(shop.id))
    assert ("APP_UNINSTALLED", ADDRESS) in there(scene)


async def test_what_is_missing_is_made_and_what_leads_elsewhere_is_ended(scene: Scene, shop: Shop) -> None:
    elsewhere = Subscription(topic="ORDERS_UPDATED", uri="https://old.example.com/webhooks/shopify")
    needless = Subscription(topic="SHOP_UPDATE", uri=ADDRESS)
    for each in (elsewhere, needless):
        scene.platform.world.store.put(DOMAIN, each)

    for _ in range(2):
        await subscriptions.subscribe(scene.steps_of(shop), OfShop(shop.id), TOPICS)

        assert there(scene) == [
            ("APP_UNINSTALLED", ADDRESS),
            ("INVENTORY_LEVELS_UPDATE", ADDRESS),
            ("ORDERS_UPDATED", ADDRESS),
        ]


async def test_subscriptions_that_the_platform_ended_are_made_again(scene: Scene, shop: Shop) -> None:
    await subscriptions.subscribe(scene.steps_of(shop), OfShop(shop.id), TOPICS)
    for each in scene.platform.world.store.some(Subscription, DOMAIN):
        scene.platform.world.store.remove(DOMAIN, each)

    assert await subscriptions.subscribe_all(scene.steps) == 1
    await subscriptions.subscribe(scene.steps_of(shop), OfShop(shop.id), TOPICS)

    assert len(there(scene)) == 3


async def test_only_the_fields_that_are_kept_are_sent(scene: Scene, shop: Shop) -> None:
    await subscriptions.subscribe(scene.steps_of(shop), OfShop(shop.id), TOPICS)

    fields = {each.topic: each.include_fields for each in scene.platform.world.store.some(Subscription, DOMAIN)}
    assert fields["ORDERS_UPDATED"] == list(KEPT["orders/updated"].__struct_fields__)


async def test_a_shop_that_is_not_connected_any_more_is_left_alone(scene: Scene, shop: Shop) -> None:
    scene.platform.oauth.revoke(DOMAIN)

    await subscriptions.subscribe(scene.steps_of(shop), OfShop(shop.id), TOPICS)

    assert there(scene) == []
    assert await subscriptions.subscribe_all(scene.steps) == 0


async def test_a_platform_that_refuses_a_topic_is_asked_again_later(scene: Scene, shop: Shop) -> None:
    installed = scene.platform.shop(DOMAIN)
    installed.scopes = ["read_products"]
    scene.platform.world.store.put(DOMAIN, installed)

    with pytest.raises(RuntimeError, match="No subscription to ORDERS_UPDATED: You do not have permission"):
        await subscriptions.subscribe(scene.steps_of(shop), OfShop(shop.id), TOPICS)
