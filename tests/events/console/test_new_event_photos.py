"""The form of a new event takes photos, and keeps them while something else in it is wrong."""

import re
from html import unescape

import httpx2

from tests.events.console.event_scene import FREE, event_form, stored_events
from tests.events.console.organizer_scene import hidden_field
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser, main_text, token
from tests.helpers.photos import JPEG, accept_photos, key_of, photo_states, stored_files
from tests.helpers.pictures import picture

PAGE = "/console/events/new"


async def send(browser: Browser, *contents: bytes, **fields: str) -> httpx2.Response:
    """Send the form of a new event with some files."""
    page = await browser.get(PAGE)
    sent = [("files", (f"{place}.jpg", content, JPEG)) for place, content in enumerate(contents)]
    data = {"token": token(page), "once": hidden_field(page, "once"), **event_form(**FREE), **fields}
    return await browser.http.post(PAGE, data=data, files=sent)


def checked_photos(page: httpx2.Response) -> dict[str, str]:
    """The photos that a form has kept: the names of its fields with their keys."""
    checkboxes: list[tuple[str, str]] = re.findall(
        r'type="checkbox" name="(photo[0-9]+)" value="([^"]+)" checked', page.text
    )
    return {name: unescape(key) for name, key in checkboxes}


async def photo_keys(service: Service) -> list[list[str]]:
    return [keys for (keys,) in await service.run_sql("select image_keys from events order by id")]


async def test_an_event_is_created_with_its_photos(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)

    done = await send(browser, picture(), picture("image/png"))

    [event] = (await ada.get("/api/events")).json()["data"]
    assert (done.status_code, done.headers["location"]) == (303, f"/console/events/{event['id']}?done=published")
    assert [url[-4:] for url in event["image_urls"]] == [".jpg", ".png"]
    assert (await service.http.get(event["primary_image_url"])).status_code == 200


async def test_photos_are_kept_while_a_field_is_wrong(service: Service) -> None:
    _, browser = await sign_in_organizer(service)

    wrong = await send(browser, picture(), picture(JPEG, 41), picture(JPEG, 42), capacity="many")
    keys = checked_photos(wrong)
    assert (wrong.status_code, [*keys]) == (422, ["photo1", "photo2", "photo3"])
    assert all(f'src="http://events.test/media/{key}"' in wrong.text for key in keys.values())
    chosen = {name: key for name, key in keys.items() if name != "photo2"}
    done = await send(browser, picture(JPEG, 43), **chosen)

    assert done.status_code == 303
    [stored_keys] = await photo_keys(service)
    assert stored_keys[:2] == [*chosen.values()]
    assert len(stored_keys) == 3


async def test_a_file_that_is_no_photo_is_named_before_the_event_is_created(service: Service) -> None:
    _, browser = await sign_in_organizer(service)

    answer = await send(browser, picture(), b"no picture", title="Pottery")

    assert (answer.status_code, await stored_events(service)) == (422, [])
    assert "1.jpg is no JPEG, PNG, WebP or GIF image" in main_text(answer)
    assert len(checked_photos(answer)) == len(stored_files(service)) == 1
    assert 'value="Pottery"' in answer.text


async def test_photos_can_be_uploaded_before_the_form_is_complete(service: Service) -> None:
    _, browser = await sign_in_organizer(service)

    first = await send(browser, picture(), do="upload", title="", price="cheap")
    second = await send(browser, picture(JPEG, 41), do="upload", **checked_photos(first))

    assert (first.status_code, second.status_code, await stored_events(service)) == (200, 200, [])
    assert 'value="cheap"' in first.text
    assert ' aria-invalid="true"' not in first.text
    assert checked_photos(second).items() >= checked_photos(first).items()
    assert len(checked_photos(second)) == len(await photo_states(service)) == 2


async def test_a_photo_of_another_organizer_is_neither_shown_nor_used(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    other = await service.organizer("Other Events")
    theirs = key_of(other.id, "a")
    await accept_photos(service, theirs)

    answer = await send(browser, do="upload", photo1=theirs, photo2="photos/1/x.jpg", photo3="\0")
    sent = await send(browser, photo1=theirs)

    assert (answer.status_code, checked_photos(answer)) == (200, {})
    assert "/media/" not in answer.text
    assert (sent.status_code, "no uploaded photo has the key" in sent.text) == (422, True)
    assert await stored_events(service) == []


async def test_a_copy_shows_the_photos_of_the_event_and_new_ones(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await accept_photos(service, key_of(ada.id, "a"))
    event = await ada.create_event(image_keys=[key_of(ada.id, "a")])

    done = await send(browser, picture(), copy=str(event["id"]))

    assert done.status_code == 303
    _, copied = await photo_keys(service)
    assert copied[0] == key_of(ada.id, "a")
    assert len(copied) == 2


async def test_more_photos_than_an_event_may_show_create_no_event(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    keys = [key_of(ada.id, letter) for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"]
    await accept_photos(service, *keys)

    answer = await send(browser, picture(), **{f"photo{place}": key for place, key in enumerate(keys)})

    assert (answer.status_code, await stored_events(service)) == (422, [])
    assert "at most 50" in main_text(answer)
