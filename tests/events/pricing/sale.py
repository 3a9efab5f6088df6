"""A sale at a price that moves: its seats, its time, and the history of its price."""

from datetime import timedelta
from typing import Any

from holdfast.events.pricing.model import current_price
from holdfast.events.pricing.operations import update_prices
from tests.events.clock import pass_by
from tests.helpers.events_service import Client, Service

DYNAMIC = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000}
DAY = timedelta(days=1)

Change = tuple[str, int | None, int]


class Sale:
    """An event with a dynamic price, of 10 seats and 100 days unless the fields say otherwise."""

    def __init__(self, service: Service, ada: Client, event: dict[str, Any]) -> None:
        self.service = service
        self.ada = ada
        self.id: int = event["id"]
        self.address = f"/api/events/{self.id}"

    async def register(self, *names: str, settle: bool = True) -> list[str]:
        polls = [await self.ada.register(self.id, email=f"{name}@example.com") for name in names]
        if settle:
            await self.service.settle()
        return polls

    async def days(self, days: float) -> None:
        """Let time pass, without a tick."""
        await pass_by(self.service, self.id, days * DAY)

    async def tick(self) -> int:
        return await self.service.database.transact(update_prices)

    async def patch(self, **fields: Any) -> None:
        answer = await self.ada.patch(self.address, {"event": fields})
        assert answer.status_code == 200, answer.text

    async def price(self) -> int:
        return (await self.ada.get(self.address)).json()["data"]["current_price"]

    async def history(self) -> list[Change]:
        """Every change, the oldest first."""
        changes = (await self.ada.get(f"{self.address}/price_history")).json()["data"]
        return [(change["reason"], change["original_price"], change["new_price"]) for change in reversed(changes)]

    async def news(self) -> list[Change]:
        """Every change since the beginning."""
        return (await self.history())[1:]

    async def by_policy(self) -> int:
        """What the policy says the price is now."""
        [row] = await self.service.run_sql(
            "select price, min_price, max_price, capacity, registered_count, inserted_at, clock_timestamp(), datetime,"
            " currency"
            "  from events where id = %(id)s",
            id=self.id,
        )
        names = ("price", "min_price", "max_price", "capacity", "registered", "created", "now", "datetime", "currency")
        return current_price(**dict(zip(names, row, strict=True)))


async def open_sale(service: Service, ada: Client | None = None, **fields: Any) -> Sale:
    ada = ada or await service.organizer()
    [(starts,)] = await service.run_sql("select now() + interval '100 days'")
    event = await ada.create_event(**{**DYNAMIC, "capacity": 10, "datetime": starts.isoformat(), **fields})
    return Sale(service, ada, event)
