"""A sale of two weeks, run through the service: its price history is the table of `docs/events/prices.md`.

`python -m tests.docs.sale` writes the tables of the page.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.events.pricing.model import current_price
from holdfast.events.service import EVENTS
from tests.events.pricing.sale import DAY, DYNAMIC, Sale, open_sale
from tests.helpers.data_directories import migrated_database, scratch_directory
from tests.helpers.events_service import Service, running_events, unlimited

PAGE = Path(__file__).parents[2] / "docs/events/prices.md"
LENGTH = 14
BOUNDS = {name: int(DYNAMIC[name]) for name in ("min_price", "max_price")}

STORY: Sequence[tuple[int, str, int | Mapping[str, int]]] = [
    (1, "register", 3),
    (6, "register", 1),
    (7, "edit", {"price": 2800}),
    (8, "cancel", 1),
    (9, "register", 4),
    (10, "edit", {"capacity": 14}),
    (12, "register", 2),
    (13, "register", 5),
]
"""What happens on which day, at noon."""

TOLD = {
    (0, "init"): "published",
    (1, "registration"): "the newsletter: 3 register",
    (6, "registration"): "1 registers",
    (7, "manual_change"): "the organizer asks 28.00",
    (8, "registration"): "1 cancels",
    (9, "registration"): "a friendly review: 4 register",
    (10, "other"): "a larger room: 2 more seats",
    (12, "registration"): "2 register",
    (13, "registration"): "the last 5 go",
}


class SaleRow(NamedTuple):
    """An entry of the history, and the state of the sale that it was made in."""

    day: float
    reason: str
    price: int
    seats: int
    capacity: int
    chosen_price: int

    @property
    def by_policy(self) -> int:
        """What the policy says the price is in this state."""
        created = datetime(2027, 3, 1, tzinfo=UTC)
        return current_price(
            price=self.chosen_price,
            **BOUNDS,
            capacity=self.capacity,
            registered=self.seats,
            created=created,
            now=created + self.day * DAY,
            datetime=created + LENGTH * DAY,
            currency="USD",
        )


async def history(service: Service) -> list[SaleRow]:
    """The price history of the sale, the oldest entry first, from a real run."""
    [(starts,)] = await service.run_sql("select now() + make_interval(days => %(days)s)", days=LENGTH)
    return [row async for row in _run_sale(await open_sale(service, capacity=12, datetime=starts.isoformat()))]


async def _run_sale(sale: Sale) -> AsyncIterator[SaleRow]:
    known, polls = 0, list[str]()

    async def news(day: float) -> list[SaleRow]:
        nonlocal known
        entries: list[dict[str, Any]] = (await sale.ada.get(f"{sale.address}/price_history")).json()["data"]
        event = (await sale.ada.get(sale.address)).json()["data"]
        fresh, known = entries[: len(entries) - known], len(entries)
        state = event["registration_count"], event["capacity"], event["price"]
        return [SaleRow(day, change["reason"], change["new_price"], *state) for change in reversed(fresh)]

    for row in await news(0):
        yield row
    for day in range(1, LENGTH):
        # The service looks once a minute; this sale is looked at once a day.
        await sale.days(0.5)
        await sale.tick()
        for row in await news(day - 0.5):
            yield row
        for what, how in ((what, how) for when, what, how in STORY if when == day):
            match what, how:
                case "register", int():
                    polls += await sale.register(*(f"day{day}number{number}" for number in range(how)))
                case "cancel", int():
                    for _ in range(how):
                        await sale.ada.delete(polls.pop())
                case "edit", Mapping():
                    await sale.patch(**how)
                case _:
                    raise ValueError(f"{what} is not a step of the sale")
            for row in await news(day - 0.5):
                yield row
        await sale.days(0.5)


def sale_table(rows: Sequence[SaleRow]) -> str:
    """What happened, each with the price before, which the last tick made, and after it."""
    lines = ["| day | | seats taken | reason | price before | after |", "|--:|---|--:|---|--:|--:|"]
    price = ""
    for row in rows:
        day, before, price = round(row.day + 0.5) if row.day else 0, price, f"{row.price / 100:.2f}"
        if row.reason != "tick":
            lines.append(
                f"| {day} | {TOLD[day, row.reason]} | {row.seats} of {row.capacity} | `{row.reason}` "
                f"| {before} | {price} |"
            )
    return "\n".join(lines)


def policy_table() -> str:
    """What a seat costs, by how many of 100 seats are taken and how much of the time has gone."""
    times = (0, 25, 50, 75, 99)
    lines = [f"| seats taken | {' | '.join(f'{time} %' for time in times)} |", f"|--:|{'--:|' * len(times)}"]
    for seats in (0, 25, 50, 75, 90, 99, 100):
        prices = [SaleRow(LENGTH * time / 100, "", 0, seats, 100, 2500).by_policy for time in times]
        lines.append(f"| {seats} | {' | '.join(f'{price / 100:.2f}' for price in prices)} |")
    return "\n".join(lines)


def page_with_tables(tables: Mapping[str, str]) -> str:
    """The page with these tables, each between comments that name it."""
    page = PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        before, heading, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        assert end, f"{PAGE.name} has no place for the table {name}"
        page = f"{before}{heading}{table}\n{end}{after}"
    return page


async def write() -> None:
    directory = scratch_directory()
    async with running_events(unlimited(migrated_database(EVENTS, directory), directory)) as service:
        rows = await history(service)
    PAGE.write_text(page_with_tables({"policy": policy_table(), "sale": sale_table(rows)}), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(write())
