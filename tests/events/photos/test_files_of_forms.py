"""Organizers send files with a form of the console, and they become photos of an event; the others are refused."""

from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from PIL import Image

from holdfast.events.photos.model import MAX_PHOTO_BYTES, MAX_PHOTOS
from holdfast.events.photos.retention import clear_photos
from holdfast.events.settings import Settings
from holdfast.kit.operations.steps import Steps
from tests.events.console.event_scene import foreign_event, stored_events
from tests.events.console.organizer_scene import hidden_field
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service, running_events
from tests.helpers.form_browser import Browser, main_text, token
from tests.helpers.photos import (
    JPEG,
    a_day_passes,
    accept_photos,
    image_keys,
    key_of,
    photo_states,
    read_photo,
    stored_files,
)
from tests.helpers.pictures import TYPES, encode_image, frames, picture

File = tuple[str, bytes]
FOREIGN = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}


def path_of(event: dict[str, Any]) -> str:
    return f"/console/events/{event['id']}/photos"


async def send(browser: Browser, path: str, *files: File, **fields: str) -> httpx2.Response:
    """Open a page, and send its form with files."""
    page = await browser.get(path)
    return await post(browser, path, files, token=token(page), once=hidden_field(page, "once"), **fields)


async def post(browser: Browser, path: str, files: Sequence[File], **fields: str) -> httpx2.Response:
    sent = [("files", (name, content, "image/jpeg")) for name, content in files]
    return await browser.http.post(path, data={"do": "upload", **fields}, files=sent)


async def test_files_of_a_form_become_photos_in_order_in_every_store(disk_or_s3: Settings) -> None:
    async with running_events(disk_or_s3) as service:
        ada, browser = await sign_in_organizer(service)
        event = await ada.create_event()
        contents = [picture(content_type, 40 + place, 30) for place, content_type in enumerate(TYPES)]

        done = await send(
            browser, path_of(event), *((f"{place}.bin", content) for place, content in enumerate(contents))
        )

        assert (done.status_code, done.headers["location"]) == (303, path_of(event))
        addresses = (await ada.get(f"/api/events/{event['id']}")).json()["data"]["image_urls"]
        assert [frames(await read_photo(service, address)) for address in addresses] == [*map(frames, contents)]
        assert set((await photo_states(service)).values()) == {"accepted"}
        page = await browser.get(path_of(event))
        assert all(key in page.text for key in await image_keys(service, event))


async def test_metadata_of_a_camera_is_removed(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    camera_picture = picture(JPEG, comment=b"at home")
    assert b"at home" in camera_picture
    await send(browser, path_of(event), ("a.jpg", camera_picture))

    [address] = (await ada.get(f"/api/events/{event['id']}")).json()["data"]["image_urls"]
    assert b"at home" not in (await service.http.get(address)).content


HUGE = encode_image(Image.new("1", (8_200, 5_000)), "image/png")
REFUSED = [
    (b"", "is empty", "ist leer"),
    (b"%PDF-1.7", "is no JPEG, PNG, WebP or GIF image", "ist kein Bild im Format JPEG, PNG, WebP oder GIF"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is no JPEG", "ist kein Bild"),
    (picture()[:-30], "breaks off before its end", "bricht vor dem Ende ab"),
    (HUGE, "has more than 40 million pixels", "hat mehr als 40 Millionen Pixel"),
    (b"x" * (MAX_PHOTO_BYTES + 1), "is larger than 5 MB", "ist größer als 5 MB"),
]


@pytest.mark.parametrize("language", ["en", "de"])
async def test_a_file_that_is_no_photo_is_refused_by_its_name_and_the_others_are_added(
    service: Service, language: str
) -> None:
    ada, browser = await sign_in_organizer(service, language=language)
    event = await ada.create_event()
    named = [(f"{place} <b>.jpg", content) for place, (content, *_) in enumerate(REFUSED)]

    answer = await send(browser, path_of(event), *named, ("good.jpg", picture()))

    assert answer.status_code == 422
    for place, reasons in enumerate(REFUSED):
        assert f"{place} <b>.jpg {reasons[1 if language == 'en' else 2]}" in main_text(answer)
    assert "<b>.jpg" not in answer.text
    assert "good.jpg" not in answer.text
    assert len(await image_keys(service, event)) == len(await photo_states(service)) == len(stored_files(service)) == 1
    assert stored_files(service, "uploads") == set()


async def test_a_form_without_a_file_says_so(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    chosen = await send(browser, path_of(event), ("", b""))
    typed = await browser.send(path_of(event), do="upload")

    for answer in (chosen, typed):
        assert (answer.status_code, "Choose at least one photo." in answer.text) == (422, True)


async def test_an_event_shows_as_many_photos_as_it_may_and_the_rest_is_refused(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    keys = [key_of(ada.id, letter) for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"]
    assert len(keys) == MAX_PHOTOS - 1
    await accept_photos(service, *keys)
    event = await ada.create_event(image_keys=keys)

    answer = await send(browser, path_of(event), ("last.jpg", picture()), ("more.jpg", picture(JPEG, 41)))

    assert answer.status_code == 422
    assert "more.jpg is one too many: an event has at most 50 photos" in main_text(answer)
    assert "last.jpg" not in answer.text
    assert len(await image_keys(service, event)) == len(await photo_states(service)) == MAX_PHOTOS


async def test_a_form_with_more_files_than_an_event_may_show_changes_nothing(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    answer = await send(browser, path_of(event), *[(f"{number}.jpg", b"") for number in range(MAX_PHOTOS + 1)])

    assert (answer.status_code, await image_keys(service, event)) == (413, [])


async def test_an_organizer_keeps_no_more_than_its_quota(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"photos_per_organizer": 1})) as service:
        ada, browser = await sign_in_organizer(service)
        event = await ada.create_event()

        answer = await send(browser, path_of(event), ("a.jpg", picture()), ("b.jpg", picture(JPEG, 41)))

        assert "b.jpg is one too many: you have as many photos as an organizer may have" in main_text(answer)
        assert len(await image_keys(service, event)) == len(stored_files(service)) == 1


async def test_an_organizer_with_too_many_unused_photos_reads_to_wait(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await service.run_sql(
        "insert into photos (key, organizer_id, state, content_type, content_length)"
        " select 'photos/' || %(id)s || '/' || lpad(n::text, 22, 'x') || '.jpg', %(id)s, 'accepted', 'image/jpeg', 1"
        " from generate_series(1, 200) as n",
        id=ada.id,
    )

    answer = await send(browser, path_of(event), ("a.jpg", picture()))

    assert "a.jpg is one too many: 200 photos of yours are shown by no event" in main_text(answer)
    assert (await image_keys(service, event), stored_files(service)) == ([], set())


async def test_a_form_that_is_sent_twice_adds_each_photo_once(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    page = await browser.get(path_of(event))
    same = {"token": token(page), "once": hidden_field(page, "once")}

    for _ in range(2):
        answer = await post(browser, path_of(event), [("a.jpg", picture()), ("b.jpg", picture(JPEG, 41))], **same)
        assert answer.status_code == 303

    assert len(await image_keys(service, event)) == 2


async def test_a_form_that_breaks_off_changes_nothing_and_leaves_nothing_after_a_day(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    page = await browser.get(path_of(event))
    request = browser.http.build_request(
        "POST",
        path_of(event),
        data={"token": token(page), "do": "upload"},
        files=[("files", (name, picture(), JPEG)) for name in ("a.jpg", "b.jpg")],
    )

    answer = await browser.http.post(path_of(event), content=request.read()[:-100], headers=_kind(request))

    assert (answer.status_code, await image_keys(service, event)) == (400, [])
    assert len(stored_files(service)) == 1
    await a_day_passes(service)
    await clear_photos(Steps(service.database))
    assert (await photo_states(service), stored_files(service)) == ({}, set())


def _kind(request: httpx2.Request) -> dict[str, str]:
    return {"Content-Type": request.headers["content-type"]}


async def test_no_file_is_kept_for_the_event_of_another_organizer(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    mine, other = await ada.create_event(), await foreign_event(service)
    mark = token(await browser.get(path_of(mine)))
    before = await stored_events(service)

    answers = [
        await post(browser, path, [("a.jpg", picture())], token=mark)
        for path in (path_of(other), "/console/events/99999/photos", "/console/events/x/photos")
    ]

    assert [response.status_code for response in answers] == [403, 404, 404]
    assert (await stored_events(service), await photo_states(service), stored_files(service)) == (before, {}, set())


async def test_a_file_sent_by_another_site_or_without_a_session_is_not_stored(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    mark = token(await browser.get(path_of(event)))
    sent = [("files", ("a.jpg", picture(), JPEG))]
    good = {"token": mark, "do": "upload"}

    foreign = await browser.http.post(path_of(event), data=good, headers=FOREIGN, files=sent)
    forged = await browser.http.post(path_of(event), data={**good, "token": "1-forged"}, files=sent)
    bare = await browser.http.post(path_of(event), files=sent)
    nobody = await Browser(service).http.post(path_of(event), data=good, files=sent)

    assert [response.status_code for response in (foreign, forged, bare, nobody)] == [403, 403, 403, 303]
    assert nobody.headers["location"].startswith("/sign-in")
    assert (await image_keys(service, event), await photo_states(service), stored_files(service)) == ([], {}, set())
