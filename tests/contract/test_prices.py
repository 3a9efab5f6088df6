"""Prices fit their mode, and their history is kept."""

from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import Event, PriceChange, failing_fields, one, refusal, unpaged_objects
from tests.contract.steps import refused_event
from tests.helpers.events_service import Client, Service, event_fields

FREE = {"pricing_mode": "free", "price": 0}
FIXED = {"pricing_mode": "fixed", "price": 2500}
DYNAMIC = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000}


async def history(client: Client, event: dict[str, Any]) -> list[PriceChange]:
    return unpaged_objects(await client.get(f"/api/events/{event['id']}/price_history"), PriceChange)


@requirement("events.create.price-fixed")
@pytest.mark.parametrize("price", [1, 2500])
async def test_a_fixed_price_of_at_least_1_is_taken(service: Service, price: int) -> None:
    event = await (await service.organizer()).create_event(pricing_mode="fixed", price=price)

    assert (event["price"], event["current_price"]) == (price, price)
    assert (event["min_price"], event["max_price"]) == (None, None)


@requirement("events.create.price-fixed")
@pytest.mark.parametrize("price", [0, -1])
async def test_a_fixed_price_below_1_is_refused(service: Service, price: int) -> None:
    assert await refused_event(await service.organizer(), pricing_mode="fixed", price=price) == {"price"}


@requirement("events.create.price-fixed", "events.create.defaults")
async def test_an_event_without_a_mode_needs_a_price_of_at_least_1(service: Service) -> None:
    ada = await service.organizer()
    fields = event_fields(price=0)
    del fields["pricing_mode"]

    assert failing_fields(await ada.post("/api/events", {"event": fields})) == {"price"}


@requirement("events.create.price-free")
async def test_a_free_event_has_the_price_0_and_no_current_price(service: Service) -> None:
    event = await (await service.organizer()).create_event(**FREE)

    assert (event["price"], event["current_price"]) == (0, None)


@requirement("events.create.price-free")
@pytest.mark.parametrize("price", [1, -1])
async def test_a_free_event_with_a_price_is_refused(service: Service, price: int) -> None:
    assert await refused_event(await service.organizer(), pricing_mode="free", price=price) == {"price"}


@requirement("events.create.price-dynamic")
@pytest.mark.parametrize("price", [1000, 1001, 5999, 6000])
async def test_a_dynamic_price_starts_anywhere_within_its_bounds(service: Service, price: int) -> None:
    event = await (await service.organizer()).create_event(**DYNAMIC | {"price": price})

    assert (event["price"], event["current_price"]) == (price, price)
    assert (event["min_price"], event["max_price"]) == (1000, 6000)


@requirement("events.create.price-dynamic")
async def test_the_bounds_of_a_dynamic_price_may_be_the_same(service: Service) -> None:
    same = {"price": 1000, "min_price": 1000, "max_price": 1000}
    event = await (await service.organizer()).create_event(**DYNAMIC | same)

    assert (event["current_price"], event["min_price"], event["max_price"]) == (1000, 1000, 1000)


@requirement("events.create.price-dynamic")
@pytest.mark.parametrize("price", [999, 6001])
async def test_a_dynamic_price_does_not_start_outside_its_bounds(service: Service, price: int) -> None:
    assert await refused_event(await service.organizer(), **DYNAMIC | {"price": price}) == {"price"}


@requirement("events.create.price-dynamic")
@pytest.mark.parametrize("missing", [{"min_price"}, {"max_price"}, {"min_price", "max_price"}])
async def test_a_dynamic_price_without_a_bound_is_refused(service: Service, missing: set[str]) -> None:
    fields = DYNAMIC | dict.fromkeys(missing)

    assert await refused_event(await service.organizer(), **fields) == missing


@requirement("events.create.price-dynamic")
async def test_bounds_that_contradict_each_other_are_refused(service: Service) -> None:
    assert await refused_event(await service.organizer(), **DYNAMIC | {"min_price": 6000, "max_price": 1000}) & {
        "min_price",
        "max_price",
    }


@requirement("events.create.price-dynamic")
@pytest.mark.parametrize("name", ["min_price", "max_price"])
@pytest.mark.parametrize("value", ["1000", 10.5, -1])
async def test_a_bound_that_is_no_amount_of_money_is_refused(service: Service, name: str, value: Any) -> None:
    assert await refused_event(await service.organizer(), **DYNAMIC | {name: value}) == {name}


@requirement("events.create.price-fixed", "events.create.price-free")
@pytest.mark.parametrize("mode", ["Free", "auction", "", 0])
async def test_a_pricing_mode_outside_the_list_is_refused(service: Service, mode: Any) -> None:
    assert await refused_event(await service.organizer(), pricing_mode=mode) == {"pricing_mode"}


@requirement("events.update.price", "events.update")
@pytest.mark.parametrize("fields", [FIXED, DYNAMIC])
async def test_a_changed_price_is_the_current_price(service: Service, fields: dict[str, Any]) -> None:
    ada = await service.organizer()
    before = await ada.create_event(**fields)

    response = await ada.patch(f"/api/events/{before['id']}", {"event": {"price": 3000}})

    one(response, Event)
    assert response.json()["data"] == before | {"price": 3000, "current_price": 3000}


@requirement("events.update.price")
@pytest.mark.parametrize(
    ("fields", "change"),
    [
        (FREE, {"price": 1}),
        (FIXED, {"price": 0}),
        (DYNAMIC, {"price": 999}),
        (DYNAMIC, {"price": 6001}),
        (DYNAMIC, {"min_price": None}),
        (DYNAMIC, {"max_price": None}),
    ],
)
async def test_a_change_of_price_must_fit_the_mode(
    service: Service, fields: dict[str, Any], change: dict[str, Any]
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**fields)

    assert failing_fields(await ada.patch(f"/api/events/{event['id']}", {"event": change})) == set(change)
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"] == event
    assert len(await history(ada, event)) == 1


@requirement("events.update.price", "events.create.price-dynamic")
async def test_new_bounds_hold_the_current_price(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**DYNAMIC)

    body = {"event": {"price": 1500, "max_price": 2000}}
    after = one(await ada.patch(f"/api/events/{event['id']}", body), Event)

    assert (after.price, after.min_price, after.max_price) == (1500, 1000, 2000)
    assert after.current_price == 1500


@requirement("events.price-history", "events.price-history.init")
@pytest.mark.parametrize("fields", [FREE, FIXED, DYNAMIC])
async def test_the_history_starts_with_the_price_on_creation(service: Service, fields: dict[str, Any]) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**fields)

    [init] = await history(ada, event)

    assert (init.reason, init.event_id) == ("init", event["id"])
    assert (init.original_price, init.new_price) == (None, fields["price"])


@requirement("events.price-history", "events.price-history.init")
async def test_the_history_is_newest_first(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**FIXED)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"price": 3000}})
    await ada.patch(f"/api/events/{event['id']}", {"event": {"price": 100}})

    changes = await history(ada, event)

    assert [(change.reason, change.original_price, change.new_price) for change in changes] == [
        ("manual_change", 3000, 100),
        ("manual_change", 2500, 3000),
        ("init", None, 2500),
    ]
    assert [change.timestamp for change in changes] == sorted((change.timestamp for change in changes), reverse=True)
    assert len({change.id for change in changes}) == 3


@requirement("events.price-history.init")
@pytest.mark.parametrize("change", [{"title": "Portraits"}, {"price": 2500}, {}])
async def test_a_change_that_leaves_the_price_adds_nothing_to_its_history(
    service: Service, change: dict[str, Any]
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**FIXED)

    await ada.patch(f"/api/events/{event['id']}", {"event": change})

    assert [change.reason for change in await history(ada, event)] == ["init"]


@requirement("events.price-history")
async def test_a_price_history_has_changes_of_one_event_only(service: Service) -> None:
    ada = await service.organizer()
    first, second = await ada.create_event(**FIXED), await ada.create_event(**FIXED)
    await ada.patch(f"/api/events/{second['id']}", {"event": {"price": 1}})

    assert [change.event_id for change in await history(ada, first)] == [first["id"]]


@requirement("events.price-history")
async def test_an_event_that_does_not_exist_has_no_history(service: Service) -> None:
    ada = await service.organizer()

    assert refusal(await ada.get("/api/events/4711/price_history")) == (404, "not_found")
