"""The payment object of an event, for people and for agents."""

from typing import Any

import pytest

from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import Event, Payment, one
from tests.contract.steps import yesterday
from tests.helpers.events_service import Client, Service, running_events

PAID = [
    {"pricing_mode": "fixed", "price": 2500},
    {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000},
]


async def create(client: Client, **fields: Any) -> Event:
    id = (await client.create_event(**fields))["id"]
    return one(await client.get(f"/api/events/{id}"), Event)


async def set_up_payouts(service: Service) -> None:
    await service.run_sql("update users set payouts_ready = true where role = 'organizer'")


@requirement("events.payment.free")
async def test_a_free_event_needs_no_payment(service: Service) -> None:
    event = await create(await service.organizer())

    assert event.payment == Payment(
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


@requirement("events.payment.paid")
@pytest.mark.parametrize("price", PAID)
async def test_a_paid_event_cannot_be_paid_before_payouts_are_set_up(service: Service, price: dict[str, Any]) -> None:
    event = await create(await service.organizer(), **price)

    assert event.payment == Payment(
        status="unavailable",
        status_reason="organizer_processor_not_configured",
        platform_fee_percent=5,
        agent_payment_required=False,
        event_is_paid=True,
        platform_fee_collection="application_fee_amount",
        platform_fee_source="student_payment",
        student_payment_processor="connect_destination_charge",
        student_payment_required=True,
    )


@requirement("events.payment.ready")
@pytest.mark.parametrize("price", PAID)
async def test_a_paid_event_must_be_paid_once_payouts_are_set_up(settings: Settings, price: dict[str, Any]) -> None:
    async with running_events(settings.model_copy(update={"stripe_key": "sk_test_of_nobody"})) as service:
        ada = await service.organizer()
        await set_up_payouts(service)

        event = await create(ada, **price)

    assert (event.payment.status, event.payment.status_reason) == ("required", "organizer_processor_ready")
    assert event.payment.student_payment_required is True
    assert event.agent.hosted_registration_ready is True


@requirement("events.payment.ready")
async def test_a_free_event_stays_free_once_payouts_are_set_up(service: Service) -> None:
    ada = await service.organizer()
    await set_up_payouts(service)

    assert (await create(ada)).payment.status == "not_required"


@requirement("events.agent")
@pytest.mark.parametrize("price", [{"pricing_mode": "free", "price": 0}, *PAID])
async def test_an_agent_reads_how_to_publish_the_event(service: Service, price: dict[str, Any]) -> None:
    event = await create(await service.organizer(), **price)

    agent = event.agent
    assert agent.payment == event.payment
    assert agent.agent_payment_required is False
    assert agent.hosted_registration is True
    assert agent.deliverables.embed_code == event.embed_code
    assert agent.deliverables.embed_url == event.embed_url
    assert agent.deliverables.public_url == event.public_url


@requirement("events.agent.ready")
async def test_hosted_registration_is_ready_while_a_free_event_is_open(service: Service) -> None:
    assert (await create(await service.organizer())).agent.hosted_registration_ready is True


@requirement("events.agent.ready", "events.payment.paid")
@pytest.mark.parametrize("price", PAID)
async def test_hosted_registration_waits_for_payouts_of_a_paid_event(service: Service, price: dict[str, Any]) -> None:
    assert (await create(await service.organizer(), **price)).agent.hosted_registration_ready is False


@requirement("events.agent.ready")
async def test_hosted_registration_ends_with_cancellation(service: Service) -> None:
    ada = await service.organizer()
    event = await create(ada)

    assert one(await ada.delete(f"/api/events/{event.id}"), Event).agent.hosted_registration_ready is False


@requirement("events.agent.ready")
async def test_hosted_registration_ends_when_the_event_begins(service: Service) -> None:
    assert (await create(await service.organizer(), datetime=yesterday())).agent.hosted_registration_ready is False


@requirement("events.agent.ready")
async def test_hosted_registration_goes_on_until_seats_and_waiting_list_are_full(service: Service) -> None:
    ada = await service.organizer()
    event = await create(ada, capacity=1, waitinglist_capacity=1)

    ready: list[bool] = []
    for name in ("ann", "bob"):
        await ada.register(event.id, email=f"{name}@example.com")
        await service.settle()
        ready.append(one(await ada.get(f"/api/events/{event.id}"), Event).agent.hosted_registration_ready)

    assert ready == [True, False]
