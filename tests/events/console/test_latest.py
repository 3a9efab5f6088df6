"""The overview of an event says what happened last with its people."""

import pytest

from holdfast.events.registrations import latest
from tests.events.console.event_scene import foreign_event
from tests.events.console.organizing import sign_in_organizer
from tests.events.console.paid_scene import pay_for_seat
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text
from tests.helpers.payments import PaymentScene


async def test_the_latest_registration_comes_first_with_its_status(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=1, timezone="Europe/Berlin")
    for name in ("ann", "bob"):
        await ada.register(event["id"], email=f"{name}@example.com")
        await service.settle()

    page = await browser.get(f"/console/events/{event['id']}")

    text = main_text(page).partition("Recent activity")[2]
    assert text.index("bob@example.com is on the waiting list today") < text.index("ann@example.com has a seat today")
    assert f'href="/console/events/{event["id"]}/registrations/' in page.text


async def test_an_event_without_people_shows_no_latest_changes(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    assert "Recent activity" not in (await browser.get(f"/console/events/{event['id']}")).text


async def test_several_people_of_one_minute_are_counted_and_not_named(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=2, waitinglist_capacity=4)
    for number in range(6):
        await ada.register(event["id"], email=f"guest{number}@example.com")
    await service.settle()
    await service.run_sql("update registrations set received_at = date_trunc('minute', received_at)")

    activity = main_text(await browser.get(f"/console/events/{event['id']}")).partition("Recent activity")[2]

    assert "4 people joined the waiting list today" in activity
    assert "guest0@example.com has a seat today" in activity
    assert "guest5" not in activity


async def test_a_crowd_that_is_not_read_to_its_end_is_not_counted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latest, "MAX_READ_HAPPENINGS", 3)
    ada, browser = await sign_in_organizer(service)
    crowded = await ada.create_event(capacity=9)
    for number in range(5):
        await ada.register(crowded["id"], email=f"guest{number}@example.com")
    await service.settle()
    await service.run_sql("update registrations set received_at = date_trunc('minute', received_at)")

    activity = main_text(await browser.get(f"/console/events/{crowded['id']}")).partition("Recent activity")[2]

    assert "people got a seat" not in activity
    assert "guest4@example.com has a seat today" in activity


async def test_repeated_scans_do_not_hide_an_entry_in_the_latest_changes(payment_scene: PaymentScene) -> None:
    browser, ann, _ = await pay_for_seat(payment_scene)
    for is_entry in (True, *[False] * 7):
        await payment_scene.service.run_sql(
            "insert into check_in_scans (event_id, id, user_id, device, told_at, is_entry)"
            " select event_id, gen_random_uuid(), user_id, 'Door 2', now(), %(is_entry)s from registrations",
            is_entry=is_entry,
        )

    page = main_text(await browser.get(f"/console/events/{ann.event_id}"))

    assert "ann@example.com came in, scanned by Door 2 today" in page


async def test_the_latest_changes_have_payments_and_entries_of_this_event_only(payment_scene: PaymentScene) -> None:
    browser, ann, _ = await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql(
        "insert into check_in_scans (event_id, id, user_id, device, told_at, is_entry)"
        " select event_id, gen_random_uuid(), user_id, 'Door 2', now(), true from registrations"
    )
    other = await foreign_event(payment_scene.service)

    page = main_text(await browser.get(f"/console/events/{ann.event_id}"))
    foreign = await browser.get(f"/console/events/{other['id']}")

    assert "ann@example.com came in, scanned by Door 2 today" in page
    assert "ann@example.com paid €12.00 today" in page
    assert foreign.status_code == 403


async def test_a_seat_that_was_not_paid_in_time_is_listed_so_and_not_as_a_full_event(
    payment_scene: PaymentScene,
) -> None:
    ada, browser = await sign_in_organizer(payment_scene.service)
    account = (await ada.post("/api/stripe/onboarding_link")).json()["data"]["stripe_account_id"]
    payment_scene.processor.finish(account)
    await payment_scene.deliver()
    await payment_scene.service.wait_for_notices()
    ann = await payment_scene.register(await payment_scene.event(ada), "ann@example.com")
    await payment_scene.time_is_up()

    page = main_text(await browser.get(f"/console/events/{ann.event_id}"))
    people = main_text(await browser.get(f"/console/events/{ann.event_id}/registrations"))

    assert "ann@example.com did not pay in time today" in page
    assert "There was no seat for" not in page
    assert "ann@example.com Not paid in time" in people
