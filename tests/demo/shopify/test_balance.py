"""After any orders, each level is the first one, minus the sold units, plus the returned ones."""

from random import Random

from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import Order
from holdfast_demo.shopify.orders import LineEdit, LineReturn, SaleLine
from tests.demo.shopify.stage import DOMAIN, PlatformStage

BEGUN = 50 + 8 + 4


def make_random_change(stage: PlatformStage, random: Random, orders: list[Order]) -> None:
    """Do something to an order, or make one."""
    double = stage.double
    if not orders or random.random() < 0.4:
        lines = [
            SaleLine(random.choice(stage.variants[:3]).id, random.randint(1, 4)) for _ in range(random.randint(1, 3))
        ]
        double.sell(DOMAIN, *lines, even_if_sold_out=True)
        return
    order = random.choice(orders)
    line = random.choice(order.lines)
    match random.randint(0, 4):
        case 0:
            double.send(DOMAIN, order.id)
        case 1:
            double.cancel(DOMAIN, order.id, restock=random.random() < 0.7)
        case 2:
            double.refund(DOMAIN, order.id, LineReturn(line.id, random.randint(1, 3), random.random() < 0.7))
        case 3:
            double.edit(DOMAIN, order.id, LineEdit(line.id, random.randint(0, 5), random.random() < 0.7))
        case _:
            double.edit(DOMAIN, order.id, added=[SaleLine(random.choice(stage.variants[:3]).id, 1)])


async def test_levels_after_many_random_orders_are_those_that_the_orders_give(stage: PlatformStage) -> None:
    random = Random(16)
    for _ in range(400):
        try:
            make_random_change(stage, random, stage.double.orders(DOMAIN)[-20:])
        except ShopifyRefusal:
            continue

    orders = stage.double.orders(DOMAIN)
    levels = [stage.double.level(DOMAIN, variant.id) for variant in stage.variants[:3]]
    lines = [line for order in orders for line in order.lines]
    lost = sum(
        returned.quantity
        for order in orders
        for refund in order.refunds
        for returned in refund.lines
        if returned.location is None
    )
    assert sum(level.committed for level in levels) == sum(line.current - line.fulfilled for line in lines)
    assert sum(level.available for level in levels) == BEGUN - sum(line.current for line in lines) - lost
    assert len(orders) > 100
    assert lost > 10
