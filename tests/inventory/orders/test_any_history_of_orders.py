"""After any history of orders and webhooks, the ledger matches the orders."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast_demo.shopify.model import LineItem, Order
from holdfast_demo.shopify.orders import LineEdit, LineReturn, SaleLine
from holdfast_demo.shopify.platform_state import WebhookMessage
from tests.helpers.databases import scratch_database
from tests.helpers.inventory_service import unlimited
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.orders.order_scene import UNITS, OrderScene, open_order_scene

WHOLE = ("orders/create", "orders/updated", "orders/cancelled")
SOAK = bool(os.environ.get("HOLDFAST_SOAK"))

Sell = tuple[Literal["sell"], list[tuple[int, int]]]
Edit = tuple[Literal["edit"], int, int, bool, tuple[int, int] | None]
Take = tuple[Literal["take back"], int, int, bool]
Plain = tuple[Literal["send", "cancel", "wait"], int, bool]
Step = Sell | Edit | Take | Plain

lines = st.tuples(st.integers(0, 2), st.integers(1, 4))
chosen = st.integers(0, 9)
steps = st.lists(
    st.tuples(st.just("sell"), st.lists(lines, min_size=1, max_size=3))
    | st.tuples(st.just("edit"), chosen, st.integers(0, 6), st.booleans(), st.none() | lines)
    | st.tuples(st.just("take back"), chosen, st.integers(1, 4), st.booleans())
    | st.tuples(st.sampled_from(["send", "cancel", "wait"]), chosen, st.booleans()),
    min_size=2,
    max_size=12,
)


class Disorder(NamedTuple):
    """What becomes of the messages of a story, by chance: how many are lost and doubled, and whether they are late.

    only_whole    only those arrive that bring the whole order
    haste         whether everything happens in the same second
    """

    seed: int
    lost: float
    doubled: float
    shuffled: bool
    only_whole: bool
    haste: bool


often, seldom = st.sampled_from([True, True, True, False]), st.sampled_from([False, False, True])
disorders = st.builds(
    Disorder, st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 0.6]), st.sampled_from([0.0, 0.4]), often, often, seldom
)


def act(scene: OrderScene, orders: list[int], step: Step) -> None:
    """Let one thing happen at the platform, if it is possible there."""
    platform = scene.platform
    match step:
        case ("sell", sold):
            orders.append(scene.sell(*sold).id)
        case ("wait", seconds, _):
            platform.clock.advance(seconds)
        case (_, place, *_) if order := order_at(scene, orders, place):
            line = order.lines[place % len(order.lines)]
            change(scene, order, line, step)
        case _:
            pass


def change(scene: OrderScene, order: Order, line: LineItem, step: Any) -> None:
    platform = scene.platform
    match step:
        case ("edit", _, quantity, restock, further) if not order.cancelled and quantity >= line.fulfilled:
            added = [SaleLine(scene.variants[further[0]], further[1])] if further else []
            platform.edit(DOMAIN, order.id, LineEdit(line.id, quantity, restock), added=added)
        case ("take back", _, quantity, restock) if 0 < quantity <= line.current:
            platform.refund(DOMAIN, order.id, LineReturn(line.id, quantity, restock))
        case ("send", *_) if not order.cancelled:
            platform.send(DOMAIN, order.id)
        case ("cancel", _, restock) if not order.cancelled and not any(line.fulfilled for line in order.lines):
            platform.cancel(DOMAIN, order.id, restock=restock)
        case _:
            pass


def order_at(scene: OrderScene, orders: list[int], place: int) -> Order | None:
    by_id = {order.id: order for order in scene.platform.orders(DOMAIN)}
    return by_id[orders[place % len(orders)]] if orders else None


def disordered_messages(messages: list[WebhookMessage], disorder: Disorder) -> list[WebhookMessage]:
    """The messages as they arrive. The last that brings the whole order always does."""
    random = Random(disorder.seed)
    last = {order_of(message): message for message in messages if message.topic in WHOLE}
    messages = [message for message in messages if message.topic in WHOLE or not disorder.only_whole]
    remaining = [
        message for message in messages if message is last[order_of(message)] or random.random() >= disorder.lost
    ]
    remaining += [message for message in remaining if random.random() < disorder.doubled]
    if disorder.shuffled:
        random.shuffle(remaining)
    return remaining


def order_of(message: WebhookMessage) -> int:
    payload = message.payload
    return payload.get("order_id") or payload.get("order_edit", payload).get("order_id") or payload["id"]


def units_of_order(scene: OrderScene, order: Order) -> int:
    """What an order has taken of the pool, computed by what is not with the shop any more."""
    units = dict(zip(scene.variants, UNITS, strict=True))
    came_back = {line.id: 0 for line in order.lines}
    for refund in order.refunds:
        for line in refund.lines:
            if line.restock != "NO_RESTOCK":
                came_back[line.line] += line.quantity
    return sum((line.quantity - came_back[line.id]) * units[line.variant] for line in order.lines)


@pytest.fixture(scope="module")
def tell(
    inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[list[Step], Disorder], None]]:
    """Lets a story happen, delivers what is told of it, and compares the pool with the orders."""
    with scratch_database(inventory_template, "orders") as url, asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        settings = unlimited(url, tmp_path_factory.mktemp("data"))
        scene: OrderScene = runner.run(stack.enter_async_context(open_order_scene(settings)))

        async def story(history: list[Step], disorder: Disorder) -> None:
            orders = [scene.sell((0, 5), (1, 2)).id]
            for step in history:
                act(scene, orders, step)
                scene.platform.clock.advance(0 if disorder.haste else 1)
            messages, scene.messages = scene.messages, []
            await scene.deliver(*disordered_messages(messages, disorder), at_once=disorder.seed % 2 == 1)

            assert await scene.left() == 50 - sum(
                units_of_order(scene, order) for order in scene.platform.orders(DOMAIN)
            )

        yield lambda history, disorder: runner.run(story(history, disorder))

        runner.run(stack.aclose())


@settings(
    max_examples=1000 if SOAK else 40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(history=steps, disorder=disorders)
def test_the_ledger_after_any_history_of_orders_matches_the_orders(
    tell: Callable[[list[Step], Disorder], None], history: list[Step], disorder: Disorder
) -> None:
    tell(history, disorder)
