"""Adding people by hand, moving them between seats and the waiting list, and removing them."""

from typing import Any

import pytest

from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser, main_text, token
from tests.helpers.people import end_event, handle_of, list_registrations, sign_up


async def page_of(service: Service, event: dict[str, Any], name: str) -> str:
    handle = await handle_of(service, f"{name}@example.com")
    return f"/console/events/{event['id']}/registrations/{handle}"


async def states(ada: Client, event: dict[str, Any]) -> dict[str, str]:
    return {
        registration["email"].partition("@")[0]: registration["status"]
        for registration in await list_registrations(ada, event)
    }


async def test_a_person_added_by_the_organizer_gets_a_seat_and_a_mail(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    done = await browser.send(
        f"/console/events/{event['id']}/add-registration", email=" Ann@Example.com ", notify="yes"
    )
    pending = main_text(await browser.get(done.headers["location"]))
    await service.settle()
    seated = main_text(await browser.get(done.headers["location"]))

    assert (done.status_code, done.headers["location"]) == (303, await page_of(service, event, "ann"))
    assert "Pending" in pending
    assert "Seat" in seated
    assert await service.run_sql("select kind, recipient from mails") == [("seat", "ann@example.com")]


async def test_the_form_of_a_move_names_changes_of_the_order_before_and_the_page_counts_them_after(
    service: Service,
) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=2, waitinglist_capacity=2)
    page, logged = f"/console/events/{event['id']}", "The public log shows"
    await sign_up(service, event, "ann", "ben", "cal")
    ann, ben = [await page_of(service, event, name) for name in ("ann", "ben")]
    several = f"{page}/several-registrations?do=remove&p-{ben.rpartition('/')[2]}=on"
    paths = (f"{ann}?do=wait", f"{ben}?do=remove", several, f"{page}/edit", f"{page}/cancel")

    for path in paths:
        assert logged in main_text(await browser.get(path)), path
    await browser.send(f"{ann}?do=wait", ann, do="wait")
    assert logged not in main_text(await browser.get(ann))
    await browser.send(f"{ben}?do=remove", ben, do="remove")
    assert logged in main_text(await browser.get(ann))

    assert (
        "Fair order 3 people so far, numbered in order of arrival. You moved 1 person. You removed 1 person."
        in main_text(await browser.get(page))
    )
    await ada.patch(f"/api/events/{event['id']}", {"event": {"public_log": False}})
    for path in (f"{ann}?do=remove", f"{page}/edit", f"{page}/cancel"):
        assert logged not in main_text(await browser.get(path)), path
    # What was published stays, and so does its count.
    assert "You moved 1 person. You removed 1 person." in main_text(await browser.get(page))


async def test_a_person_added_by_the_organizer_can_have_a_name(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path = f"/console/events/{event['id']}/add-registration"

    long = await browser.send(path, email="ann@example.com", name="A" * 101)
    await browser.send(path, email="ann@example.com", name="  Ann \u202e Bell ")
    await service.settle()
    await browser.send(path, email="ann@example.com", name="Another")

    assert (long.status_code, "The name is too long." in main_text(long)) == (422, True)
    listed = main_text(await browser.get(f"/console/events/{event['id']}/registrations"))
    assert "Ann Bell ann@example.com Seat" in listed


async def test_a_person_can_be_added_without_a_mail(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    await browser.send(f"/console/events/{event['id']}/add-registration", email="ann@example.com")
    await service.settle()

    assert await states(ada, event) == {"ann": "registered"}
    assert await service.run_sql("select kind from mails") == []
    question = await browser.get(f"{await page_of(service, event, 'ann')}?do=remove")
    assert "No e-mail is sent to the person" in main_text(question)


@pytest.mark.parametrize("email", ["", "ann", "ann@example", "ann@example.com\r\nBcc: b@c.de", "\0@b.de"])
async def test_an_invalid_address_is_refused_beside_the_field_and_adds_no_person(service: Service, email: str) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    answer = await browser.send(f"/console/events/{event['id']}/add-registration", email=email, notify="yes")

    assert answer.status_code == 422
    assert "This is not an e-mail address that e-mail can be sent to." in main_text(answer)
    assert 'aria-invalid="true"' in answer.text
    assert await service.run_sql("select from registrations") == []


async def test_an_event_that_takes_no_people_says_why_on_the_form(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    full, past, cancelled = [await ada.create_event(capacity=1) for _ in range(3)]
    pages = [await browser.get(f"/console/events/{event['id']}/add-registration") for event in (full, past, cancelled)]
    await sign_up(service, full, "ann")
    await end_event(service, past)
    await ada.delete(f"/api/events/{cancelled['id']}")

    confirmations: list[str] = []
    for event, page in zip((full, past, cancelled), pages, strict=True):
        answer = await browser.http.post(
            f"/console/events/{event['id']}/add-registration", data={"token": token(page), "email": "bob@example.com"}
        )
        assert answer.status_code == 422, answer.text
        confirmations.append(main_text(answer))

    assert "Every seat is taken, and the waiting list has no room." in confirmations[0]
    assert "The event is over." in confirmations[1]
    assert "The event is cancelled." in confirmations[2]


async def test_a_person_on_the_waiting_list_takes_the_seat_of_another_person(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    question = main_text(await browser.get(f"{await page_of(service, event, 'ann')}?do=wait"))
    before = await states(ada, event)

    moved = await browser.send(await page_of(service, event, "ann"), do="wait")

    assert "The seat goes to the first person on the waiting list" in question
    assert before == {"ann": "registered", "bob": "waitlisted"}
    assert (moved.status_code, moved.headers["location"]) == (303, await page_of(service, event, "ann"))
    assert await states(ada, event) == {"ann": "waitlisted", "bob": "registered"}
    assert "Waiting list, moved there by you" in main_text(await browser.get(await page_of(service, event, "ann")))


async def test_the_organizer_can_give_a_free_seat_to_a_person_who_waited_less_long(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob", "cleo")
    full = await browser.get(await page_of(service, event, "cleo"))
    assert "The only seat is taken." in main_text(full)
    assert f'href="/console/events/{event["id"]}/edit#capacity"' in full.text
    await service.run_sql("update events set capacity = 2 where id = %(id)s", id=event["id"])

    await browser.send(await page_of(service, event, "cleo"), do="seat")

    assert await states(ada, event) == {"ann": "registered", "bob": "waitlisted", "cleo": "registered"}


@pytest.mark.parametrize(
    ("change", "head"), [("wait", "Move Ann Example to the"), ("remove", "Remove the registration")]
)
async def test_an_organizer_who_takes_a_seat_away_gets_a_question_first(
    service: Service, change: str, head: str
) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    path = await page_of(service, event, "ann")

    page = await browser.get(path)
    question = await browser.get(f"{path}?do={change}")

    assert f'href="{path}?do={change}"' in page.text
    assert f'name="do" value="{change}"' not in page.text
    assert head in main_text(question)
    assert "is told by e-mail" in main_text(question)
    assert await states(ada, event) == {"ann": "registered"}


async def test_a_change_that_is_not_possible_has_no_question(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    path = await page_of(service, event, "bob")

    assert main_text(await browser.get(f"{path}?do=wait")) == main_text(await browser.get(path))
    assert main_text(await browser.get(f"{path}?do=more")) == main_text(await browser.get(path))


async def test_a_registration_is_removed_and_its_seat_given_on(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")

    done = await browser.send(await page_of(service, event, "ann"), do="remove")

    assert done.headers["location"] == f"/console/events/{event['id']}/registrations?done=removed"
    assert "The registration is removed." in main_text(await browser.get(done.headers["location"]))
    assert await states(ada, event) == {"bob": "registered"}
    assert ("removed", "ann@example.com") in await service.run_sql("select kind, recipient from mails")


async def test_a_change_that_became_impossible_is_refused_with_the_present_status(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=2, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    path = await page_of(service, event, "bob")
    await browser.send(path, do="wait")
    form = await browser.get(path)
    await service.run_sql("update events set capacity = 1 where id = %(id)s", id=event["id"])

    answer = await browser.http.post(path, data={"token": token(form), "do": "seat"})

    assert answer.status_code == 422
    assert "This did not work" in main_text(answer)
    assert "The only seat is taken." in main_text(answer)
    assert await states(ada, event) == {"ann": "registered", "bob": "waitlisted"}


@pytest.mark.parametrize("handle", ["aaaaaaaa", "1", "nobody%00"])
async def test_the_page_of_an_unknown_registration_is_answered_with_404(service: Service, handle: str) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    assert (await browser.get(f"/console/events/{event['id']}/registrations/{handle}")).status_code == 404


async def stored_registrations(service: Service) -> list[Any]:
    return await service.run_sql(
        "select registrations::text, email from registrations join users on users.id = user_id order by arrival"
    )


async def open_foreign_forms(service: Service) -> tuple[Browser, dict[str, Any], list[tuple[str, dict[str, str]]]]:
    """Another organizer in the console, an event with people, and every form that could change it."""
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    eve, browser = await sign_in_organizer(service, "eve")
    foreign = await eve.create_event()
    await sign_up(service, foreign, "dan")
    ann, bob = [await page_of(service, event, name) for name in ("ann", "bob")]
    forms = [
        (f"/console/events/{event['id']}/add-registration", {"email": "eve@example.com", "notify": "yes"}),
        (ann, {"do": "wait"}),
        (ann, {"do": "remove"}),
        (bob, {"do": "seat"}),
        # The person of another event: the own event has no such registration.
        (ann.replace(f"/{event['id']}/", f"/{foreign['id']}/"), {"do": "remove"}),
    ]
    return browser, foreign, forms


async def test_no_form_reaches_registrations_of_another_organizer(service: Service) -> None:
    browser, foreign, forms = await open_foreign_forms(service)
    page = await browser.get(f"/console/events/{foreign['id']}/add-registration")
    before = await stored_registrations(service)

    answers = [
        (await browser.http.post(path, data={"token": token(page), **fields})).status_code for path, fields in forms
    ]

    assert answers == [403, 403, 403, 403, 404]
    assert await stored_registrations(service) == before


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}]
)
async def test_forms_of_other_sites_are_refused(service: Service, headers: dict[str, str]) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    path = await page_of(service, event, "ann")
    form = await browser.get(path)
    before = await stored_registrations(service)

    adding = f"/console/events/{event['id']}/add-registration"
    for page, fields in ((path, {"do": "remove"}), (adding, {"email": "eve@example.com"})):
        answer = await browser.http.post(page, data={"token": token(form), **fields}, headers=headers)
        assert answer.status_code == 403

    assert await stored_registrations(service) == before


async def test_forms_without_the_token_of_the_session_are_refused(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    _, eve = await sign_in_organizer(service, "eve")
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    path = await page_of(service, event, "ann")
    stolen = token(await eve.get("/console"))
    before = await stored_registrations(service)

    for forged in ("", "1-2", stolen):
        assert (await browser.http.post(path, data={"token": forged, "do": "remove"})).status_code == 403
    assert (await Browser(service).http.post(path, data={"do": "remove"})).headers["location"].startswith("/sign-in")

    assert await stored_registrations(service) == before


async def test_a_form_with_an_unknown_change_changes_nothing(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await sign_up(service, event, "ann")

    assert (await browser.send(await page_of(service, event, "ann"), do="dance")).status_code == 400
    assert await states(ada, event) == {"ann": "registered"}
