"""GET /media: photos are public, have their own type, and are immutable for caches."""

from pathlib import Path

import pytest

from holdfast.events.settings import Settings
from tests.helpers.events_service import Service, running_events
from tests.helpers.photos import upload
from tests.helpers.pictures import TYPES, picture


async def photo_url(service: Service, content: bytes, content_type: str) -> str:
    """The address of a photo of some event."""
    ada = await service.organizer()
    event = await ada.create_event(image_keys=[await upload(service, ada, content, content_type)])
    return event["primary_image_url"]


@pytest.mark.parametrize("content_type", TYPES)
async def test_a_photo_is_shown_as_what_it_is(disk_or_s3: Settings, content_type: str) -> None:
    async with running_events(disk_or_s3) as service:
        content = picture(content_type)

        response = await service.http.get(await photo_url(service, content, content_type))

    assert (response.status_code, response.content) == (200, content)
    assert response.headers["content-type"] == content_type
    assert response.headers["content-length"] == str(len(content))
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"] == "default-src 'none'; sandbox"


async def test_a_photo_is_immutable_for_caches(service: Service) -> None:
    url = await photo_url(service, picture(), "image/jpeg")
    first = await service.http.get(url)

    again = await service.http.get(url, headers={"If-None-Match": f'W/"other", {first.headers["etag"]}'})
    other = await service.http.get(url, headers={"If-None-Match": '"other"'})

    assert first.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert other.content == first.content


async def test_a_head_request_for_a_photo_has_headers_and_no_content(service: Service) -> None:
    url = await photo_url(service, picture(), "image/jpeg")

    response = await service.http.head(url)

    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-length"] == str(len(picture()))


async def test_photos_are_found_at_the_cdn_where_there_is_one(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"cdn_base_url": "https://cdn.example.com/"})) as service:
        ada = await service.organizer()
        key = await upload(service, ada)
        event = await ada.create_event(image_keys=[key])

    assert event["image_urls"] == [f"https://cdn.example.com/{key}"]
    assert event["primary_image_url"] == f"https://cdn.example.com/{key}"


@pytest.mark.parametrize(
    "path",
    [
        *("", "photos", "photos/7", "photos/7/", "photos/7/x.jpg", "photos/7/abcdefghijklmnopqrstuv.jpg"),
        *("uploads/7/abcdefghijklmnopqrstuv.jpg", "photos/7/abcdefghijklmnopqrstuv.html", "secret.txt", "..."),
        *("../secret.txt", "photos/secret.txt", "photos/../../secret.txt", "photos/7/..%2f..%2f..%2fsecret.txt"),
        *("photos/7/abcdefghijklmnopqrstuv.jpg%00", "photos/7/abcdefghijklmnopqrstuv.jpg%0a", "photos%2f7%2fx.jpg"),
        *("/etc/passwd", "%2fetc%2fpasswd", "photos/07/abcdefghijklmnopqrstuv.jpg", "..\\secret.txt", "%ff"),
    ],
)
async def test_a_media_path_that_is_no_photo_is_answered_with_404(service: Service, tmp_path: Path, path: str) -> None:
    for secret in (tmp_path / "secret.txt", tmp_path / "media" / "secret.txt", tmp_path / "media/photos/secret.txt"):
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("secret")

    response = await service.http.get(f"http://events.test/media/{path}")

    assert response.status_code == 404
    assert response.json()["code"] == "not_found"
    assert response.headers["cache-control"] == "no-store"


async def test_a_photo_can_only_be_read_at_its_address(service: Service) -> None:
    url = await photo_url(service, picture(), "image/jpeg")

    for method in ("PUT", "POST", "DELETE", "PATCH"):
        response = await service.http.request(method, url, content=b"other")
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")
    assert (await service.http.get(url)).content == picture()
