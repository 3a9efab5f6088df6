"""A person looks at the own registration by the link of its mails, and hands it back."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.events.registrations.links import OUTCOME_PAGE, OWN_PAGE, Link, write
from tests.events.pages.own_registration import (
    cancel_registration,
    own_path,
    register_and_settle,
    registration_statuses,
)
from tests.helpers.event_visitor import Visitor, field_value, page_state, page_text
from tests.helpers.events_service import Service


async def test_the_page_of_a_seat_shows_the_event_and_how_to_cancel(service: Service) -> None:
    ada = await service.organizer("Ada & Sons")
    event = await ada.create_event(
        title="Life <drawing>",
        datetime="2031-07-01T18:00:00Z",
        timezone="Europe/Berlin",
        location_name="Studio 7",
        address="Main Street 1",
        cancellation_hours=24,
    )
    [address] = await register_and_settle(service, ada, event, "ann")

    page = await Visitor(service).http.get(address)

    assert (page.status_code, page_state(page)) == (200, "registered")
    text = page_text(page)
    for part in (
        "Life <drawing>",
        "Tue, Jul 1, 2031, 8:00",
        "Studio 7",
        "Main Street 1",
        "Ada & Sons",
        "You have a seat.",
    ):
        assert part in text
    assert "Cancel by Mon, Jun 30, 2031, 8:00" in text
    assert '<svg viewBox="0 0' in page.text
    assert f'href="/events/{event["id"]}/calendar.ics"' in page.text
    assert "noindex" in page.text
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"
    assert "set-cookie" not in page.headers


async def test_the_outcome_and_the_own_page_show_the_number_and_changes_by_organizers(service: Service) -> None:
    ada = await service.organizer()
    event, unlogged = (
        await ada.create_event(capacity=2, waitinglist_capacity=9),
        await ada.create_event(public_log=False),
    )
    visitor = Visitor(service)
    outcome = await visitor.register(event["id"], "ann@example.com")
    assert "number" not in page_text(await visitor.http.get(outcome))
    address, ben = await register_and_settle(service, ada, event, "ann", "ben", visitor=visitor)
    await register_and_settle(service, ada, event, "cal", "dee")
    proof = f"/log/events/{event['id']}/proofs/1"

    for path in (address, outcome):
        page = await visitor.http.get(path)
        assert "You were number 1 of 4. The organizer has moved nobody. Check it yourself" in page_text(page)
        assert f'href="/verify#{proof}?shown=registered"' in page.text
    assert f'href="{proof}" download="{event["id"]}-1.tlog-proof"' in (await visitor.http.get(address)).text

    # Only what the organizer did counts: not who moved up for it, nor who left.
    registrations = [page.rpartition("/")[2].split("-")[1] for page in (address, ben)]
    path = f"/api/registrations/{event['id']}"
    moved = await ada.patch(f"{path}/{registrations[0]}", {"registration": {"status": "waitlisted"}})
    assert moved.status_code == 200, moved.text
    await ada.delete(f"{path}/{registrations[1]}")
    cal = await own_path(service, event["id"], "cal@example.com")
    await cancel_registration(service, cal)
    german = page_text(await Visitor(service, language="de").http.get(address))
    assert "Sie waren Nummer 1 von 4. Der Veranstalter hat 1 davon verschoben." in german
    assert "Der Veranstalter hat 1 davon entfernt." in german

    [address] = await register_and_settle(service, ada, unlogged, "ann")
    page = await visitor.http.get(address)
    assert "number" not in page_text(page)
    assert "/log/" not in page.text


async def test_a_seat_that_is_cancelled_goes_to_the_next_on_the_waiting_list(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    ann, ben, _ = await register_and_settle(service, ada, event, "ann", "ben", "cal")
    http = Visitor(service).http
    before = await http.get(ben)

    gone = await cancel_registration(service, ann)

    assert "You are number 1 on the waiting list." in page_text(before)
    assert (gone.status_code, page_state(gone)) == (410, "own_cancellation")
    assert await registration_statuses(ada) == {"ben": "registered", "cal": "waitlisted"}
    assert page_state(await http.get(ben)) == "registered"


async def test_a_place_on_the_waiting_list_can_be_cancelled(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    _, ben, cal = await register_and_settle(service, ada, event, "ann", "ben", "cal")

    await cancel_registration(service, ben)

    assert await registration_statuses(ada) == {"ann": "registered", "cal": "waitlisted"}
    assert "You are number 1 on the waiting list." in page_text(await Visitor(service).http.get(cal))


async def test_the_question_before_cancelling_and_the_answer_say_who_gets_the_place(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    ann, ben, cal = await register_and_settle(service, ada, event, "ann", "ben", "cal")
    http = Visitor(service).http

    async def question(address: str) -> str:
        return page_text(await http.get(f"{address}/cancel"))

    questions = [await question(address) for address in (ann, ben, cal)]
    answers = [page_text(await cancel_registration(service, address)) for address in (cal, ann)]
    questions.append(await question(ben))
    answers.append(page_text(await cancel_registration(service, ben)))

    assert "to the next person?" in questions[0]
    assert "The first person on the waiting list gets your seat." in questions[0]
    assert "You lose place 1 on the waiting list. The people behind you move up." in questions[1]
    assert "You lose place 2 on the waiting list." in questions[2]
    assert "The people behind you" not in questions[2]
    assert "Your seat is free for others." in questions[3]
    assert all("You can undo this for 30 seconds." in question for question in questions)
    assert "Your registration is cancelled." in answers[0]
    assert "Somebody who waited has your seat now. Thank you." in answers[1]
    assert "Your seat is free for others now." in answers[2]


async def test_opening_the_pages_of_a_registration_changes_nothing(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")
    http = Visitor(service).http

    for method in ("GET", "HEAD"):
        for path in ("", "/cancel", "/undo", "/unsubscribe"):
            await http.request(method, address + path)

    assert await registration_statuses(ada) == {"ann": "registered"}
    assert await service.run_sql("select notify from registrations") == [(True,)]
    assert await service.run_sql("select cancels_at from registrations") == [(None,)]


async def test_a_form_without_its_own_token_cancels_no_registration(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    ann, ben = await register_and_settle(service, ada, event, "ann", "ben")
    http = Visitor(service).http
    token_of_another = field_value(await http.get(f"{ben}/cancel"), "token")

    for fields in ({}, {"token": "x"}, {"token": token_of_another}):
        page = await http.post(f"{ann}/cancel", data=fields)
        assert (page.status_code, page_state(page)) == (422, "asking")
        assert "Nothing was cancelled" in page_text(page)
    foreign = await http.post(
        f"{ann}/cancel",
        data={"token": field_value(await http.get(f"{ann}/cancel"), "token")},
        headers={"Origin": "https://evil.example"},
    )
    assert foreign.status_code == 403
    assert await registration_statuses(ada) == {"ann": "registered", "ben": "registered"}


async def test_the_own_page_after_the_deadline_names_the_organizer_to_ask(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    soon = (datetime.now(UTC) + timedelta(hours=5)).isoformat()
    event = await ada.create_event(datetime=soon, cancellation_hours=6)
    [address] = await register_and_settle(service, ada, event, "ann")
    http = Visitor(service).http

    page = await http.get(address)
    await service.run_sql("update events set cancellation_hours = 0")
    token = field_value(await http.get(f"{address}/cancel"), "token")
    await service.run_sql("update events set cancellation_hours = 6")
    late = await http.post(f"{address}/cancel", data={"token": token})

    assert "please tell the organizer: Ada Events" in page_text(page)
    assert "<button" not in page.text
    assert (late.status_code, page_state(late)) == (422, "registered")
    assert "too late" in page_text(late)
    assert await registration_statuses(ada) == {"ann": "registered"}


async def test_a_person_who_moved_up_after_the_deadline_can_still_cancel(service: Service) -> None:
    ada = await service.organizer()
    soon = (datetime.now(UTC) + timedelta(hours=5)).isoformat()
    event = await ada.create_event(datetime=soon, cancellation_hours=6, capacity=1, waitinglist_capacity=5)
    _, ben, cal = await register_and_settle(service, ada, event, "ann", "ben", "cal")
    [(first, _)] = await service.run_sql(
        "select public_id, arrival from registrations join users on users.id = user_id where email like 'ann%%'"
    )
    await ada.delete(f"/api/registrations/{event['id']}/{first}")

    gone = await cancel_registration(service, ben)

    assert page_state(gone) == "own_cancellation"
    assert page_state(await Visitor(service).http.get(cal)) == "registered"


async def test_a_link_to_a_deleted_registration_is_answered_with_410(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")
    http = Visitor(service).http
    token = field_value(await http.get(f"{address}/cancel"), "token")
    await cancel_registration(service, address)

    async def is_gone() -> None:
        for page in (
            await http.get(address),
            await http.get(f"{address}/unsubscribe"),
            await http.post(f"{address}/cancel", data={"token": token}),
        ):
            assert (page.status_code, page_state(page)) == (410, "own_cancellation")

    await is_gone()
    await register_and_settle(service, ada, event, "ann")
    await is_gone()
    assert await registration_statuses(ada) == {"ann": "registered"}


async def test_a_guessed_link_to_a_registration_is_answered_with_404(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")
    event_id, user_id, arrival, _ = address.rsplit("/", 1)[1].split("-")
    link = Link(int(event_id), user_id, int(arrival))
    secret = service.database.resources.secret
    http = Visitor(service).http

    for guess in (
        "x",
        write(secret, OUTCOME_PAGE, link),
        f"{address.rsplit('/', 1)[1][:-1]}g",
        "%00",
        "1-aaaaaaaa-1-" + "0" * 32,
    ):
        for path in ("", "/cancel", "/unsubscribe"):
            page = await http.get(f"/registrations/{guess}{path}")
            assert page.status_code == 404
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert page_state(page) == "wrong_link"
            assert "Open the link in the e-mail again." in page_text(page)
    assert 'href="/events/1">Go to the event</a>' in page.text
    assert (await http.get(f"/registrations/{write(secret, OWN_PAGE, link)}/outcome")).status_code == 404


async def test_mails_about_a_registration_are_stopped_with_one_button(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")
    http = Visitor(service).http

    question = await http.get(f"{address}/unsubscribe")
    done = await http.post(f"{address}/unsubscribe")

    assert page_state(question) == "subscribed"
    form = re.search("<form.*?</form>", question.text, re.DOTALL)
    assert form
    assert (form[0].count("<button"), form[0].count("<input")) == (1, 0)
    assert (done.status_code, page_state(done)) == (200, "unsubscribed")
    assert await service.run_sql("select notify from registrations") == [(False,)]
    assert "You get no e-mails" in page_text(await http.get(address))
    assert await registration_statuses(ada) == {"ann": "registered"}


@pytest.mark.parametrize(
    "kind", [{"data": {"List-Unsubscribe": "One-Click"}}, {"files": {"List-Unsubscribe": (None, "One-Click")}}]
)
async def test_mails_about_a_registration_are_stopped_by_one_click_of_a_mail_program(
    service: Service, kind: dict[str, Any]
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")
    http = Visitor(service).http

    assert (await http.post(f"{address}/unsubscribe", **kind)).status_code == 200
    assert await service.run_sql("select notify from registrations") == [(False,)]
    await cancel_registration(service, address)
    assert (await http.post(f"{address}/unsubscribe", **kind)).status_code == 200


async def test_the_pages_of_a_registration_are_in_the_language_of_the_browser(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")

    german = await Visitor(service, language="de-AT,de;q=0.9,en;q=0.5").http.get(address)
    chosen = await Visitor(service).http.get(f"{address}?lang=de")

    assert "Sie haben einen Platz." in page_text(german)
    assert '<html lang="de">' in german.text
    assert "Anmeldung stornieren" in page_text(chosen)
    assert "/cancel?lang=de" in chosen.text
