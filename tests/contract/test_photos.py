"""Photos of events, and the uploads they begin as."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import AddedPhoto, Event, Photos, Upload, failing_fields, one, refusal
from tests.events.photos.site import PhotoSite, site_of
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.photos import presign, put_upload, read_photo, upload
from tests.helpers.pictures import TYPES, picture


@pytest.fixture
async def site(service: Service) -> AsyncIterator[PhotoSite]:
    async with site_of(service) as site:
        yield site


async def with_photos(service: Service, client: Client, count: int = 3) -> tuple[str, list[str]]:
    """The address of an event with photos, and their keys."""
    keys = [await upload(service, client) for _ in range(count)]
    event = await client.create_event(image_keys=keys)
    return f"/api/events/{event['id']}", keys


@requirement("photos.image-keys", "events.images")
async def test_photos_are_attached_in_order_when_an_event_is_created(service: Service) -> None:
    ada = await service.organizer()
    path, keys = await with_photos(service, ada)

    event = one(await ada.get(path), Event)

    assert [url.endswith(key) for url, key in zip(event.image_urls, keys, strict=True)] == [True] * 3
    assert event.primary_image_url == event.image_urls[0]


@requirement("photos.image-keys", "events.images", "events.update")
async def test_photos_are_put_in_another_order_and_taken_off_by_an_update(service: Service) -> None:
    ada = await service.organizer()
    path, keys = await with_photos(service, ada)
    before = one(await ada.get(path), Event)

    turned = one(await ada.patch(path, {"event": {"image_keys": keys[::-1]}}), Event)
    empty = one(await ada.patch(path, {"event": {"image_keys": []}}), Event)

    assert turned.image_urls == before.image_urls[::-1]
    assert (empty.image_urls, empty.primary_image_url) == ([], None)


@requirement("photos.add", "photos.add.image")
@pytest.mark.parametrize("content_type", TYPES)
async def test_a_photo_is_downloaded_and_appended(service: Service, site: PhotoSite, content_type: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    path = f"/api/events/{event['id']}/photos"
    url = site.publish("/poster", picture(content_type), content_type)

    first = one(await ada.post(path, {"url": url}), AddedPhoto, 201)
    second = one(await ada.post(path, {"url": url}), AddedPhoto, 201)

    assert (first.event_id, first.image_keys, first.image_urls) == (event["id"], [first.key], [first.url])
    assert second.image_keys == [first.key, second.key]
    assert second.primary_image_url == first.url == first.primary_image_url
    assert await read_photo(service, str(first.url)) == picture(content_type)
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).image_urls == second.image_urls


@requirement("photos.add.url")
@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://example.com/a.jpg",
            "http://example.com:8080/a.jpg",
            "https://example.com:80/a.jpg",
            "a.jpg",
            "",
            None,
        ),
        *("http://127.0.0.1/a.jpg", "http://localhost/a.jpg", "http://10.0.0.1/a.jpg", "http://[::1]/a.jpg"),
        "http://169.254.169.254/latest/meta-data/",
    ],
)
async def test_an_address_that_is_not_public_is_refused(service: Service, url: Any) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert failing_fields(await ada.post(f"/api/events/{event['id']}/photos", {"url": url})) == {"url"}
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).image_urls == []


@requirement("photos.add.url")
async def test_a_photo_without_an_address_is_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert failing_fields(await ada.post(f"/api/events/{event['id']}/photos", {})) == {"url"}


@requirement("photos.add.image")
async def test_an_image_of_more_than_5_mb_is_refused(service: Service, site: PhotoSite) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    padded = {
        size: picture("image/png") + b"\0" * (size - len(picture("image/png"))) for size in (5_000_000, 5_000_001)
    }

    answers = [
        await ada.post(f"/api/events/{event['id']}/photos", {"url": site.publish(f"/{size}", content, "image/png")})
        for size, content in padded.items()
    ]

    assert answers[0].status_code == 201
    assert failing_fields(answers[1]) == {"url"}


@requirement("photos.add.image")
@pytest.mark.parametrize("content", [b"<html>", b"<svg/>", b"%PDF-1.7", b"BM" + b"\0" * 60, b"II*\0" + b"\0" * 60])
async def test_a_photo_of_an_unsupported_type_is_refused(service: Service, site: PhotoSite, content: bytes) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    response = await ada.post(f"/api/events/{event['id']}/photos", {"url": site.publish("/a", content, "image/png")})

    assert failing_fields(response) == {"url"}


@requirement("photos.add.limit", "errors.rate-limit")
async def test_a_key_adds_30_photos_a_minute_unless_configured_otherwise(settings: Settings) -> None:
    default = Settings.model_fields["photos_per_minute"]
    assert (default.default, default.validation_alias) == (30, "API_PHOTO_UPLOAD_RATE_LIMIT")
    async with running_events(settings.model_copy(update={"photos_per_minute": default.default})) as service:
        ada, ben = await service.organizer(), await service.organizer()
        path = f"/api/events/{(await ada.create_event())['id']}/photos"
        statuses = [(await ada.post(path, {"url": "a.jpg"})).status_code for _ in range(30)]

        response = await ada.post(path, {"url": "a.jpg"})

        assert statuses == [422] * 30
        assert refusal(response) == (429, "rate_limited")
        assert int(response.headers["Retry-After"]) > 0
        assert refusal(await ben.post(path, {"url": "a.jpg"})) == (403, "forbidden")


@requirement("photos.primary")
async def test_a_primary_photo_moves_to_the_front(service: Service) -> None:
    ada = await service.organizer()
    path, keys = await with_photos(service, ada)

    photos = one(await ada.put(f"{path}/photos/primary", {"key": keys[2]}), Photos)

    assert photos.image_keys == [keys[2], keys[0], keys[1]]
    event = one(await ada.get(path), Event)
    assert (event.id, event.image_urls) == (photos.event_id, photos.image_urls)
    assert event.primary_image_url == photos.primary_image_url == photos.image_urls[0]


@requirement("photos.primary")
async def test_a_photo_that_the_event_does_not_have_cannot_be_primary(service: Service) -> None:
    ada = await service.organizer()
    path, _ = await with_photos(service, ada)

    assert failing_fields(await ada.put(f"{path}/photos/primary", {"key": await upload(service, ada)})) == {"key"}
    assert failing_fields(await ada.put(f"{path}/photos/primary", {})) == {"key"}


@requirement("photos.remove")
async def test_a_photo_is_taken_off_and_the_others_are_left(service: Service) -> None:
    ada = await service.organizer()
    path, keys = await with_photos(service, ada)

    photos = one(await ada.delete(f"{path}/photos", params={"key": keys[0]}), Photos)

    assert photos.image_keys == keys[1:]
    assert one(await ada.get(path), Event).image_urls == photos.image_urls
    assert photos.primary_image_url == photos.image_urls[0]
    assert refusal(await ada.delete(f"{path}/photos", params={"key": keys[0]})) == (404, "not_found")


@requirement("photos.add", "photos.primary", "photos.remove", "auth.organizer-scope")
async def test_photos_of_another_organizer_cannot_be_changed(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    path, keys = await with_photos(service, ada)

    for response in (
        await ben.post(f"{path}/photos", {"url": "https://example.com/a.jpg"}),
        await ben.put(f"{path}/photos/primary", {"key": keys[1]}),
        await ben.delete(f"{path}/photos", params={"key": keys[0]}),
        await ben.patch(path, {"event": {"image_keys": []}}),
    ):
        assert refusal(response) == (403, "forbidden")
    assert len(one(await ada.get(path), Event).image_urls) == 3


@requirement("uploads.presign", "uploads.put", "uploads.attach")
@pytest.mark.parametrize("content_type", TYPES)
async def test_an_upload_is_presigned_put_and_attached(service: Service, content_type: str) -> None:
    ada = await service.organizer()
    content = picture(content_type)
    body = {"filename": "poster", "content_type": content_type, "content_length": len(content)}

    presigned = one(await ada.post("/api/uploads/presign", body), Upload, 201)
    response = await put_upload(service, presigned.upload_url, content, content_type)
    event = await ada.create_event(image_keys=[presigned.key])

    assert (presigned.content_type, presigned.content_length) == (content_type, len(content))
    assert presigned.expires_in > 0
    assert response.status_code == 200
    assert await read_photo(service, event["primary_image_url"]) == content


@requirement("uploads.attach")
async def test_an_upload_is_attached_through_the_photo_endpoint(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    key = await upload(service, ada)

    added = one(await ada.post(f"/api/events/{event['id']}/photos", {"key": key}), AddedPhoto, 201)

    assert (added.key, added.image_keys) == (key, [key])


@requirement("uploads.attach", "auth.organizer-scope")
async def test_an_upload_of_another_organizer_cannot_be_attached(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event = await ben.create_event()
    key = await upload(service, ada)

    response = await ben.patch(f"/api/events/{event['id']}", {"event": {"image_keys": [key]}})

    assert failing_fields(response) == {"image_keys"}
    assert one(await ben.get(f"/api/events/{event['id']}"), Event).image_urls == []


@requirement("uploads.presign.fields")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("content_type", value) for value in ("image/svg+xml", "text/html", "image", None)),
        *(("content_length", value) for value in (5_000_001, 0, -1, "9", None)),
        ("filename", 7),
    ],
)
async def test_an_upload_that_cannot_be_a_photo_is_not_presigned(service: Service, name: str, value: Any) -> None:
    ada = await service.organizer()
    body = {"content_type": "image/png", "content_length": 5_000_000, name: value}

    assert failing_fields(await ada.post("/api/uploads/presign", body)) == {name}


@requirement("uploads.presign.fields")
@pytest.mark.parametrize("missing", ["content_type", "content_length"])
async def test_type_and_length_of_an_upload_are_required(service: Service, missing: str) -> None:
    ada = await service.organizer()
    body = {"content_type": "image/png", "content_length": 1}
    del body[missing]

    assert failing_fields(await ada.post("/api/uploads/presign", body)) == {missing}


@requirement("uploads.put")
@pytest.mark.parametrize(
    ("content", "content_type"),
    [(picture(), "image/png"), (picture(), "text/html"), (picture() + b"x", "image/jpeg"), (b"", "image/jpeg")],
)
async def test_an_upload_of_another_type_or_length_is_refused(
    service: Service, content: bytes, content_type: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    presigned = await presign(ada, picture())

    response = await put_upload(service, presigned["upload_url"], content, content_type)

    assert refusal(response) == (403, "upload_refused")
    attached = await ada.patch(f"/api/events/{event['id']}", {"event": {"image_keys": [presigned["key"]]}})
    assert failing_fields(attached) == {"image_keys"}
