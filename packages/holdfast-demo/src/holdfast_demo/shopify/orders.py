"""Actions of customers and merchants on orders. Levels follow: sold units are committed, returned units come back."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast_demo.shopify import payloads, shops
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import LineItem, Location, Order, Refund, RefundLineItem, Variant
from holdfast_demo.shopify.platform_state import PlatformState

CANCEL, RETURN, NO_RESTOCK = "CANCEL", "RETURN", "NO_RESTOCK"


class SaleLine(NamedTuple):
    """A sale of units of a variant, from a location; None: the first that sells online and has them all."""

    variant: int
    quantity: int
    location: int | None = None


class LineEdit(NamedTuple):
    """The new quantity of a line, and whether removed units go back into stock."""

    line: int
    quantity: int
    restock: bool = True


class LineReturn(NamedTuple):
    """Units of a line that are taken back, and whether they go back into stock."""

    line: int
    quantity: int
    restock: bool = True


def sell(
    platform: PlatformState,
    shop: str,
    sold: Sequence[SaleLine],
    *,
    even_if_sold_out: bool = False,
    till: int | None = None,
) -> Order:
    """A new order. Raises `ShopifyRefusal`.

    even_if_sold_out   sell below zero, as when two customers pay for the last unit at the same time
    till               the location of the till at which it is sold and handed over
    """
    if not sold:
        raise ShopifyRefusal("An order has at least one line.")
    with platform.happening():
        now = platform.now()
        owner = platform.shop(shop)
        owner.orders += 1
        platform.store.put(shop, owner)
        order = Order(number=1000 + owner.orders, lines=[], retail=till, created=now, updated=now)
        for sale in sold:
            where = till if sale.location is None else sale.location
            line = _sell_line(platform, shop, sale._replace(location=where), even_if_sold_out=even_if_sold_out)
            order.lines.append(line)
            if till:
                _send_line(platform, shop, line)
        platform.store.put(shop, order)
        platform.send_message(shop, "orders/create", payloads.order(order))
        return order


def edit(
    platform: PlatformState, shop: str, id: int, *, lines: Sequence[LineEdit] = (), added: Sequence[SaleLine] = ()
) -> Order:
    """Change what was ordered. Raises `ShopifyRefusal`."""
    with platform.happening():
        order = _open(platform, shop, id)
        came: dict[int, int] = {}
        gone: list[LineReturn] = []
        for change in lines:
            line = _find_line(order, change.line)
            more = change.quantity - line.current
            if more > 0:
                _take(platform, shop, line.variant, more, line.location)
                line.quantity += more
                line.current += more
                came[line.id] = more
            elif more < 0:
                gone.append(LineReturn(line.id, -more, change.restock))
        for sale in added:
            line = _sell_line(platform, shop, sale, even_if_sold_out=True)
            order.lines.append(line)
            came[line.id] = line.quantity
        order.edited = True
        refund = _take_back(platform, shop, order, gone, None) if gone else None
        _store_change(platform, shop, order)
        removed_quantities = {removal.line: removal.quantity for removal in gone}
        edited = payloads.order_edit(order, platform.store.new_id(), order.updated, came, removed_quantities)
        platform.send_message(shop, "orders/edited", edited)
        if refund:
            platform.send_message(shop, "refunds/create", payloads.refund(order, refund))
        return order


def send(platform: PlatformState, shop: str, id: int) -> Order:
    """Send all unsent units of an order. Raises `ShopifyRefusal`."""
    with platform.happening():
        order = _open(platform, shop, id)
        for line in order.lines:
            _send_line(platform, shop, line)
        _store_change(platform, shop, order)
        platform.send_message(shop, "orders/fulfilled", payloads.order(order))
        return order


def refund(
    platform: PlatformState, shop: str, id: int, back: Sequence[LineReturn], *, location: int | None = None
) -> Refund:
    """Take units back. Raises `ShopifyRefusal`.

    location    the location that returned units go to; None: the one that they were sent from
    """
    with platform.happening():
        order = find(platform, shop, id)
        refund = _take_back(platform, shop, order, back, location)
        _store_change(platform, shop, order)
        platform.send_message(shop, "refunds/create", payloads.refund(order, refund))
        return refund


def cancel(platform: PlatformState, shop: str, id: int, *, restock: bool = True, reason: str = "CUSTOMER") -> Order:
    """Cancel an order of which no unit was sent. Raises `ShopifyRefusal`."""
    with platform.happening():
        order = _open(platform, shop, id)
        if any(line.fulfilled for line in order.lines):
            raise ShopifyRefusal("An order that was sent cannot be cancelled; refund it.")
        back = [LineReturn(line.id, line.current, restock) for line in order.lines if line.current]
        refund = _take_back(platform, shop, order, back, None) if back else None
        order.cancelled = platform.now()
        order.cancel_reason = reason
        _store_change(platform, shop, order)
        platform.send_message(shop, "orders/cancelled", payloads.order(order))
        if refund:
            platform.send_message(shop, "refunds/create", payloads.refund(order, refund))
        return order


def delete(platform: PlatformState, shop: str, id: int) -> None:
    """Delete an order that was cancelled. Raises `ShopifyRefusal`."""
    with platform.happening():
        order = find(platform, shop, id)
        if order.cancelled is None:
            raise ShopifyRefusal("Only an order that was cancelled can be deleted.")
        platform.store.remove(shop, order)
        platform.send_message(shop, "orders/delete", {"id": id})


def find(platform: PlatformState, shop: str, id: int) -> Order:
    """An order of a shop. Raises `ShopifyRefusal`."""
    order = platform.store.find(Order, shop, id)
    if order is None:
        raise ShopifyRefusal(f"There is no order {id}.")
    return order


def _open(platform: PlatformState, shop: str, id: int) -> Order:
    order = find(platform, shop, id)
    if order.cancelled is not None:
        raise ShopifyRefusal(f"The order {order.name} is cancelled.")
    return order


def _store_change(platform: PlatformState, shop: str, order: Order) -> None:
    order.updated = platform.now()
    platform.store.put(shop, order)
    platform.send_message(shop, "orders/updated", payloads.order(order))


def _sell_line(platform: PlatformState, shop: str, sold: SaleLine, *, even_if_sold_out: bool) -> LineItem:
    if sold.quantity < 1:
        raise ShopifyRefusal("At least one unit is sold.")
    variant = shops.find_variant(platform, shop, sold.variant)
    location = _source(platform, shop, variant, sold)
    level = platform.levels.find(shop, variant.item, location)
    bound = variant.tracked and variant.policy == "DENY" and not even_if_sold_out
    if bound and (level is None or level.available < sold.quantity):
        units_left = level.available if level else 0
        name = f"{variant.product_title}, {variant.title}"
        raise ShopifyRefusal(
            f"{name}: only {units_left} left, not {sold.quantity}." if units_left > 0 else f"{name} is sold out."
        )
    _take(platform, shop, variant.id, sold.quantity, location)
    return LineItem(
        id=platform.store.new_id(),
        variant=variant.id,
        title=variant.product_title,
        variant_title=variant.title,
        sku=variant.sku,
        price=variant.price,
        quantity=sold.quantity,
        current=sold.quantity,
        location=location,
    )


def _source(platform: PlatformState, shop: str, variant: Variant, sold: SaleLine) -> int:
    """The location that a line is sold from."""
    if sold.location is not None:
        return shops.find_location(platform, shop, sold.location).id
    online = {location.id for location in platform.store.select(Location, shop) if location.active and location.online}
    levels = [level for level in platform.levels.of_item(shop, variant.item) if level.location in online]
    if not levels:
        raise ShopifyRefusal(f"{variant.product_title}, {variant.title} is sold at no location.")
    enough = [level for level in levels if level.available >= sold.quantity]
    return (enough or levels)[0].location


def _take(platform: PlatformState, shop: str, variant_id: int, quantity: int, location: int) -> None:
    variant = shops.find_variant(platform, shop, variant_id)
    if variant.tracked:
        _stock_if_missing(platform, shop, variant, location)
        shops.move(platform, shop, variant.item, location, available=-quantity, committed=quantity)


def _stock_if_missing(platform: PlatformState, shop: str, variant: Variant, location: int) -> None:
    """Stock a variant at a location where it is sold or returned: the platform does that by itself."""
    if platform.levels.find(shop, variant.item, location) is None:
        shops.stock(platform, shop, variant.item, location)


def _send_line(platform: PlatformState, shop: str, line: LineItem) -> None:
    unsent_units = line.current - line.fulfilled
    _change_level(platform, shop, line, committed=-unsent_units)
    line.fulfilled = line.current


def _change_level(
    platform: PlatformState,
    shop: str,
    line: LineItem,
    location: int | None = None,
    *,
    available: int = 0,
    committed: int = 0,
) -> None:
    """Change the level of a line, if its variant exists and is counted."""
    variant = platform.store.find(Variant, shop, line.variant)
    where = line.location if location is None else location
    if variant and variant.tracked and platform.levels.find(shop, variant.item, where):
        shops.move(platform, shop, variant.item, where, available=available, committed=committed)


def _take_back(
    platform: PlatformState, shop: str, order: Order, back: Sequence[LineReturn], location: int | None
) -> Refund:
    lines: list[RefundLineItem] = []
    for part in back:
        line = _find_line(order, part.line)
        if not 0 < part.quantity <= line.current:
            raise ShopifyRefusal(f"Of this line {line.current} units can be taken back.")
        unsent = min(part.quantity, line.current - line.fulfilled)
        for quantity, is_fulfilled in ((unsent, False), (part.quantity - unsent, True)):
            if quantity:
                lines.append(
                    _refund_line(platform, shop, line, quantity, location, is_sent=is_fulfilled, restock=part.restock)
                )
    refund = Refund(id=platform.store.new_id(), created=platform.now(), lines=lines)
    order.refunds.append(refund)
    return refund


def _refund_line(
    platform: PlatformState,
    shop: str,
    line: LineItem,
    quantity: int,
    location: int | None,
    *,
    is_sent: bool,
    restock: bool,
) -> RefundLineItem:
    kind = (RETURN if is_sent else CANCEL) if restock else NO_RESTOCK
    where = line.location if location is None or not is_sent else location
    line.current -= quantity
    if is_sent:
        line.fulfilled -= quantity
    else:
        _change_level(platform, shop, line, committed=-quantity)
    if restock:
        variant = platform.store.find(Variant, shop, line.variant)
        if variant and variant.tracked:
            _stock_if_missing(platform, shop, variant, where)
        _change_level(platform, shop, line, where, available=quantity)
    return RefundLineItem(
        id=platform.store.new_id(), line=line.id, quantity=quantity, restock=kind, location=where if restock else None
    )


def _find_line(order: Order, id: int) -> LineItem:
    for line in order.lines:
        if line.id == id:
            return line
    raise ShopifyRefusal(f"The order {order.name} has no line {id}.")
