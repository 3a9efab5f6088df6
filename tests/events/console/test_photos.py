"""Organizers change the photos of an event in the console."""

from typing import Any
from urllib.parse import quote

from tests.events.console.event_scene import foreign_event, stored_events
from tests.events.console.organizing import sign_in_organizer
from tests.events.photos.site import site_of
from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import token
from tests.helpers.photos import image_keys, read_photo
from tests.helpers.pictures import frames, picture

LETTERS = "ab"


async def with_photos(service: Service, owner: Client) -> tuple[dict[str, Any], list[str]]:
    """An event that shows two photos, and their keys."""
    event = await owner.create_event()
    keys = [f"photos/{owner.id}/{letter * 22}.jpg" for letter in LETTERS]
    await service.run_sql(
        "insert into photos (key, organizer_id, state, content_type, content_length)"
        " select unnest(%(keys)s::text[]), %(owner)s, 'accepted', 'image/jpeg', 1",
        keys=keys,
        owner=owner.id,
    )
    await service.run_sql("update events set image_keys = %(keys)s where id = %(id)s", keys=keys, id=event["id"])
    return event, keys


async def test_a_photo_is_put_first_and_another_one_removed(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event, (first, second) = await with_photos(service, ada)
    path = f"/console/events/{event['id']}/photos"

    moved = await browser.send(path, do="first", key=second)
    assert (moved.status_code, await image_keys(service, event)) == (303, [second, first])

    removed = await browser.send(path, do="remove", key=second)
    assert (removed.status_code, await image_keys(service, event)) == (303, [first])


async def test_a_removed_photo_is_put_back_in_its_place_with_one_button(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event, (first, second) = await with_photos(service, ada)
    path = f"/console/events/{event['id']}/photos"

    for key, button in ((first, "restore first"), (second, "restore")):
        removed = await browser.send(path, do="remove", key=key)
        page = await browser.get(removed.headers["location"])
        assert "The photo is removed." in page.text
        assert f'name="key" value="{key}"' in page.text
        assert f'name="do" value="{button}"' in page.text
        await browser.send(path, do=button, key=key)
        assert await image_keys(service, event) == [first, second]

    assert "The photo is removed." not in (await browser.get(f"{path}?done={quote(first)}")).text


async def test_a_removed_photo_of_another_organizer_cannot_be_put_back_into_an_event(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event, keys = await with_photos(service, ada)
    bob = await service.organizer()
    _, (foreign, _) = await with_photos(service, bob)

    answer = await browser.send(f"/console/events/{event['id']}/photos", do="restore", key=foreign)

    assert (answer.status_code, await image_keys(service, event)) == (422, keys)


async def test_an_event_without_photos_shows_the_picture_that_people_see(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    page = await browser.get(f"/console/events/{event['id']}/photos")

    assert '<svg class="cover"' in page.text
    assert "Made from the title; add a photo to replace it." in page.text


async def test_a_photo_is_added_from_an_address_on_the_web(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path = f"/console/events/{event['id']}/photos"
    async with site_of(service) as site:
        done = await browser.send(path, do="add", url=site.publish("/poster.png", picture("image/png"), "image/png"))

    assert (done.status_code, done.headers["location"]) == (303, path)
    [key] = await image_keys(service, event)
    assert frames(await read_photo(service, f"/media/{key}")) == frames(picture("image/png"))
    assert key in (await browser.get(path)).text


async def test_an_address_that_cannot_be_a_photo_is_refused_beside_the_field(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path = f"/console/events/{event['id']}/photos"

    for url in ("", "ftp://example.com/a.jpg", "http://127.0.0.1/a.jpg", 'javascript:alert("1")', "x" * 2_001):
        answer = await browser.send(path, do="add", url=url)
        assert (answer.status_code, 'id="url-note"' in answer.text) == (422, True), url
        assert ' aria-invalid="true"' in answer.text

    assert await image_keys(service, event) == []


async def test_unknown_keys_and_buttons_change_no_photos(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event, keys = await with_photos(service, ada)
    path = f"/console/events/{event['id']}/photos"

    answers = [
        await browser.send(path, do="first", key="photos/1/x.jpg"),
        await browser.send(path, do="remove", key="photos/1/x.jpg"),
        await browser.send(path, do="first", key=""),
        await browser.send(path, do="burn", key=keys[0]),
    ]

    assert [answer.status_code for answer in answers] == [422, 404, 422, 400]
    assert await image_keys(service, event) == keys


async def test_the_photos_of_another_organizer_cannot_be_reached(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    mine = await ada.create_event()
    other, keys = await with_photos(service, await service.organizer("Other Events"))
    hidden = await foreign_event(service)
    own_page = f"/console/events/{mine['id']}/photos"
    mark = token(await browser.get(own_page))
    before = await stored_events(service)

    answers = [await browser.get(f"/console/events/{other['id']}/photos")]
    for id in (other["id"], hidden["id"]):
        path = f"/console/events/{id}/photos"
        for do, more in (
            ("first", {"key": keys[1]}),
            ("remove", {"key": keys[0]}),
            ("add", {"url": "https://x.example"}),
        ):
            answers.append(await browser.http.post(path, data={"token": mark, "do": do, **more}))
    borrowed = await browser.http.post(own_page, data={"token": mark, "do": "first", "key": keys[0]})

    assert {answer.status_code for answer in answers} == {403}
    assert borrowed.status_code == 422
    assert await stored_events(service) == before


async def test_a_form_of_another_site_changes_no_photos(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event, keys = await with_photos(service, ada)
    path = f"/console/events/{event['id']}/photos"
    mark = token(await browser.get(path))

    sent = {"token": mark, "do": "remove", "key": keys[0]}
    foreign = await browser.http.post(path, data=sent, headers={"Origin": "https://evil.example"})

    assert (foreign.status_code, await image_keys(service, event)) == (403, keys)
