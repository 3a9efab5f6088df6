"""The owner of an address says whether an organizer that was registered with it is theirs, and can end it."""

import pytest

from holdfast.events import ownership
from holdfast.events.ownership import CancelEventsArguments
from holdfast.kit.operations.steps import Steps
from tests.events.console.organizing import OWNER_EMAIL, register_stranger
from tests.helpers.event_visitor import page_text
from tests.helpers.events_service import Client, Service, event_fields, queue_fields
from tests.helpers.form_browser import Browser
from tests.helpers.payments import PaymentScene

PASSWORD = "correct horse battery"
BEFORE = "/console/before"


async def owner_of(service: Service) -> Browser:
    browser = Browser(service)
    await browser.sign_in(OWNER_EMAIL)
    return browser


async def cancel_events(service: Service, stranger: Client) -> None:
    """Do the job that cancels the events."""
    assert await service.run_sql(
        "select args->'arguments' from procrastinate_jobs where task_name = %(name)s", name=ownership.CANCEL.name
    ) == [({"organizer_id": stranger.id},)]
    await ownership.cancel_events(Steps(service.database), CancelEventsArguments(stranger.id))
    await service.wait_for_notices()


async def is_question(browser: Browser) -> bool:
    return (await browser.get("/console")).headers.get("location", "").startswith(BEFORE)


async def test_an_owner_is_asked_about_an_organizer_whose_only_key_was_revoked(service: Service) -> None:
    stranger = await register_stranger(service)
    [key] = (await stranger.get("/api/keys")).json()["data"]
    await stranger.delete(f"/api/keys/{key['id']}")

    assert await is_question(await owner_of(service))


async def test_the_question_about_an_organizer_names_all_that_was_made_with_it(payment_scene: PaymentScene) -> None:
    stranger = await register_stranger(payment_scene.service, password=PASSWORD)
    event = await stranger.create_event(title="Free money")
    await stranger.register(event["id"], email="ann@example.com")
    await payment_scene.service.settle()
    await stranger.create_queue()
    await stranger.post("/api/stripe/onboarding_link")
    browser = await owner_of(payment_scene.service)

    page = page_text(await browser.get(BEFORE))

    assert "The organizer “ Planted Bank ”, with the page /organizers/planted-bank" in page
    assert f"The API key “ First key ”, {str(stranger.key)[:8]}…" in page
    for text in ("A password", "1 event: Free money", "1 waiting room", "An account for payouts"):
        assert text in page
    assert "1 person who is registered gets an e-mail." in page


async def test_a_person_with_registrations_only_gets_no_question_about_an_organizer(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email=OWNER_EMAIL)

    assert not await is_question(await owner_of(service))


async def test_a_person_signed_in_by_password_cannot_say_that_the_organizer_is_theirs(service: Service) -> None:
    await register_stranger(service, password=PASSWORD)
    stranger = Browser(service)
    await stranger.send("/sign-in", email=OWNER_EMAIL, password=PASSWORD)

    answer = await stranger.send("/account", BEFORE, whose="mine")

    assert answer.status_code == 303
    assert await service.run_sql("select proved_at from users where email = %(email)s", email=OWNER_EMAIL) == [(None,)]
    assert await is_question(await owner_of(service))


async def test_an_owner_who_says_not_mine_is_an_ordinary_person_without_data(service: Service) -> None:
    stranger = await register_stranger(service, password=PASSWORD)
    await stranger.create_event()
    browser = await owner_of(service)

    await browser.send(BEFORE, whose="other")

    assert (await browser.get("/console")).headers["location"].startswith("/console/start")
    done = await browser.send("/console/start", name="Real Owner", slug="planted-bank")
    assert done.status_code == 303
    assert "You have no events yet." in page_text(await browser.get("/console"))
    assert (await stranger.get("/api/events")).status_code == 401
    [organizer] = (await (await service.admin()).get("/api/organizers")).json()["data"]
    assert (organizer["email"], organizer["name"], organizer["slug"]) == (OWNER_EMAIL, "Real Owner", "planted-bank")
    assert organizer["id"] != stranger.id


async def test_an_owner_who_says_not_mine_cancels_the_events_and_people_are_mailed(service: Service) -> None:
    stranger = await register_stranger(service)
    first, second = await stranger.create_event(), await stranger.create_event(title="Every week")
    await stranger.register(first["id"], email="ann@example.com")
    await service.settle()
    browser = await owner_of(service)

    await browser.send(BEFORE, whose="other")
    await cancel_events(service, stranger)

    admin = await service.admin()
    for event_made in (first, second):
        event = (await admin.get(f"/api/events/{event_made['id']}")).json()["data"]
        assert event["status"] == "cancelled"
        assert "planted-bank" not in event["public_url"]
        page = await service.http.get(event["public_url"])
        assert (page.status_code, "This event is cancelled." in page.text) == (200, True)
        assert "Planted Bank" not in page.text
        assert (await service.http.get(f"/organizers/planted-bank/events/{event_made['id']}")).status_code == 404
    assert await service.run_sql("select event_id, kind from mail_announcements") == [(first["id"], "event_cancelled")]
    assert (await service.http.get("/organizers/planted-bank")).status_code == 404


async def test_payments_of_an_unwanted_organizer_are_refunded_without_its_payout_account(
    payment_scene: PaymentScene,
) -> None:
    stranger = await register_stranger(payment_scene.service)
    event_id = await payment_scene.event(stranger)
    account_id = (await stranger.post("/api/stripe/onboarding_link")).json()["data"]["stripe_account_id"]
    payment_scene.processor.finish(account_id)
    await payment_scene.deliver()
    buyer = await payment_scene.register(event_id, "buyer@example.com")
    await buyer.pay()
    await payment_scene.deliver()
    assert await payment_scene.service.run_sql("select state::text from payments") == [("paid",)]

    await (await owner_of(payment_scene.service)).send(BEFORE, whose="other")
    await cancel_events(payment_scene.service, stranger)
    await payment_scene.work()

    assert await payment_scene.service.run_sql("select reason, state::text from refunds") == [
        ("event_cancelled", "made")
    ]
    assert await payment_scene.service.run_sql("select amount = refunded from payments") == [(True,)]
    assert await payment_scene.service.run_sql("select account_id from payout_accounts") == []


async def test_queues_of_an_ended_organizer_have_no_page(service: Service) -> None:
    stranger = await register_stranger(service)
    queue = await stranger.create_queue()

    await (await owner_of(service)).send(BEFORE, whose="other")

    assert (await service.http.get(f"/queues/{queue['id']}")).status_code == 404


async def test_registrations_of_the_address_stay_when_an_unwanted_organizer_ends(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email=OWNER_EMAIL)
    await service.settle()
    before = (await ada.get("/api/registrations")).json()["data"]
    await register_stranger(service)
    browser = await owner_of(service)

    await browser.send(BEFORE, whose="other")

    assert (await ada.get("/api/registrations")).json()["data"] == before
    assert await service.run_sql("select email from users join registrations on user_id = users.id") == [(OWNER_EMAIL,)]
    assert (await browser.get("/account/data")).status_code == 200


@pytest.mark.parametrize("path", ["/api/events", "/api/queues"])
async def test_an_ended_organizer_gets_no_new_events_or_queues(service: Service, path: str) -> None:
    stranger, admin = await register_stranger(service), await service.admin()
    await (await owner_of(service)).send(BEFORE, whose="other")

    body = (
        {"event": event_fields(organizer_id=stranger.id)}
        if path == "/api/events"
        else {"queue_event": queue_fields(organizer_id=stranger.id)}
    )
    answer = await admin.post(path, body)

    assert (answer.status_code, "organizer_id" in answer.json()["errors"]) == (422, True)
