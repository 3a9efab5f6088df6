"""Every value of every member of a payment object, and every combination of them: a walk through all states.

The price of an event, how far it has got, and how far its organizer has got with the payment processor are combined in
every way. Four objects occur, and no others.
"""

from collections import defaultdict
from itertools import product
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec

from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import Event, Payment, objects_on_page, one
from tests.contract.steps import yesterday
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.payments import open_payment_scene

FREE = Payment(
    status="not_required",
    status_reason="free_event",
    platform_fee_percent=0,
    agent_payment_required=False,
    event_is_paid=False,
    platform_fee_collection="none",
    platform_fee_source=None,
    student_payment_processor=None,
    student_payment_required=False,
)
REQUIRED = Payment(
    status="required",
    status_reason="organizer_processor_ready",
    platform_fee_percent=5,
    agent_payment_required=False,
    event_is_paid=True,
    platform_fee_collection="application_fee_amount",
    platform_fee_source="student_payment",
    student_payment_processor="connect_destination_charge",
    student_payment_required=True,
)
NOT_SET_UP = msgspec.structs.replace(REQUIRED, status="unavailable", status_reason="organizer_processor_not_configured")
NOT_PAYABLE = msgspec.structs.replace(REQUIRED, status="unavailable")
"""Everything is set up, and no card can be charged so little."""

VALUES: dict[str, set[Any]] = {
    "status": {"not_required", "required", "unavailable"},
    "status_reason": {"free_event", "organizer_processor_ready", "organizer_processor_not_configured"},
    "platform_fee_percent": {0, 5},
    "agent_payment_required": {False},
    "event_is_paid": {True, False},
    "platform_fee_collection": {"application_fee_amount", "none"},
    "platform_fee_source": {"student_payment", None},
    "student_payment_processor": {"connect_destination_charge", None},
    "student_payment_required": {True, False},
}
"""What the contract allows; the percentage is that of the settings."""

PRICES: dict[str, dict[str, Any]] = {
    "free": {"pricing_mode": "free", "price": 0},
    "fixed": {"pricing_mode": "fixed", "price": 50},
    "moving": {"pricing_mode": "dynamic", "price": 2500, "min_price": 1, "max_price": 6000},
    "too low": {"pricing_mode": "fixed", "price": 49},
    "too low, moving": {"pricing_mode": "dynamic", "price": 20, "min_price": 1, "max_price": 49},
}
EVENT_STATUSES: dict[str, dict[str, Any]] = {
    "open": {},
    "with a waiting list": {"capacity": 1, "waitinglist_capacity": 1},
    "full": {"capacity": 1},
    "past": {"datetime": yesterday()},
    "cancelled": {},
}
OPEN = {"open", "with a waiting list"}

EXPECTED = {
    **{("free", is_ready): FREE for is_ready in (True, False)},
    **{(price, False): NOT_SET_UP for price in PRICES if price != "free"},
    **{(price, True): REQUIRED for price in ("fixed", "moving")},
    **{(price, True): NOT_PAYABLE for price in ("too low", "too low, moving")},
}
"""The object for a price, and for whether the organizer can be paid out. Nothing else matters."""

Places = dict[tuple[str, str], int]


async def create_all(service: Service, ada: Client) -> Places:
    """An event of every price and event_status: their ids."""
    ids: Places = {}
    for (price, fields), (event_status, more) in product(PRICES.items(), EVENT_STATUSES.items()):
        id = (await ada.create_event(**fields, **more))["id"]
        ids[price, event_status] = id
        if more.get("capacity"):
            await ada.register(id, email="ann@example.com")
        if event_status == "cancelled":
            await ada.delete(f"/api/events/{id}")
    await service.settle()
    return ids


async def check(ada: Client, ids: Places, *, is_ready: bool) -> list[Payment]:
    """Read all events, and compare each with the table. Returns their payment objects."""
    events = {event.id: event for event in objects_on_page(await ada.get("/api/events?limit=100"), Event)}
    assert events.keys() == set(ids.values())
    for (price, event_status), id in ids.items():
        event, expected = events[id], EXPECTED[price, is_ready]
        assert event.payment == expected, (price, event_status)
        assert event.agent.payment == expected, (price, event_status)
        assert event.agent.agent_payment_required is False
        can_register = event_status in OPEN and expected.status != "unavailable"
        assert event.agent.hosted_registration_ready is can_register, (price, event_status)
        assert one(await ada.get(f"/api/events/{id}"), Event) == event
    return [event.payment for event in events.values()]


@requirement("events.payment.free", "events.payment.paid", "events.payment.ready", "events.agent", "events.agent.ready")
async def test_four_payment_objects_occur_in_all_states_and_no_others(settings: Settings) -> None:
    seen: list[Payment] = []
    async with open_payment_scene(settings) as shop:
        ada = await shop.service.organizer()
        ids = await create_all(shop.service, ada)

        async def look(*, is_ready: bool) -> None:
            await shop.work()
            seen.extend(await check(ada, ids, is_ready=is_ready))
            # The same database, without a key of the payment processor.
            async with running_events(settings) as without:
                seen.extend(await check(Client(without.http, ada.key), ids, is_ready=False))

        await look(is_ready=False)
        link = (await ada.post("/api/stripe/onboarding_link")).json()["data"]
        await look(is_ready=False)
        account = link["stripe_account_id"]
        for change, is_ready in ((shop.processor.finish, True), (shop.processor.restrict, False)):
            change(account)
            assert set(await shop.deliver()) <= {200, 204}
            await look(is_ready=is_ready)

    occurred: defaultdict[str, set[Any]] = defaultdict(set)
    for payment in seen:
        for member, value in msgspec.structs.asdict(payment).items():
            occurred[member].add(value)
    assert occurred == VALUES
    assert {msgspec.json.encode(payment) for payment in seen} == {
        msgspec.json.encode(payment) for payment in (FREE, REQUIRED, NOT_SET_UP, NOT_PAYABLE)
    }


@requirement("events.payment.paid")
async def test_every_answer_with_an_event_has_the_same_payment_object(settings: Settings) -> None:
    async with open_payment_scene(settings) as shop:
        ada = await shop.organizer()
        created = await ada.create_event(**PRICES["fixed"])
        path = f"/api/events/{created['id']}"
        cheaper = (await ada.patch(path, {"event": {"price": 49}})).json()["data"]
        dearer = (await ada.patch(path, {"event": {"price": 60}})).json()["data"]
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        arguments = {"name": "get_event", "arguments": {"event_id": created["id"]}}
        tool_answer = (await ada.post("/mcp", {**call, "params": arguments})).json()["result"]["structuredContent"]
        cancelled = (await ada.delete(path)).json()["data"]

    expected = [REQUIRED, NOT_PAYABLE, REQUIRED, REQUIRED, REQUIRED]
    answers = [created, cheaper, dearer, tool_answer, cancelled]
    assert [msgspec.convert(answer["payment"], Payment) for answer in answers] == expected
    assert [msgspec.convert(answer["agent"]["payment"], Payment) for answer in answers] == expected


@requirement("events.payment.ready")
async def test_the_platform_fee_percent_is_that_of_the_settings(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"platform_fee_percent": 12})) as service:
        ada = await service.organizer()
        percents = [(await ada.create_event(**PRICES[name]))["payment"]["platform_fee_percent"] for name in PRICES]

    assert percents == [0, 12, 12, 12, 12]


@requirement("events.payment.free", "events.payment.paid", "events.payment.ready")
def test_the_tested_payment_objects_have_every_value_that_the_contract_names() -> None:
    named = {member: allowed_values(kind) for member, kind in get_type_hints(Payment).items() if get_args(kind)}

    assert {member: VALUES[member] for member in named} == named
    assert VALUES.keys() == get_type_hints(Payment).keys()


def allowed_values(kind: Any) -> set[Any]:
    """The values of a type that names them, with or without None."""
    parts = [value for member in get_args(kind) for value in get_args(member) or [member]]
    return {None if part is NoneType else part for part in parts}
