"""A visitor who mistyped the address corrects it on the page after registering, and keeps the place."""

from typing import Any

import httpx2
import pytest

from tests.events.check_in.check_in_scene import link_of
from tests.events.pages.reading import readable_text
from tests.helpers.event_visitor import Visitor, page_state
from tests.helpers.events_service import Client, Service
from tests.helpers.sealing import seal_once

WRONG, RIGHT = "anme@example.com", "anne@example.com"


async def open_event(service: Service, **fields: Any) -> tuple[Client, dict[str, Any]]:
    ada = await service.organizer()
    await service.run_sql("update users set proved_at = now()")
    return ada, await ada.create_event(**fields)


async def send_form(service: Service, event: dict[str, Any], email: str = WRONG) -> tuple[Visitor, str]:
    """A visitor who has sent the form, and the path of the outcome."""
    visitor = Visitor(service)
    outcome = await visitor.register(event["id"], email, name="Anne")
    await service.settle()
    return visitor, outcome


async def correct(visitor: Visitor, outcome: str, email: str = RIGHT) -> httpx2.Response:
    return await visitor.http.post(f"{outcome}/address", data={"email": email})


async def people(service: Service) -> list[Any]:
    return await service.run_sql(
        """
        select email, status::text, registrations.name
          from registrations join users on users.id = user_id order by arrival
        """
    )


async def test_a_corrected_registration_keeps_its_seat_its_time_and_its_name(service: Service) -> None:
    ada, event = await open_event(service, capacity=1, waitinglist_capacity=1)
    visitor, outcome = await send_form(service, event)
    await send_form(service, event, "ben@example.com")
    [before] = await service.run_sql("select received_at, arrival from registrations where status = 'registered'")

    done = await correct(visitor, outcome)

    page = await visitor.http.get(done.headers["location"])
    assert done.status_code == 303
    assert page_state(page) == "registered"
    assert await people(service) == [(RIGHT, "registered", "Anne"), ("ben@example.com", "waitlisted", "Anne")]
    assert await service.run_sql("select received_at, arrival from registrations where status = 'registered'") == [
        before
    ]
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["registration_count"] == 1


async def test_the_old_address_gets_a_cancellation_that_does_not_name_the_new_one(service: Service) -> None:
    _, event = await open_event(service)
    visitor, outcome = await send_form(service, event)

    await correct(visitor, outcome)

    mails = await service.run_sql("select recipient, kind::text, arguments::text from mails order by id")
    assert sorted(mail[:2] for mail in mails) == [(WRONG, "removed"), (WRONG, "seat"), (RIGHT, "seat")]
    [public_id] = [row[0] for row in await service.run_sql("select public_id from users where email = %(e)s", e=RIGHT)]
    for recipient, _, arguments in mails:
        assert RIGHT not in arguments
        assert (public_id in arguments) == (recipient == RIGHT)


async def test_the_links_of_the_old_address_end(service: Service) -> None:
    _, event = await open_event(service)
    visitor, outcome = await send_form(service, event)
    mailed = f"/registrations/{await link_of(service, event['id'], 'anme')}"
    assert (await visitor.http.get(mailed)).status_code == 200

    await correct(visitor, outcome)

    assert [(await visitor.http.get(path)).status_code for path in (mailed, outcome)] == [410, 410]
    assert (await correct(visitor, outcome, "thief@example.com")).status_code == 410


async def test_the_public_order_and_its_proof_stay_as_they_were(service: Service) -> None:
    _, event = await open_event(service)
    visitor, outcome = await send_form(service, event)
    await seal_once(service.database)
    entries = await service.run_sql("select * from log_entries order by 1, 2")
    receipt = (await visitor.http.get(f"{outcome}?receipt")).json()

    done = await correct(visitor, outcome)
    await seal_once(service.database)

    assert entries
    assert await service.run_sql("select * from log_entries order by 1, 2") == entries
    assert (await visitor.http.get(f"{done.headers['location']}?receipt")).json() == receipt


async def test_an_address_that_is_registered_already_keeps_its_own_registration(service: Service) -> None:
    _, event = await open_event(service)
    await send_form(service, event, RIGHT)
    visitor, outcome = await send_form(service, event)
    before = await people(service)

    refusal = await correct(visitor, outcome)

    assert refusal.status_code == 422
    assert "This address is already registered." in readable_text(refusal)
    assert await people(service) == before


async def test_a_correction_to_a_text_that_is_no_address_is_refused_beside_the_field(service: Service) -> None:
    _, event = await open_event(service)
    visitor, outcome = await send_form(service, event)

    refusal = await correct(visitor, outcome, 'x" onfocus="y')

    assert refusal.status_code == 422
    assert "This is not an e-mail address." in readable_text(refusal)
    assert 'onfocus="y' not in refusal.text
    assert await people(service) == [(WRONG, "registered", "Anne")]


@pytest.mark.parametrize("age", ["30 seconds", "3 minutes"])
async def test_the_owner_of_an_address_who_registers_too_cannot_lose_the_seat_by_a_correction(
    service: Service, age: str
) -> None:
    _, event = await open_event(service)
    stranger, outcome = await send_form(service, event, "owner@example.com")
    await service.run_sql("update registrations set received_at = received_at - %(age)s::interval", age=age)
    owner = Visitor(service)
    assert page_state(await owner.send(event["id"], email="owner@example.com")) == "known"

    refusal = await correct(stranger, outcome, "stranger@example.com")

    assert refusal.status_code == 422
    assert "The address cannot be changed here any more." in readable_text(refusal)
    assert "Please register again with the right address." in readable_text(refusal)
    assert await people(service) == [("owner@example.com", "registered", "Anne")]


@pytest.mark.parametrize(
    "change",
    [
        "update registrations set received_at = received_at - interval '31 minutes'",
        "update registrations set notify = false",
        "update registrations set cancels_at = now() + interval '20 seconds'",
        "update registrations set status = 'waitlisted', reason = 'by_organizer'",
        "update registrations set amount_paid = 500",
        "update events set datetime = now() - interval '1 minute'",
        "update events set cancelled_at = now()",
    ],
)
async def test_a_registration_that_others_count_on_is_not_corrected(service: Service, change: str) -> None:
    _, event = await open_event(service)
    visitor, outcome = await send_form(service, event)
    await service.run_sql(change)

    refusal = await correct(visitor, outcome)

    assert refusal.status_code == 422
    assert (await people(service))[0][0] == WRONG


async def test_a_person_who_has_come_is_not_corrected(service: Service) -> None:
    _, event = await open_event(service)
    visitor, outcome = await send_form(service, event)
    await service.run_sql(
        """
        insert into check_in_scans (event_id, user_id, id, device, told_at, is_entry)
        select event_id, user_id, gen_random_uuid(), 'Door 1', now(), true from registrations
        """
    )

    assert (await correct(visitor, outcome)).status_code == 422
    assert (await people(service))[0][0] == WRONG


async def test_the_mailed_link_and_a_form_of_another_site_correct_nothing(service: Service) -> None:
    _, event = await open_event(service)
    visitor, outcome = await send_form(service, event)
    mailed = f"/registrations/{await link_of(service, event['id'], 'anme')}"
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}

    by_mail = await visitor.http.post(f"{mailed}/outcome/address", data={"email": RIGHT})
    by_site = await visitor.http.post(f"{outcome}/address", data={"email": RIGHT}, headers=foreign)

    assert (by_mail.status_code, by_site.status_code) == (404, 403)
    assert (await visitor.http.get(f"{outcome}/address")).headers["location"] == outcome
    assert await people(service) == [(WRONG, "registered", "Anne")]
