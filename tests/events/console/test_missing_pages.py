"""A page that does not exist keeps the navigation of the console, and so does the account."""

import re

import pytest

from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser

MISSING = ("/console/nothing", "/console/events/999999", "/console/queues/7/nothing", "/account/nothing")
NAVIGATION = ('<a href="/console"', '<a href="/console/queues"', '<a href="/account"', "Sign out ")


@pytest.mark.parametrize("path", MISSING)
async def test_a_missing_page_keeps_the_navigation_of_a_signed_in_organizer(service: Service, path: str) -> None:
    _, browser = await sign_in_organizer(service)

    page = await browser.get(path)

    assert page.status_code == 404
    assert "There is no such page." in page.text
    for entry in NAVIGATION:
        assert entry in page.text


@pytest.mark.parametrize("glue", [")", "%E2%80%9D.", "%E2%80%8B", "%20here", "%3Futm_source=x"])
async def test_a_link_with_characters_appended_leads_to_its_page(service: Service, glue: str) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    for path in ("/console", "/console/queues", f"/console/events/{event['id']}", "/account"):
        page = await browser.get(path + glue)

        assert (page.status_code, page.headers["location"]) == (301, path)


@pytest.mark.parametrize("path", ["/console/nothing", "/account/nothing"])
async def test_a_missing_page_has_no_navigation_without_a_session(service: Service, path: str) -> None:
    page = await Browser(service).http.get(path, headers={"Accept": "text/html"})

    assert page.status_code == 404
    assert "There is no such page." in page.text
    assert "/console/queues" not in page.text


async def test_a_refused_form_keeps_the_navigation(service: Service) -> None:
    _, browser = await sign_in_organizer(service)

    page = await browser.http.post("/console/queues/new", data={"token": "forged"})

    assert page.status_code == 403
    assert '<a href="/console/queues"' in page.text


@pytest.mark.parametrize("path", ["/account", "/account/secure"])
async def test_the_account_keeps_the_navigation(service: Service, path: str) -> None:
    _, browser = await sign_in_organizer(service)

    page = await browser.get(path)

    for entry in NAVIGATION:
        assert entry in page.text
    assert '<a href="/account" aria-current="page">' in page.text


async def test_a_person_who_is_no_organizer_yet_is_led_to_become_one(service: Service) -> None:
    ann = Browser(service)
    await ann.sign_in("ann@example.com")

    page = await ann.get("/account")

    assert re.search(r'<a href="/console/start">.*Become an organizer</a>', page.text)
    assert "/console/queues" not in page.text
