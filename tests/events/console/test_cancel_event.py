"""Organizers cancel events in the console, which first says how many people get a mail."""

from holdfast.events.mails import sending
from tests.events.console.event_scene import foreign_event, stored_events
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text, token
from tests.helpers.people import end_event, sign_up


async def test_the_question_before_cancelling_says_who_gets_a_mail(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=3, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    for name in ("cleo", "dan"):
        await ada.register(event["id"], email=f"{name}@example.com", notify=False)
    await service.settle()
    await ada.register(event["id"], email="eve@example.com")
    before = await stored_events(service)

    page = await browser.get(f"/console/events/{event['id']}/cancel")

    text = main_text(page)
    assert "3 people lose their seats. 1 person on the waiting list gets none." in text
    assert "1 registration that is not decided yet is rejected." in text
    assert "2 people are told by e-mail." in text
    assert "2 people get no e-mails" in text
    assert text.endswith("Keep the event Cancel the event and tell 2 people")
    assert await stored_events(service) == before


async def test_a_cancellation_mails_as_many_people_as_the_question_said(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await sign_up(service, event, "ann", "bob")
    await ada.register(event["id"], email="cleo@example.com", notify=False)
    await service.settle()
    path = f"/console/events/{event['id']}/cancel"
    assert "2 people are told by e-mail." in main_text(await browser.get(path))

    done = await browser.send(path)

    await sending.process_due_announcements(service.database)
    recipients = await service.run_sql("select recipient from mails where kind = 'event_cancelled' order by 1")
    assert (done.status_code, done.headers["location"]) == (303, f"/console/events/{event['id']}")
    assert recipients == [("ann@example.com",), ("bob@example.com",)]
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["status"] == "cancelled"
    assert "This event is cancelled." in (await browser.get(done.headers["location"])).text


async def test_the_first_choice_keeps_the_event_and_the_date_can_be_changed_instead(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path = f"/console/events/{event['id']}"

    page = main_text(await browser.get(f"{path}/cancel"))

    assert "Nobody is registered, so nobody loses a seat." in page
    assert "Nobody gets an e-mail." in page
    assert "Does only the date or the place change? Edit the event" in page
    assert page.endswith("Keep the event Cancel the event")


async def test_the_question_before_cancelling_says_that_an_event_that_began_sends_no_mails(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    await end_event(service, event)

    page = await browser.get(f"/console/events/{event['id']}/cancel")

    assert "Nobody gets an e-mail: the event has begun." in main_text(page)
    assert "by mail" not in page.text


async def test_an_event_that_is_cancelled_stays_so(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path = f"/console/events/{event['id']}/cancel"
    form = await browser.get(path)
    await browser.http.post(path, data={"token": token(form)})
    before = await stored_events(service)

    again = await browser.http.post(path, data={"token": token(form)})
    page = await browser.get(path)

    assert (again.status_code, page.status_code) == (303, 303)
    assert await stored_events(service) == before


async def test_the_event_of_another_organizer_cannot_be_cancelled(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    mine, other = await ada.create_event(), await foreign_event(service)
    mark = token(await browser.get(f"/console/events/{mine['id']}/cancel"))
    before = await stored_events(service)

    paths = [f"/console/events/{id}/cancel" for id in (other["id"], 99999, "x")]
    read = [await browser.get(path) for path in paths]
    sent = [await browser.http.post(path, data={"token": mark}) for path in paths]

    assert [response.status_code for response in (*read, *sent)] == [403, 404, 404, 403, 404, 404]
    assert other["title"] not in "".join(response.text for response in (*read, *sent))
    assert await stored_events(service) == before


async def test_a_form_of_another_site_cancels_nothing(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path = f"/console/events/{event['id']}/cancel"
    mark = token(await browser.get(path))
    before = await stored_events(service)

    foreign = await browser.http.post(path, data={"token": mark}, headers={"Origin": "https://evil.example"})
    unsigned = await browser.http.post(path, data={})

    assert [foreign.status_code, unsigned.status_code] == [403, 403]
    assert await stored_events(service) == before
