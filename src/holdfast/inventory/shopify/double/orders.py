"""What customers and merchants do with orders. Levels follow: what is sold is committed, what comes back returns."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.inventory.shopify.double import payloads, shops
from holdfast.inventory.shopify.double.errors import Refused
from holdfast.inventory.shopify.double.model import Line, Location, Order, Refund, RefundLine, Variant
from holdfast.inventory.shopify.double.world import World

CANCEL, RETURN, NO_RESTOCK = "CANCEL", "RETURN", "NO_RESTOCK"


class Sold(NamedTuple):
    """So many units of a variant, from a location; None: the first that sells in the web and has them all."""

    variant: int
    quantity: int
    location: int | None = None


class Change(NamedTuple):
    """How many units of a line are ordered from now on, and whether those that are fewer go back into stock."""

    line: int
    quantity: int
    restock: bool = True


class Back(NamedTuple):
    """So many units of a line, and whether they are put back into stock."""

    line: int
    quantity: int
    restock: bool = True


def sell(
    world: World, shop: str, sold: Sequence[Sold], *, even_if_sold_out: bool = False, till: int | None = None
) -> Order:
    """A new order. Raises `Refused`.

    even_if_sold_out   as when two customers pay for the last one in the same moment
    till               the location at which it is made and handed over
    """
    if not sold:
        raise Refused("An order has at least one line.")
    with world.happening():
        now = world.now()
        owner = world.shop(shop)
        owner.orders += 1
        world.store.put(shop, owner)
        order = Order(number=1000 + owner.orders, lines=[], retail=till, created=now, updated=now)
        for each in sold:
            where = till if each.location is None else each.location
            line = _line(world, shop, each._replace(location=where), even_if_sold_out=even_if_sold_out)
            order.lines.append(line)
            if till:
                _send(world, shop, line)
        world.store.put(shop, order)
        world.tell(shop, "orders/create", payloads.order(order))
        return order


def edit(world: World, shop: str, id: int, *, lines: Sequence[Change] = (), added: Sequence[Sold] = ()) -> Order:
    """Change what was ordered. Raises `Refused`."""
    with world.happening():
        order = _open(world, shop, id)
        came: dict[int, int] = {}
        gone: list[Back] = []
        for each in lines:
            line = _found(order, each.line)
            more = each.quantity - line.current
            if more > 0:
                _take(world, shop, line.variant, more, line.location)
                line.quantity += more
                line.current += more
                came[line.id] = more
            elif more < 0:
                gone.append(Back(line.id, -more, each.restock))
        for each in added:
            line = _line(world, shop, each, even_if_sold_out=True)
            order.lines.append(line)
            came[line.id] = line.quantity
        order.edited = True
        refund = _taken_back(world, shop, order, gone, None) if gone else None
        _changed(world, shop, order)
        removed = {each.line: each.quantity for each in gone}
        edited = payloads.order_edit(order, world.store.new_id(), order.updated, came, removed)
        world.tell(shop, "orders/edited", edited)
        if refund:
            world.tell(shop, "refunds/create", payloads.refund(order, refund))
        return order


def send(world: World, shop: str, id: int) -> Order:
    """Send everything that is left of an order. Raises `Refused`."""
    with world.happening():
        order = _open(world, shop, id)
        for line in order.lines:
            _send(world, shop, line)
        _changed(world, shop, order)
        world.tell(shop, "orders/fulfilled", payloads.order(order))
        return order


def refund(world: World, shop: str, id: int, back: Sequence[Back], *, location: int | None = None) -> Refund:
    """Take units back. Raises `Refused`.

    location    where returned units are put; None: where they were sent from
    """
    with world.happening():
        order = find(world, shop, id)
        refund = _taken_back(world, shop, order, back, location)
        _changed(world, shop, order)
        world.tell(shop, "refunds/create", payloads.refund(order, refund))
        return refund


def cancel(world: World, shop: str, id: int, *, restock: bool = True, reason: str = "CUSTOMER") -> Order:
    """Cancel an order, of which nothing was sent. Raises `Refused`."""
    with world.happening():
        order = _open(world, shop, id)
        if any(each.fulfilled for each in order.lines):
            raise Refused("An order that was sent cannot be cancelled; refund it.")
        back = [Back(each.id, each.current, restock) for each in order.lines if each.current]
        refund = _taken_back(world, shop, order, back, None) if back else None
        order.cancelled = world.now()
        order.cancel_reason = reason
        _changed(world, shop, order)
        world.tell(shop, "orders/cancelled", payloads.order(order))
        if refund:
            world.tell(shop, "refunds/create", payloads.refund(order, refund))
        return order


def delete(world: World, shop: str, id: int) -> None:
    """Delete an order that was cancelled. Raises `Refused`."""
    with world.happening():
        order = find(world, shop, id)
        if order.cancelled is None:
            raise Refused("Only an order that was cancelled can be deleted.")
        world.store.remove(shop, order)
        world.tell(shop, "orders/delete", {"id": id})


def find(world: World, shop: str, id: int) -> Order:
    """An order of a shop. Raises `Refused`."""
    found = world.store.find(Order, shop, id)
    if found is None:
        raise Refused(f"There is no order {id}.")
    return found


def _open(world: World, shop: str, id: int) -> Order:
    order = find(world, shop, id)
    if order.cancelled is not None:
        raise Refused(f"The order {order.name} is cancelled.")
    return order


def _changed(world: World, shop: str, order: Order) -> None:
    order.updated = world.now()
    world.store.put(shop, order)
    world.tell(shop, "orders/updated", payloads.order(order))


def _line(world: World, shop: str, sold: Sold, *, even_if_sold_out: bool) -> Line:
    if sold.quantity < 1:
        raise Refused("At least one unit is sold.")
    variant = shops.find_variant(world, shop, sold.variant)
    location = _source(world, shop, variant, sold)
    level = world.levels.find(shop, variant.item, location)
    bound = variant.tracked and variant.policy == "DENY" and not even_if_sold_out
    if bound and (level is None or level.available < sold.quantity):
        left = level.available if level else 0
        raise Refused(f"{variant.product_title}, {variant.title} is sold out: {left} left, {sold.quantity} wanted.")
    _take(world, shop, variant.id, sold.quantity, location)
    return Line(
        id=world.store.new_id(),
        variant=variant.id,
        title=variant.product_title,
        variant_title=variant.title,
        sku=variant.sku,
        price=variant.price,
        quantity=sold.quantity,
        current=sold.quantity,
        location=location,
    )


def _source(world: World, shop: str, variant: Variant, sold: Sold) -> int:
    """Where a line is sold from."""
    if sold.location is not None:
        return shops.find_location(world, shop, sold.location).id
    online = {each.id for each in world.store.some(Location, shop) if each.active and each.online}
    levels = [each for each in world.levels.of_item(shop, variant.item) if each.location in online]
    if not levels:
        raise Refused(f"{variant.product_title}, {variant.title} is sold at no location.")
    enough = [each for each in levels if each.available >= sold.quantity]
    return (enough or levels)[0].location


def _take(world: World, shop: str, variant_id: int, quantity: int, location: int) -> None:
    variant = shops.find_variant(world, shop, variant_id)
    if variant.tracked:
        shops.move(world, shop, variant.item, location, available=-quantity, committed=quantity)


def _send(world: World, shop: str, line: Line) -> None:
    left = line.current - line.fulfilled
    _put(world, shop, line, committed=-left)
    line.fulfilled = line.current


def _put(
    world: World, shop: str, line: Line, location: int | None = None, *, available: int = 0, committed: int = 0
) -> None:
    """Change the level of a line, as long as its variant is there and counted."""
    variant = world.store.find(Variant, shop, line.variant)
    where = line.location if location is None else location
    if variant and variant.tracked and world.levels.find(shop, variant.item, where):
        shops.move(world, shop, variant.item, where, available=available, committed=committed)


def _taken_back(world: World, shop: str, order: Order, back: Sequence[Back], location: int | None) -> Refund:
    lines: list[RefundLine] = []
    for each in back:
        line = _found(order, each.line)
        if not 0 < each.quantity <= line.current:
            raise Refused(f"Of this line {line.current} units can be taken back.")
        unsent = min(each.quantity, line.current - line.fulfilled)
        for quantity, sent in ((unsent, False), (each.quantity - unsent, True)):
            if quantity:
                lines.append(_back(world, shop, line, quantity, location, sent=sent, restock=each.restock))
    refund = Refund(id=world.store.new_id(), created=world.now(), lines=lines)
    order.refunds.append(refund)
    return refund


def _back(
    world: World, shop: str, line: Line, quantity: int, location: int | None, *, sent: bool, restock: bool
) -> RefundLine:
    kind = (RETURN if sent else CANCEL) if restock else NO_RESTOCK
    where = line.location if location is None or not sent else location
    line.current -= quantity
    if sent:
        line.fulfilled -= quantity
    else:
        _put(world, shop, line, committed=-quantity)
    if restock:
        _put(world, shop, line, where, available=quantity)
    return RefundLine(
        id=world.store.new_id(), line=line.id, quantity=quantity, restock=kind, location=where if restock else None
    )


def _found(order: Order, id: int) -> Line:
    for each in order.lines:
        if each.id == id:
            return each
    raise Refused(f"The order {order.name} has no line {id}.")
