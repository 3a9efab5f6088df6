"""The queue of an unproved organizer leads visitors to another site only after they have agreed."""

import re
from html import unescape
from typing import Any

import pytest

from holdfast.events.queues.release_tokens import host
from tests.events.queues.browser import RoomBrowser, room_state
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.event_visitor import page_text
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser as OwnersBrowser

OWNER = "owner@example.com"
TARGET = "https://bank.evil.example:8443/login?next=1#top"


async def unproved_line(service: Service, **fields: Any) -> QueueScene:
    stranger = await service.organizer("Victim Bank", is_proved=False, email=OWNER)
    return await open_queue(service, stranger, **{"target_url": TARGET, **fields})


@pytest.mark.parametrize("page", ["", "/embed"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_released_visitor_of_an_unproved_organizer_gets_a_question_and_no_redirect(
    service: Service, page: str, method: str
) -> None:
    queue = await unproved_line(service)
    browser = RoomBrowser(queue, f"/queues/{queue.id}{page}")
    await browser.line_up()
    await queue.tick()

    answer = await browser.look(method)

    assert answer.status_code == 200
    assert not {"location", "refresh"} & {*answer.headers}
    if method == "GET":
        assert room_state(answer) == "released"
        assert "http-equiv" not in answer.text
        text = page_text(answer)
        assert "This waiting room leads to bank.evil.example:8443 . The organizer has not confirmed" in text
        [link] = re.findall(r'<a class="button[^"]*"[^>]*>[^<]*', answer.text)
        assert link.endswith(">Continue")
        assert 'rel="noreferrer"' in link
        address = unescape(re.findall(r'href="([^"]*)"', link)[0])
        assert re.fullmatch(r"https://bank\.evil\.example:8443/login\?next=1&queue_token=[\w.-]+#top", address)


async def test_no_query_and_no_language_skips_the_question(service: Service) -> None:
    queue = await unproved_line(service)
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.tick()

    for query in ("?lang=de", "?receipt", "?done", "?queue_token=x", "?at=1"):
        answer = await browser.http.get(f"{browser.path}{query}")
        location = answer.headers.get("location", browser.path)
        assert location.startswith("/queues/"), query
    german = await browser.http.get(f"{browser.path}?lang=de")
    assert "Dieser Warteraum führt zu bank.evil.example:8443 ." in page_text(german)
    assert german.text.count(">Weiter</a>") == 1


async def test_the_place_is_kept_and_the_token_works_after_the_click(service: Service) -> None:
    queue = await unproved_line(service)
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.tick()

    first, second = await browser.look(), await browser.look()
    [token] = {*re.findall(r"queue_token=([\w.-]+)", first.text + second.text)}

    verified = (await queue.verify(token)).json()
    assert (verified["valid"], verified["data"]["target_url"]) == (True, TARGET)


async def test_once_the_address_is_proved_visitors_are_redirected(service: Service) -> None:
    queue = await unproved_line(service)
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.tick()
    assert room_state(await browser.look()) == "released"

    owner = OwnersBrowser(service)
    await owner.sign_in(OWNER)
    await owner.send("/console/before", whose="mine")

    answer = await browser.look()
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("https://bank.evil.example:8443/login?next=1&queue_token=")


async def test_programs_get_the_address_as_the_contract_says(service: Service) -> None:
    queue = await unproved_line(service)
    await queue.join("visitor")
    await queue.tick()

    status = await queue.status("visitor")

    assert status["redirect_url"].startswith("https://bank.evil.example:8443/login?next=1&queue_token=")


async def test_the_host_is_text_on_the_page_whatever_is_in_it(service: Service) -> None:
    queue = await unproved_line(service, target_url="https://<b>x</b>.example/")
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.tick()

    page = await browser.look()

    assert "<b>" not in page.text
    assert "This waiting room leads to <b>x< ." in page_text(page)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://example.com/a", "example.com"),
        ("http://EXAMPLE.com:80", "example.com"),
        ("https://example.com:444/a?b#c", "example.com:444"),
        ("https://[::1]:8443/", "[::1]:8443"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://\u0430\u0440\u0440\u04cf\u0435.com/", "xn--80ak6aa92e.com"),
        ("https://stra\u00dfe-bank.example/", "xn--strae-bank-83a.example"),
        ("https://bank\u03c2.example/", "xn--bank-jod.example"),
        ("https://ba\u00adnk.ex\uff21mple/", "bank.example"),
        ("https://\U0001f4a9.example/", "xn--ls8h.example"),
        ("https://bank.example%2eevil.example/", "bank.example.evil.example"),
        ("https://\u202ebank.example/", "%E2%80%AEbank.example"),
        (f"https://{'ü' * 80}.example/", f"{'%C3%BC' * 80}.example"),
    ],
)
def test_a_host_with_look_alike_letters_is_shown_in_punycode(address: str, expected: str) -> None:
    assert host(address) == expected
