"""On the page of a registration an organizer checks the person in, and sends the mail again."""

import pytest

from tests.events.console.event_scene import foreign_event
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser, main_text


async def person(service: Service, **fields: object) -> tuple[Client, Browser, str]:
    """An organizer with a guest who is registered: the path of the page of this registration."""
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(**fields)
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    return ada, browser, f"/console/events/{event['id']}/registrations/{poll.rpartition('/')[2]}"


async def test_a_person_is_checked_in_by_one_click(service: Service) -> None:
    _, browser, path = await person(service)

    done = await browser.send(path, do="in")
    page = await browser.get(done.headers["location"])
    again = await browser.send(path, do="in")

    assert "The person is checked in." in main_text(page)
    assert 'value="in"' not in page.text
    assert again.status_code == 303
    assert await service.run_sql("select device, is_entry from check_in_scans") == [("By hand", True)]


async def test_the_mail_is_sent_again_at_most_once_an_hour(service: Service) -> None:
    _, browser, path = await person(service)
    await service.run_sql("update registrations set notify = true")
    [(before,)] = await service.run_sql("select count(*) from mails")

    first = main_text(await browser.get((await browser.send(path, do="mail")).headers["location"]))
    second = main_text(await browser.get((await browser.send(path, do="mail")).headers["location"]))

    assert "The e-mail is on its way again." in first
    assert "The e-mail was sent again within the last hour." in second
    assert await service.run_sql("select count(*) from mails") == [(before + 1,)]


async def test_a_person_who_wants_no_mails_cannot_be_mailed_again(service: Service) -> None:
    _, browser, path = await person(service)
    await service.run_sql("update registrations set notify = false")

    page = await browser.get(path)
    sent = await browser.send(path, do="mail")

    assert "Send the e-mail again" not in main_text(page)
    assert "No e-mails go to this person." in main_text(await browser.get(sent.headers["location"]))


@pytest.mark.parametrize("action", ["in", "mail"])
async def test_a_person_of_another_organizer_cannot_be_checked_in_or_mailed(service: Service, action: str) -> None:
    _, browser, path = await person(service)
    other = await foreign_event(service)
    foreign = f"/console/events/{other['id']}/registrations/{path.rpartition('/')[2]}"
    before = await service.run_sql("select count(*) from mails")

    sent = await browser.send(path, foreign, do=action)

    assert sent.status_code == 403
    assert await service.run_sql("select count(*) from check_in_scans") == [(0,)]
    assert await service.run_sql("select count(*) from mails") == before
