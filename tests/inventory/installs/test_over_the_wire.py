"""The platform and the service over real connections: an install, an order, the end, and the deletion of everything."""

import json

from holdfast.inventory.installs import uninstalling
from holdfast.inventory.installs.model import ShopTask
from holdfast.inventory.orders import part as orders
from holdfast.inventory.service import HANDLERS
from holdfast.inventory.settings import Settings
from holdfast_demo.shopify.orders import SaleLine
from tests.helpers.events_service import eventually
from tests.helpers.platform_shop import DOMAIN, PlatformScene, key_in, open_platform_scene
from tests.helpers.platform_webhooks import handle
from tests.helpers.serving import bind_port, running_already, serve_app


async def wait_for_webhook(scene: PlatformScene, topic: str) -> bytes | None:
    """What the platform said last of a topic, as it is stored; waits until it has arrived."""
    last = "select payload from webhooks where topic = %(topic)s order by id desc limit 1"

    async def is_there() -> bool:
        return bool(await scene.inventory.sql(last, topic=topic))

    await eventually(is_there)
    [(payload,)] = await scene.inventory.sql(last, topic=topic)
    return payload


async def test_an_app_is_installed_used_uninstalled_and_its_data_deleted_over_real_connections(
    settings: Settings,
) -> None:
    port = bind_port()
    base_url = port.url
    async with open_platform_scene(settings, base_url) as scene, serve_app(running_already(scene.inventory.app), port):
        shop = await scene.find_shop(key_in((await scene.install(base_url)).text))
        await orders.subscribe(scene.steps_of(shop), ShopTask(shop.id), HANDLERS.keys())

        variant = scene.platform.variants(DOMAIN)[0]
        order = scene.platform.sell(DOMAIN, SaleLine(variant.id, 2))
        payload = await wait_for_webhook(scene, "orders/create")
        assert payload
        body = json.loads(payload)
        assert body["id"] == order.id
        assert [(line["variant_id"], line["quantity"]) for line in body["line_items"]] == [(variant.id, 2)]
        assert b"Lovelace" not in payload
        assert b"example.com" not in payload

        scene.platform.comply(DOMAIN, "customers/redact")
        scene.platform.uninstall(DOMAIN)
        await wait_for_webhook(scene, "app/uninstalled")
        await handle(scene.inventory)
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await shop.post_message(ping)).status_code == 401
        assert await scene.inventory.sql("select from platform_tokens") == []

        await scene.inventory.sql("update installs set uninstalled_at = uninstalled_at - interval '48 hours'")
        scene.platform.comply(DOMAIN, "shop/redact")
        await wait_for_webhook(scene, "shop/redact")
        await handle(scene.inventory)
        await uninstalling.delete(scene.steps, ShopTask(shop.id))
        assert await scene.inventory.sql("select from shops") == []
        assert {webhook.answer for webhook in scene.platform.webhooks.newest(DOMAIN)} == {"200"}
