"""Whatever happens to orders, levels are what was there, less what was sold, plus what came back."""

from random import Random

from holdfast.inventory.shopify.double.errors import Refused
from holdfast.inventory.shopify.double.model import Order
from holdfast.inventory.shopify.double.orders import Back, Change, Sold
from tests.inventory.platform_double.stage import DOMAIN, Stage

BEGUN = 50 + 8 + 4


def _act(stage: Stage, random: Random, orders: list[Order]) -> None:
    """Do something to an order, or make one."""
    double = stage.double
    if not orders or random.random() < 0.4:
        wanted = [Sold(random.choice(stage.variants[:3]).id, random.randint(1, 4)) for _ in range(random.randint(1, 3))]
        double.sell(DOMAIN, *wanted, even_if_sold_out=True)
        return
    order = random.choice(orders)
    line = random.choice(order.lines)
    match random.randint(0, 4):
        case 0:
            double.send(DOMAIN, order.id)
        case 1:
            double.cancel(DOMAIN, order.id, restock=random.random() < 0.7)
        case 2:
            double.refund(DOMAIN, order.id, Back(line.id, random.randint(1, 3), random.random() < 0.7))
        case 3:
            double.edit(DOMAIN, order.id, Change(line.id, random.randint(0, 5), random.random() < 0.7))
        case _:
            double.edit(DOMAIN, order.id, added=[Sold(random.choice(stage.variants[:3]).id, 1)])


async def test_after_many_orders_levels_are_what_orders_say(stage: Stage) -> None:
    random = Random(16)
    for _ in range(400):
        try:
            _act(stage, random, stage.double.orders(DOMAIN)[-20:])
        except Refused:
            continue

    orders = stage.double.orders(DOMAIN)
    levels = [stage.double.level(DOMAIN, each.id) for each in stage.variants[:3]]
    lines = [line for order in orders for line in order.lines]
    lost = sum(
        each.quantity for order in orders for refund in order.refunds for each in refund.lines if each.location is None
    )
    assert sum(each.committed for each in levels) == sum(each.current - each.fulfilled for each in lines)
    assert sum(each.available for each in levels) == BEGUN - sum(each.current for each in lines) - lost
    assert len(orders) > 100
    assert lost > 10
