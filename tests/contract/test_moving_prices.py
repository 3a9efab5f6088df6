"""Dynamic prices move, within their bounds, for the reasons the history may name."""

from datetime import timedelta
from typing import Any

from holdfast.events.pricing.operations import update_prices
from tests.contract.requirements import requirement
from tests.contract.shapes import Event, PriceChange, Registration, one, unpaged_objects
from tests.contract.steps import register
from tests.events.clock import pass_by
from tests.helpers.events_service import Client, Service

DYNAMIC = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000, "capacity": 5}


async def current_price(client: Client, event: dict[str, Any]) -> int | None:
    return one(await client.get(f"/api/events/{event['id']}"), Event).current_price


@requirement("events.price-history.reasons", "events.price-history")
async def test_the_price_history_names_the_reason_of_each_change(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**DYNAMIC)
    address = f"/api/events/{event['id']}"
    await register(service, ada, event, "ann")
    await pass_by(service, event["id"], timedelta(days=20))
    await service.database.transact(update_prices)
    await ada.patch(address, {"event": {"price": 3000}})
    await ada.patch(address, {"event": {"capacity": 9}})

    changes = unpaged_objects(await ada.get(f"{address}/price_history"), PriceChange)

    assert [change.reason for change in changes] == ["other", "manual_change", "tick", "registration", "init"]
    assert [change.original_price for change in changes[:-1]] == [change.new_price for change in changes[1:]]
    assert changes[-1].original_price is None
    assert changes[0].new_price == await current_price(ada, event)


@requirement("events.current-price.dynamic", "events.get")
async def test_a_dynamic_price_rises_to_its_upper_bound_as_seats_go(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**DYNAMIC)
    seen = [await current_price(ada, event)]
    for name in ("ann", "bob", "cal", "dee", "eve"):
        await register(service, ada, event, name)
        seen.append(await current_price(ada, event))

    assert seen == [2500, 3200, 3900, 4600, 5300, 6000]


@requirement("events.current-price.dynamic")
async def test_a_dynamic_price_falls_to_its_lower_bound_without_registrations(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**DYNAMIC)
    seen: list[int | None] = []
    for days in (10, 10, 9.999):
        await pass_by(service, event["id"], timedelta(days=days))
        await service.database.transact(update_prices)
        seen.append(await current_price(ada, event))

    assert seen == [2000, 1500, 1000]


@requirement("registrations.create.amount")
async def test_a_registration_without_an_amount_pays_the_current_price(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**DYNAMIC)
    prices: list[int | None] = []
    paid: list[int] = []
    for name in ("ann", "bob", "cal"):
        prices.append(await current_price(ada, event))
        [poll] = await register(service, ada, event, name)
        paid.append(one(await ada.get(poll), Registration).amount_paid)

    assert paid == prices
    assert len(set(paid)) == 3
