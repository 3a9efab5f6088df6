"""An organizer chooses an accent, a logo and words about itself. Its pages carry them."""

import re
from html import unescape

import httpx2

from holdfast.events.organizers import accounts
from holdfast.events.paths import event_path
from holdfast.events.photos.retention import clear_photos
from holdfast.events.photos.sizes import SizesWork
from holdfast.kit.operations.steps import Steps
from tests.events.console.event_scene import foreign_event
from tests.events.console.organizing import sign_in_organizer
from tests.events.pages.own_registration import register_and_settle
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser, token
from tests.helpers.photos import a_day_passes, photo_states
from tests.helpers.pictures import picture
from tests.helpers.row_work import handle_all

BRANDING_PATH = "/console/look"


async def upload(browser: Browser, content: bytes, **fields: str) -> httpx2.Response:
    """Send the form with a file as the logo, and with the colour and the words that it shows."""
    page = await browser.get(BRANDING_PATH)
    data = {"token": token(page), "do": "save", **form_values(page), **fields}
    return await browser.http.post(BRANDING_PATH, data=data, files={"files": ("logo.png", content, "image/png")})


def form_values(page: httpx2.Response) -> dict[str, str]:
    [accent], [about] = (
        re.findall(pattern, page.text, re.DOTALL)
        for pattern in (r'name="accent" type="color" value="([^"]+)"', r'<textarea[^>]*name="about"[^>]*>\n([^<]*)<')
    )
    return {"accent": accent, "about": unescape(about)}


async def looks(service: Service) -> list[tuple[str | None, ...]]:
    return await service.run_sql("select accent, logo_key, about from users where role = 'organizer' order by id")


async def test_pages_embeds_and_tickets_carry_the_look_of_their_organizer_alone(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event, other = await ada.create_event(), await foreign_event(service)
    [ticket] = await register_and_settle(service, ada, event, "ann")
    outcome = await Visitor(service).register(event["id"], "bea@example.com")

    saved = await browser.send(BRANDING_PATH, do="save", accent="#8A1F6B", about="We draw.\r\nEvery <b>evening</b>.")
    uploaded = await upload(browser, picture("image/png"))
    assert await handle_all(SizesWork(service.database)) == 1
    await service.drop_caches()

    assert [answer.headers.get("location") for answer in (saved, uploaded)] == [f"{BRANDING_PATH}?done=saved"] * 2
    list_page = f"/organizers/{ada.slug}"
    paths = (
        event_path(ada.slug, event["id"]),
        list_page,
        f"/events/{event['id']}/embed",
        ticket,
        outcome,
        BRANDING_PATH,
    )
    pages = [(await browser.get(path)).text for path in paths]
    [style] = {path for page in pages for path in re.findall(r'href="(/accents/[^"]+)"', page)}
    [logo] = {path for page in pages for path in re.findall(r'class="logo[^"]*" src="([^"]+)"', page)}
    assert all(style in page and logo in page and "accented" in page for page in pages)
    sheet = await service.http.get(style)
    assert (sheet.headers["content-type"], "immutable" in sheet.headers["cache-control"]) == (
        "text/css; charset=utf-8",
        True,
    )
    assert ".accented { --accent: #8a1f6b; " in sheet.text
    assert (await service.http.get(logo)).headers["content-type"] == "image/webp"
    assert "We draw.\nEvery &lt;b&gt;evening&lt;/b&gt;." in pages[1]
    embed_of_other = await service.http.get(f"/events/{other['id']}/embed")
    assert embed_of_other.status_code == 200
    assert "/accents/" not in embed_of_other.text


async def test_a_colour_that_is_too_light_is_refused_with_the_nearest_that_passes(service: Service) -> None:
    _, browser = await sign_in_organizer(service)

    refusal = await browser.send(BRANDING_PATH, do="save", accent="#ffee88", about="We draw.")

    assert refusal.status_code == 422
    assert "#ffee88 is too light for white text. The nearest that passes is #806d00." in refusal.text
    assert 'value="#ffee88"' in refusal.text
    assert "We draw.</textarea>" in refusal.text
    for wrong in ("red", "#fff", "#12345g", "#8a1f6b;}"):
        answer = await browser.send(BRANDING_PATH, do="save", accent=wrong, about="")
        assert "Enter a colour, such as #0d6563." in answer.text
    assert await looks(service) == [(None, None, None)]
    # One button takes the colour that the page names, another one takes it back.
    await browser.send(BRANDING_PATH, do="accent #806d00", accent="#ffee88", about="We draw.")
    assert await looks(service) == [("#806d00", None, "We draw.")]
    await browser.send(BRANDING_PATH, do="accent #0d6563", accent="#806d00", about="")
    assert await looks(service) == [(None, None, None)]


async def test_a_logo_stays_until_it_is_replaced_and_is_then_deleted_after_a_day(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await upload(browser, picture("image/png"))
    [(_, first, _)] = await looks(service)
    # An event that shows the same photo, and lets go of it, changes nothing.
    event = await ada.create_event(image_keys=[first])
    await ada.patch(f"/api/events/{event['id']}", {"event": {"image_keys": []}})
    await a_day_passes(service)
    await clear_photos(Steps(service.database))
    assert await photo_states(service) == {first: "accepted"}

    no_picture = await upload(browser, b"no picture")
    assert no_picture.status_code == 422
    assert "<bdi>logo.png</bdi> " in no_picture.text
    assert [logo for _, logo, _ in await looks(service)] == [first]
    await upload(browser, picture("image/png"))
    [(_, second, _)] = await looks(service)
    await a_day_passes(service)
    await clear_photos(Steps(service.database))
    assert await photo_states(service) == {second: "accepted"}

    await browser.send(BRANDING_PATH, do="remove")
    await a_day_passes(service)
    await clear_photos(Steps(service.database))
    assert await photo_states(service) == {}


async def test_an_unconfirmed_organizer_has_no_accent_logo_and_words(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await browser.send(BRANDING_PATH, do="save", accent="#8a1f6b", about="We draw.")
    await upload(browser, picture("image/png"))
    await service.set_proof_age(ada, None)
    await service.drop_caches()

    for path in (event_path(ada.slug, event["id"]), f"/organizers/{ada.slug}", f"/events/{event['id']}/embed"):
        page = (await service.http.get(path)).text
        assert not any(part in page for part in ("/accents/", 'class="logo', "We draw.")), path


async def test_the_look_of_an_ended_organizer_is_deleted(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await browser.send(BRANDING_PATH, do="save", accent="#8a1f6b", about="We draw.")
    await upload(browser, picture("image/png"))

    await service.set_proof_age(ada, None)
    await service.database.transact(lambda tx: accounts.end_unproved(tx, ada.id, None))

    assert await service.run_sql("select accent, logo_key, about from users where id = %(id)s", id=ada.id) == [
        (None, None, None)
    ]
    await a_day_passes(service)
    await clear_photos(Steps(service.database))
    assert await photo_states(service) == {}


async def test_the_style_of_an_invalid_accent_is_answered_with_404(service: Service) -> None:
    for name in ("ffee88-00000000", "8a1f6b-00000000", "8a1f6b", "8A1F6B-1", "x"):
        assert (await service.http.get(f"/accents/{name}.css")).status_code == 404
