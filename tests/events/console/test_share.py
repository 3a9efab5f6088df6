"""The page to share an event: its link, its QR code, and the form for another site."""

import re
from html import unescape
from urllib.parse import quote

from holdfast.events.registrations.entrance_code import qr_code
from tests.events.console.event_scene import foreign_event
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service


async def test_an_event_is_shared_by_its_link_and_by_the_code_of_its_form(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(title='"Life" & drawing')

    first = await browser.get(f"/console/events/{event['id']}")
    page = await browser.get(f"/console/events/{event['id']}/share")

    assert f'href="/console/events/{event["id"]}/share#form"' in first.text
    for text, code in ((first.text, None), (page.text, event["embed_code"])):
        copied = {
            id: unescape(content) for id, content in re.findall(r'<code id="(share-\w+)">(.*?)</code>', text, re.DOTALL)
        }
        assert copied["share-link"] == event["public_url"]
        assert copied.get("share-code") == code
        for id in copied:
            assert f'data-copies="{id}"' in text
    assert re.search(r'<div class="code-picture" role="img" aria-label="QR code[^"]*"><svg viewBox="0 0', page.text)


async def test_the_qr_code_is_a_file_for_posters(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    file = await browser.get(f"/console/events/{event['id']}/qr.svg")

    assert file.headers["content-type"] == "image/svg+xml"
    assert file.headers["content-disposition"] == f'attachment; filename="event-{event["id"]}.svg"'
    squares = re.compile(r' stroke="#000" d="([^"]+)"')
    assert squares.findall(file.text) == squares.findall(qr_code(event["public_url"]).svg_inline(border=4, dark="#000"))


async def test_the_form_of_an_event_is_shown_in_a_frame(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    page = await browser.get(f"/console/events/{event['id']}/share")

    assert f' src="/events/{event["id"]}/embed"' in page.text
    assert "; frame-src 'self'" in page.headers["content-security-policy"]


async def test_a_cancelled_event_and_a_draft_have_nothing_to_share(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    cancelled, draft = await ada.create_event(), await ada.create_event(published=False)
    await ada.delete(f"/api/events/{cancelled['id']}")

    for event, reason in ((cancelled, "This event is cancelled."), (draft, "This event is a draft.")):
        for path in ("", "/share"):
            page = await browser.get(f"/console/events/{event['id']}{path}")
            assert reason in page.text
            assert "share-link" not in page.text
            assert "<iframe" not in page.text


async def test_an_event_of_another_organizer_is_not_shared(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    event = await foreign_event(service)

    for path in ("qr.svg", "share"):
        assert (await browser.get(f"/console/events/{event['id']}/{path}")).status_code == 403


async def test_links_to_messengers_load_nothing_from_them(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(title="Tea & cake")

    page = await browser.get(f"/console/events/{event['id']}/share")

    links = [unescape(link) for link in re.findall(r'href="(https://[^"]+)" target="_blank" rel="noopener', page.text)]
    assert [link.split("/")[2] for link in links] == [
        *("wa.me", "t.me", "www.facebook.com", "www.linkedin.com", "x.com"),
    ]
    assert all(quote(event["public_url"], safe="") in link or quote(event["public_url"]) in link for link in links)
    assert "text=Tea%20%26%20cake" in links[0]
    assert "mailto:?subject=Tea%20%26%20cake" in unescape(page.text)
    assert "script-src 'self';" in page.headers["content-security-policy"]


async def test_a_poster_says_what_when_where_and_shows_the_code(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(title="<b>Tea</b>", location_name="Studio 4", timezone="Europe/Berlin")
    other = await foreign_event(service)

    page = await browser.get(f"/console/events/{event['id']}/poster")
    foreign = await browser.get(f"/console/events/{other['id']}/poster")

    poster = page.text.partition('<article class="poster">')[2].partition("</article>")[0]
    assert all(
        text in poster
        for text in ("&lt;b&gt;Tea&lt;/b&gt;", "Studio 4", event["public_url"].partition("//")[2], "<svg")
    )
    assert foreign.status_code == 403
