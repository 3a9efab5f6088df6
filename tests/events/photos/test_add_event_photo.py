"""A photo is added to an event, from a public address or an upload, by a caller who may change the event."""

import asyncio
from typing import Any

import pytest

from holdfast.events.settings import Settings
from tests.events.photos.site import PhotoSite, site_of
from tests.helpers.events_service import Service, running_events
from tests.helpers.photos import (
    add_photos,
    failing_fields,
    nothing_is_left,
    presign,
    read_photo,
    stored_files,
    upload,
)
from tests.helpers.pictures import TYPES, frames, picture


@pytest.mark.parametrize("content_type", TYPES)
async def test_a_photo_is_downloaded_and_shown(service: Service, site: PhotoSite, content_type: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    original = picture(content_type)

    response = await add_photos(ada, event, url=site.publish("/poster", original, content_type))

    added = response.json()["data"]
    assert response.status_code == 201
    assert added == {
        "key": added["key"],
        "url": f"http://events.test/media/{added['key']}",
        "event_id": event["id"],
        "image_keys": [added["key"]],
        "image_urls": [added["url"]],
        "primary_image_url": added["url"],
    }
    assert added["key"].startswith(f"photos/{ada.id}/")
    assert await read_photo(service, added["url"]) == original
    data = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    assert (data["image_urls"], data["primary_image_url"]) == ([added["url"]], added["url"])


async def test_photos_are_appended_and_the_first_stays_primary(service: Service, site: PhotoSite) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    url = site.publish("/poster.jpg", picture())

    first, second = [(await add_photos(ada, event, url=url)).json()["data"] for _ in range(2)]

    assert second["image_keys"] == [first["key"], second["key"]]
    assert second["primary_image_url"] == first["url"]
    assert first["key"] != second["key"]


async def test_a_downloaded_photo_has_lost_what_the_camera_noted(service: Service, site: PhotoSite) -> None:
    ada = await service.organizer()
    original = picture(comment=b"at home")

    added = (await add_photos(ada, await ada.create_event(), url=site.publish("/a.jpg", original))).json()["data"]

    assert b"at home" not in await read_photo(service, added["url"])
    assert frames(await read_photo(service, added["url"])) == frames(original)


async def test_photos_are_kept_in_s3_as_on_the_disk(in_s3: Settings) -> None:
    async with running_events(in_s3) as service, site_of(service) as site:
        ada = await service.organizer()
        added = (await add_photos(ada, await ada.create_event(), url=site.publish("/a.jpg", picture()))).json()["data"]

        assert await read_photo(service, added["url"]) == picture()
        assert stored_files(service) == set()


@pytest.mark.parametrize("declared", ["", "application/octet-stream", "binary/octet-stream", "image/jpg", "IMAGE/JPEG"])
async def test_a_photo_is_accepted_whatever_type_its_site_declares(
    service: Service, site: PhotoSite, declared: str
) -> None:
    ada = await service.organizer()

    response = await add_photos(ada, await ada.create_event(), url=site.publish("/photo", picture(), declared))

    assert response.json()["data"]["key"].endswith(".jpg")


async def test_an_upload_is_added_by_its_key(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    key = await upload(service, ada)

    response = await add_photos(ada, event, key=key)

    assert response.status_code == 201
    assert response.json()["data"]["image_keys"] == [key]
    assert (await add_photos(ada, event, key=key)).json()["data"]["image_keys"] == [key]


async def test_a_key_without_an_uploaded_photo_is_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    never, bad = (await presign(ada, picture()))["key"], await upload(service, ada, b"<html>")

    for key in (never, bad, "nothing/here.png"):
        assert failing_fields(await add_photos(ada, event, key=key)).keys() == {"key"}
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["image_urls"] == []


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({}, "url"),
        ({"url": "http://example.com/a.jpg", "key": "a"}, "url"),
        ({"url": None}, "url"),
        ({"url": 7}, "url"),
        ({"url": ""}, "url"),
        ({"url": "http://example.com/" + "x" * 2000}, "url"),
        ({"url": "poster.jpg"}, "url"),
        ({"link": "http://example.com/a.jpg"}, "link"),
    ],
)
async def test_a_photo_needs_exactly_one_source(service: Service, source: dict[str, Any], field: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert field in failing_fields(await add_photos(ada, event, **source))
    await nothing_is_left(service, ada, event)


async def test_a_photo_for_an_event_the_caller_may_not_change_is_not_downloaded(
    service: Service, site: PhotoSite
) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event = await ada.create_event()
    url = site.publish("/a.jpg", picture())

    assert (await add_photos(ben, event, url=url)).json()["code"] == "forbidden"
    assert (await add_photos(ben, {"id": 4711}, url=url)).json()["code"] == "not_found"
    assert (await add_photos(service.anonymous, event, url=url)).json()["code"] == "missing_api_key"
    assert site.request_count == 0
    await nothing_is_left(service, ada, event)
    assert (await add_photos(await service.admin(), event, url=url)).status_code == 201


async def test_photos_added_at_once_are_all_there(service: Service, site: PhotoSite) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    url = site.publish("/a.jpg", picture())

    added = await asyncio.gather(*(add_photos(ada, event, url=url) for _ in range(8)))

    keys = {response.json()["data"]["key"] for response in added}
    urls = (await ada.get(f"/api/events/{event['id']}")).json()["data"]["image_urls"]
    assert len(keys) == 8
    assert {url.removeprefix("http://events.test/media/") for url in urls} == keys
