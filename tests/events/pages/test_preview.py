"""The preview of a draft is shown to holders of its signed link only."""

import re
from html import unescape

from tests.events.console.organizing import sign_in_organizer
from tests.events.pages.reading import readable_text
from tests.helpers.events_service import Service


async def test_a_draft_is_shown_at_the_link_that_the_console_gives(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    draft = await ada.create_event(title="Secret pottery", published=False, capacity=8)

    console = await browser.get(f"/console/events/{draft['id']}")
    [link] = re.findall(r'<code id="preview-link">(.*?)</code>', console.text)
    page = await service.http.get(unescape(link))

    assert page.status_code == 200
    assert "Secret pottery" in readable_text(page)
    assert "8 seats left" in readable_text(page)
    assert "Draft Only the organizer and those who have this link see this page." in readable_text(page)
    assert '<meta name="robots" content="noindex">' in page.text
    assert page.headers["x-robots-tag"] == "noindex, nofollow"
    assert page.headers["cache-control"] == "no-store"
    assert "data-stream" not in page.text
    assert "<div inert>" in page.text


async def test_publish_and_preview_stand_before_what_copies_or_cancels(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    draft = await ada.create_event(published=False)

    page = readable_text(await browser.get(f"/console/events/{draft['id']}"))

    places = [page.index(name) for name in ("Publish", "Preview", "Duplicate", "Cancel the event")]
    assert places == sorted(places)


async def test_a_preview_with_a_wrong_signature_or_that_of_another_draft_is_answered_with_404(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    draft, other = [await ada.create_event(title="Secret pottery", published=False) for _ in range(2)]
    page = await browser.get(f"/console/events/{draft['id']}")
    [signature] = re.findall(rf"/events/{draft['id']}/preview/([0-9a-f]+)</code>", page.text)

    for path in (f"{draft['id']}/preview/{signature[::-1]}", f"{other['id']}/preview/{signature}", "0/preview/x"):
        answer = await service.http.get(f"/events/{path}")
        assert (answer.status_code, "pottery" in answer.text) == (404, False)


async def test_the_preview_link_leads_to_the_public_page_after_publishing(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    draft = await ada.create_event(published=False)
    page = await browser.get(f"/console/events/{draft['id']}")
    [link] = re.findall(r'<code id="preview-link">(.*?)</code>', page.text)
    await ada.patch(f"/api/events/{draft['id']}", {"event": {"published": True}})

    answer = await service.http.get(link)

    assert answer.status_code == 303
    assert answer.headers["location"] == draft["public_url"].removeprefix("http://events.test")
