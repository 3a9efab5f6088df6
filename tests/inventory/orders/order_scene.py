"""The service beside the platform: orders are made there, and its webhooks are delivered as a test wants."""

import contextlib
from collections.abc import AsyncGenerator

from holdfast.inventory.installs.model import ShopTask
from holdfast.inventory.orders.catching_up import catch_up
from holdfast.inventory.shops.model import SCOPES
from holdfast.kit.operations import steps
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.model import Order
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.platform_state import WebhookMessage
from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.platform_shop import DOMAIN, PlatformSource, open_platform_scene
from tests.helpers.platform_webhooks import deliver, handle

TOPICS = ("orders/create", "orders/updated", "orders/cancelled", "orders/edited", "orders/delete", "refunds/create")
UNITS = (1, 6, 12)


class OrderScene:
    """A shop that has the app, with a pool of 50 that its honey is sold from.

    messages    what the platform has to tell of orders, and was not delivered
    variants    the ids of single, 6-pack and 12-pack
    """

    def __init__(self, inventory: Inventory, platform: ShopifyDouble, shop: Shop) -> None:
        self.inventory = inventory
        self.platform = platform
        self.shop = shop
        self.variants = [variant.id for variant in platform.variants(DOMAIN)[:3]]
        self.messages: list[WebhookMessage] = []
        platform.state.on_message.append(self._hear)

    def _hear(self, message: WebhookMessage) -> None:
        if message.topic in TOPICS and message.shop == DOMAIN:
            self.messages.append(message)

    def sell(self, *sold: tuple[int, int]) -> Order:
        """Sell a number of each variant, by its place."""
        return self.platform.sell(
            DOMAIN, *(SaleLine(self.variants[number], n) for number, n in sold), even_if_sold_out=True
        )

    async def deliver(self, *messages: WebhookMessage, at_once: bool = False) -> None:
        """Deliver messages. Handle each before the next, or all of them at once."""
        for message in messages:
            answer = await deliver(self.shop, message.topic, message.payload)
            assert answer.status_code == 200, answer.text
            if not at_once:
                await handle(self.inventory)
        await handle(self.inventory)

    async def deliver_all(self) -> None:
        """Deliver everything that was not delivered yet, in its order."""
        messages, self.messages = self.messages, []
        await self.deliver(*messages)

    def pick(self, topic: str) -> WebhookMessage:
        """The newest message of a topic; everything else that was told is lost."""
        [*_, message] = (message for message in self.messages if message.topic == topic)
        self.messages = []
        return message

    async def left(self) -> int:
        """What the pool has, where all that was delivered is handled."""
        unhandled = await self.inventory.sql("select topic, error from webhooks where handled_at is null")
        assert unhandled == [], unhandled
        assert await self.inventory.ledger_differences() == []
        return await self.shop.on_hand(1)


@contextlib.asynccontextmanager
async def open_order_scene(platform_source: PlatformSource) -> AsyncGenerator[OrderScene]:
    """A scene, for as long as the block lasts."""
    async with open_platform_scene(platform_source) as stage:
        shop = await stage.install_shop(*SCOPES)
        owner = stage.platform.shop(DOMAIN)
        owner.points = 100_000
        stage.platform.state.store.put(DOMAIN, owner)
        scene = OrderScene(stage.inventory, stage.platform, shop)
        members = [
            {"variant_gid": f"gid://shopify/ProductVariant/{id}", "units_per_sale": units}
            for id, units in zip(scene.variants, UNITS, strict=True)
        ]
        await shop.create_pool(50, name="Honey jars", members=members)
        yield scene


async def catch_up_orders(scene: OrderScene) -> int:
    """The number of orders that the platform had not told of, and that are read now."""
    return await catch_up(steps.Steps(scene.inventory.database), ShopTask(scene.shop.id))
