"""Orders and levels arrive twice, late and in any order: pool and platform agree at the end."""

import itertools
import os
import random
from typing import Any

import pytest

from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.orders import SaleLine
from tests.helpers.platform_shop import DOMAIN
from tests.helpers.platform_webhooks import handle
from tests.inventory.sync.sync_scene import PACKS, SyncScene, deliver_message

ORDERS = 200 if os.environ.get("HOLDFAST_SOAK") else 12


@pytest.mark.parametrize("seed", [1, 2])
async def test_pool_and_platform_agree_after_webhooks_in_any_order(scene: SyncScene, seed: int) -> None:
    chance = random.Random(seed)
    numbers = itertools.count(1)
    messages: list[tuple[str, Any, str]] = []
    scene.platform.state.on_message.append(
        lambda message: messages.append((message.topic, message.payload, f"w{next(numbers)}"))
    )
    edits = 0
    for _ in range(ORDERS):
        title = chance.choice([*PACKS])
        try:
            order = scene.platform.sell(DOMAIN, SaleLine(scene.variants[title].id, 1))
        except ShopifyRefusal:
            continue
        if chance.random() < 0.3:
            scene.platform.cancel(DOMAIN, order.id)
        if chance.random() < 0.1:
            edits += 1
            scene.count("Single", scene.levels()[0] + 1)
        chance.shuffle(messages)
        for _ in range(chance.randrange(len(messages))):
            await deliver_message(scene, messages[-1])
            if chance.random() < 0.8:
                messages.pop()
        await handle(scene.inventory)
        if chance.random() < 0.5:
            await scene.end_push_pause()
            await scene.sync_due()
    for message in messages:
        await deliver_message(scene, message)
    await handle(scene.inventory)
    for _ in range(4):
        await scene.end_grace_and_sync()

    on_hand = await scene.shop.on_hand(scene.pool_id)
    sold = [
        sum(line.current * PACKS[line.variant_title] for line in order.lines if order.cancelled is None)
        for order in scene.platform.orders(DOMAIN)
    ]
    assert on_hand == 50 + edits - sum(sold)
    assert scene.levels() == tuple(max(0, on_hand // units) for units in PACKS.values())
    assert await scene.inventory.ledger_differences() == []
    assert (await scene.shop.call("get_drift"))["drift"] == []
