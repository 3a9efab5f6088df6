"""Orders as a customer and a merchant make them, and the webhooks that tell of them."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.platform_webhooks import deliver, handle

_numbers = itertools.count(5001)


def _number(gid: str) -> int:
    return int(gid.rpartition("/")[2])


class PlatformOrder:
    """An order, as the platform tells of it at any moment. Each change moves its `updated_at` by a second.

    lines       by number of the line: the variant, and how many were ordered and are not taken back
    """

    def __init__(self, *sold: tuple[str, int], placed_at: datetime | None = None, **fields: Any) -> None:
        self.id = next(_numbers)
        self.placed_at = placed_at or datetime.now(UTC)
        self.updated_at = self.placed_at
        self.lines: dict[int, list[Any]] = {}
        self.refunds: list[dict[str, Any]] = []
        self.fields = fields
        for gid, quantity in sold:
            self.add(gid, quantity)

    @property
    def gid(self) -> str:
        return f"gid://shopify/Order/{self.id}"

    def add(self, gid: str | None, quantity: int) -> int:
        """A further line. Returns its number."""
        line = next(_numbers)
        self.lines[line] = [gid, quantity, quantity]
        return line

    def more(self, line: int, quantity: int) -> None:
        """Order more units of a line."""
        self.lines[line][1] += quantity
        self.lines[line][2] += quantity

    def back(self, line: int, quantity: int, kind: str = "return", location: int | None = 1) -> dict[str, Any]:
        """Take units of a line back. Returns the refund."""
        self.lines[line][2] -= quantity
        refund = {
            "id": next(_numbers),
            "order_id": self.id,
            "created_at": self.later().isoformat(),
            "refund_line_items": [
                {"line_item_id": line, "quantity": quantity, "restock_type": kind, "location_id": location}
            ],
        }
        self.refunds.append(refund)
        return refund

    def cancel(self, kind: str = "cancel") -> None:
        for line, (_, _, current) in [*self.lines.items()]:
            if current:
                self.back(line, current, kind)
        self.fields["cancelled_at"] = self.updated_at.isoformat()

    def later(self, seconds: float = 1) -> datetime:
        self.updated_at += timedelta(seconds=seconds)
        return self.updated_at

    def payload(self, **fields: Any) -> dict[str, Any]:
        """What a webhook says of it now."""
        return {
            "id": self.id,
            "admin_graphql_api_id": self.gid,
            "name": f"#{self.id}",
            "created_at": self.placed_at.isoformat(timespec="seconds"),
            "updated_at": self.updated_at.isoformat(timespec="seconds"),
            "email": "ada@example.com",
            "line_items": [
                {
                    "id": line,
                    "variant_id": gid and _number(gid),
                    "quantity": quantity,
                    "current_quantity": current,
                    "price": "19.00",
                }
                for line, (gid, quantity, current) in self.lines.items()
            ],
            "refunds": [*self.refunds],
            **self.fields,
            **fields,
        }


async def deliver_orders(inventory: Inventory, *payloads: Any, shop: Shop, topic: str = "orders/updated") -> None:
    """Deliver webhooks about orders, one after the other, and handle each."""
    for payload in payloads:
        assert (await deliver(shop, topic, payload)).status_code == 200
        assert await handle(inventory) == 1
    assert await delivery_errors(inventory) == []


async def delivery_errors(inventory: Inventory) -> list[str]:
    """Why deliveries could not be handled."""
    return [
        error for (error,) in await inventory.sql("select error from webhooks where handled_at is null order by id")
    ]
