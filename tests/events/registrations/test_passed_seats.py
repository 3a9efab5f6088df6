"""Cancelled seats that waiting people got are counted, for the organizer and for visitors."""

from typing import Any

from tests.events.console.organizing import sign_in_organizer
from tests.events.pages.own_registration import ask_to_cancel, cancel_registration, own_path, register_and_settle
from tests.helpers.event_visitor import Visitor, page_text
from tests.helpers.events_service import Service
from tests.helpers.payments import PaymentScene

PHRASE = "seats were passed on."


async def count_passed_seats(service: Service, event_id: int) -> int:
    [(number,)] = await service.run_sql("select seats_passed_on from events where id = %(id)s", id=event_id)
    return number


async def event_page(service: Service, event: dict[str, Any]) -> str:
    return page_text(await Visitor(service).http.get(event["public_url"].removeprefix("http://events.test")))


async def test_only_cancelled_seats_that_waiting_people_got_are_counted(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    ann, ben, cal = await register_and_settle(service, ada, event, "ann", "ben", "cal")
    console = f"/console/events/{event['id']}"

    await cancel_registration(service, cal)
    assert await count_passed_seats(service, event["id"]) == 0
    await cancel_registration(service, ann)
    assert await count_passed_seats(service, event["id"]) == 1
    page = await browser.get(console)
    await cancel_registration(service, ben)
    assert await count_passed_seats(service, event["id"]) == 1

    assert "1 cancelled seat went to a person who waited" in page_text(page)


async def test_a_seat_that_the_organizer_removes_is_not_counted_as_passed_on(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    ann, _ = await register_and_settle(service, ada, event, "ann", "ben")

    await ada.delete(f"/api/registrations/{event['id']}/{ann.rpartition('/')[2].split('-')[1]}")

    assert await count_passed_seats(service, event["id"]) == 0


async def test_visitors_see_the_number_of_passed_seats_from_the_third_on(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=3, waitinglist_capacity=5)
    addresses = await register_and_settle(service, ada, event, *(f"p{number}" for number in range(6)))

    for address in addresses[:2]:
        await cancel_registration(service, address)
    assert PHRASE not in await event_page(service, event)
    await cancel_registration(service, addresses[2])

    assert f"3 {PHRASE}" in await event_page(service, event)
    german = await Visitor(service, language="de").http.get(event["public_url"].removeprefix("http://events.test"))
    assert "3 Plätze wurden weitergegeben." in page_text(german)


async def test_a_seat_that_has_to_be_paid_counts_when_it_is_paid(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, capacity=1, waitinglist_capacity=5)
    ann = await payment_scene.register(event_id, "ann@example.com")
    await ann.pay()
    await payment_scene.deliver()
    ben = await payment_scene.register(event_id, "ben@example.com")
    [address] = await own_pages(payment_scene, "ann@example.com")
    await ask_to_cancel(payment_scene.service, address)
    await payment_scene.service.complete_cancellations()
    await payment_scene.work()

    assert "Somebody who waited has your seat now." in page_text(await Visitor(payment_scene.service).http.get(address))
    assert (await ben.status(), await count_passed_seats(payment_scene.service, event_id)) == ("held", 0)
    await ben.pay()
    await payment_scene.deliver()
    assert (await ben.status(), await count_passed_seats(payment_scene.service, event_id)) == ("registered", 1)


async def test_a_person_who_pays_for_a_seat_that_is_being_cancelled_keeps_it(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, capacity=1, waitinglist_capacity=5)
    ann = await payment_scene.register(event_id, "ann@example.com")
    [address] = await own_pages(payment_scene, "ann@example.com")
    await ask_to_cancel(payment_scene.service, address)

    await ann.pay()
    await payment_scene.deliver()

    assert await payment_scene.service.complete_cancellations() == 0
    assert await ann.status() == "registered"


async def own_pages(payment_scene: PaymentScene, *emails: str) -> list[str]:
    [(event_id,)] = await payment_scene.service.run_sql("select id from events")
    return [await own_path(payment_scene.service, event_id, email) for email in emails]
