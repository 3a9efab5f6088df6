"""Accepted photos get their sizes soon afterwards, pages find them, and they go with their photo."""

import io
from collections.abc import AsyncIterator

import pytest
from PIL import Image

from holdfast.events.photos import sizes
from holdfast.events.photos.model import ImageAttributes, PhotoSizes, size_name
from holdfast.events.photos.model import image_attributes as picture_of
from holdfast.events.photos.retention import clear_photos
from holdfast.events.photos.sizes import find_sizes
from holdfast.events.settings import Settings
from holdfast.kit.background import row_work
from holdfast.kit.operations.steps import Steps
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually, running_events
from tests.helpers.photos import (
    a_day_passes,
    accept_photos,
    add_photos,
    key_of,
    photo_states,
    stored_sizes,
    upload,
    with_photo,
)
from tests.helpers.pictures import TYPES, picture
from tests.helpers.row_work import handle_all

MEDIA = "http://events.test/media"


@pytest.fixture
async def service(disk_or_s3: Settings) -> AsyncIterator[Service]:
    async with running_events(disk_or_s3) as service:
        yield service


async def make_sizes(service: Service) -> int:
    return await handle_all(sizes.SizesWork(service.database))


async def image_attributes(service: Service, key: str) -> ImageAttributes:
    """How a page shows a photo."""
    sizes = await service.database.read(lambda reader: find_sizes(reader, [key]))
    return picture_of(key, sizes.get(key), service.database.resources.settings)


async def test_a_page_shows_the_original_until_there_are_sizes_and_then_these(service: Service) -> None:
    _, key = await with_photo(await service.organizer(), service)
    assert await image_attributes(service, key) == ImageAttributes(f"{MEDIA}/{key}", "", None, None)

    assert await make_sizes(service) == 1

    small, usual, largest = (f"{MEDIA}/{key}.w{slot}.webp" for slot in (480, 960, 1920))
    assert await image_attributes(service, key) == ImageAttributes(
        usual, f"{small} 480w, {usual} 960w, {largest} 1000w", 1000, 10
    )
    assert await make_sizes(service) == 0


@pytest.mark.parametrize("content_type", TYPES)
async def test_sizes_have_their_type_and_are_immutable_for_caches(service: Service, content_type: str) -> None:
    ada = await service.organizer()
    key = await upload(service, ada, picture(content_type, 500, 20), content_type)
    await ada.create_event(image_keys=[key])
    await make_sizes(service)

    page = await image_attributes(service, key)
    responses = [await service.http.get(candidate.split()[0]) for candidate in page.srcset.split(", ")]

    assert [response.status_code for response in responses] == [200, 200]
    for response, shape in zip(responses, [(480, 19), (500, 20)], strict=True):
        assert response.headers["content-type"] == "image/webp"
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["x-content-type-options"] == "nosniff"
        with Image.open(io.BytesIO(response.content)) as image:
            assert (image.format, image.size) == ("WEBP", shape)
    again = await service.http.get(page.src, headers={"If-None-Match": responses[1].headers["etag"]})
    assert again.status_code == 304


async def test_sizes_that_do_not_exist_are_not_found(service: Service) -> None:
    _, key = await with_photo(await service.organizer(), service, 40, 30)
    await make_sizes(service)

    for name in (
        *(size_name(key, 960), f"{key}.w40.webp", f"{key}.w481.webp", f"{key}.w480.jpg", f"{key}.w480.webp.w480.webp"),
        *(f"{key}.w480.webp%0a", "x.w480.webp", "photos/x.w480.webp", f"uploads/{key}.w480.webp", f"{key}.w480"),
    ):
        response = await service.http.get(f"{MEDIA}/{name}")
        assert (response.status_code, response.headers["cache-control"]) == (404, "no-store"), name
    assert (await service.http.get(f"{MEDIA}/{size_name(key, 40)}")).status_code == 200


async def test_a_photo_is_added_before_its_sizes_are_made(service: Service) -> None:
    ada = await service.organizer()
    event, first = await with_photo(ada, service)
    second = await upload(service, ada)

    assert (await add_photos(ada, event, key=second)).status_code == 201

    assert [await stored_sizes(service, key) for key in (first, second)] == [[], []]
    assert await make_sizes(service) == 2
    assert [len(await stored_sizes(service, key)) for key in (first, second)] == [3, 1]


async def test_photos_get_their_sizes_as_soon_as_they_are_accepted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each photo is accepted, and then locked for a moment by the event that shows it.
    monkeypatch.setattr(row_work, "POLL_SECONDS", 3_600.0)
    ada = await service.organizer()
    async with run_in_background(row_work.run(service.database, sizes.SizesWork(service.database))):
        for _ in range(2):
            _, key = await with_photo(ada, service)

            async def has_sizes(key: str = key) -> bool:
                return (await image_attributes(service, key)).srcset != ""

            await eventually(has_sizes, seconds=60)


async def test_photos_that_are_older_than_sizes_get_them_too(service: Service) -> None:
    ada = await service.organizer()
    keys = [key_of(ada.id, letter) for letter in "abc"]
    await accept_photos(service, *keys)
    await ada.create_event(image_keys=keys)
    # As those are that were stored before there were sizes.
    await service.run_sql("update photos set inserted_at = now() - interval '1 year', scaling_due = now()")

    assert await make_sizes(service) == 3

    assert [len(await stored_sizes(service, key)) for key in keys] == [1, 1, 1]


async def test_photos_of_an_event_are_found_in_one_statement_with_their_shape(service: Service) -> None:
    ada = await service.organizer()
    _, wide = await with_photo(ada, service, 1000, 10)
    _, tall = await with_photo(ada, service, 10, 100)
    await make_sizes(service)
    _, late = await with_photo(ada, service)

    sizes = await service.database.read(lambda reader: find_sizes(reader, [tall, late, wide, "unknown"]))

    assert sizes == {wide: PhotoSizes(wide, 1000, 10, [480, 960, 1000]), tall: PhotoSizes(tall, 10, 100, [10])}


async def test_sizes_are_deleted_with_their_photo(service: Service) -> None:
    ada = await service.organizer()
    event, key = await with_photo(ada, service)
    await make_sizes(service)
    await ada.delete(f"/api/events/{event['id']}/photos", params={"key": key})
    await a_day_passes(service)

    await clear_photos(Steps(service.database))

    assert await photo_states(service) == {}
    assert await stored_sizes(service, key) == []
    assert (await service.http.get(f"{MEDIA}/{key}")).status_code == 404


async def test_an_organizer_may_have_as_many_photos_with_sizes_as_without(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"photos_per_organizer": 2})) as service:
        ada = await service.organizer()
        event, _ = await with_photo(ada, service)
        await make_sizes(service)

        assert (await add_photos(ada, event, key=await upload(service, ada))).status_code == 201


async def test_sizes_are_found_at_the_cdn_where_there_is_one(settings: Settings) -> None:
    key = key_of(7, "a")
    cdn = settings.model_copy(update={"cdn_base_url": "https://cdn.example.com/"})

    picture = picture_of(key, PhotoSizes(key, 4000, 3000, [480, 960, 1920]), cdn)

    assert picture.src == f"https://cdn.example.com/{key}.w960.webp"
    assert picture.srcset.endswith(f", https://cdn.example.com/{key}.w1920.webp 1920w")


async def test_sizes_are_made_in_turns_of_organizers(service: Service) -> None:
    ada, ben, eve = [await service.organizer() for _ in range(3)]
    many = [key_of(eve.id, letter) for letter in "abcde"]
    await accept_photos(service, key_of(ada.id, "a"), key_of(ben.id, "a"))
    await accept_photos(service, *many)
    claims = sizes.SizesWork(service.database)

    organizers = [(await claims.lease(1, (), scan_all=True))[0].owner for _ in range(4)]

    assert sorted(organizers[:3]) == [ada.id, ben.id, eve.id]
    assert organizers[3] == eve.id
