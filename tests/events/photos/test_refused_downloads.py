"""Downloading a photo from an address: only public ones are reached, and refusals leave no file."""

import asyncio
from typing import Any

import pytest

from holdfast.events.photos.model import MAX_PHOTO_BYTES
from tests.events.photos.site import PhotoSite
from tests.helpers.events_service import Service
from tests.helpers.outside_servers import raw_answer, redirecting_script
from tests.helpers.photos import add_photos, failing_fields, nothing_is_left
from tests.helpers.pictures import picture

HOSTILE = (
    *("127.0.0.1", "localhost", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"),
    *("10.0.0.1", "100.64.0.1", "[fd00::1]", "[64:ff9b::7f00:1]", "2130706433", "127.1"),
)


@pytest.mark.parametrize("redirected", [False, True], ids=["at once", "by a redirect"])
async def test_an_internal_address_is_refused_without_a_request_also_behind_a_redirect(
    service: Service, site: PhotoSite, redirected: bool, subtests: pytest.Subtests
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    for host in HOSTILE:
        with subtests.test(host=host):
            target = f"http://{host}/secret.jpg"
            url = site.publish("/away", redirecting_script(target)) if redirected else target

            [message] = failing_fields(await add_photos(ada, event, url=url))["url"]

            assert message == "names a host that has no public address"
    assert site.request_count == len(HOSTILE) * redirected
    await nothing_is_left(service, ada, event)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.com/a.jpg", "must begin with http:// or https:// and a host"),
        ("http://ada:secret@example.com/a.jpg", "must not carry a user name or password"),
        ("http://example.com:8080/a.jpg", "must use the default port, 80 for http or 443 for https"),
    ],
)
async def test_an_invalid_url_of_a_photo_is_refused_with_the_reason(service: Service, url: str, message: str) -> None:
    ada = await service.organizer()

    assert failing_fields(await add_photos(ada, await ada.create_event(), url=url)) == {"url": [message]}


async def endless(writer: asyncio.StreamWriter, _: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n\r\n\xff\xd8\xff")
    while not writer.is_closing():
        writer.write(b"\0" * 100_000)
        await writer.drain()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (raw_answer("404 Not Found\r\nContent-Length: 0"), "is answered with status 404"),
        (raw_answer(f"200 OK\r\nContent-Length: {MAX_PHOTO_BYTES + 1}"), "holds more than 5000000 bytes"),
        (endless, "holds more than 5000000 bytes"),
        (raw_answer("200 OK\r\nContent-Length: 9", b"\xff\xd8\xff"), "broke off"),
        (
            raw_answer("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2", b"\x1f\x8b"),
            "is answered in compressed form",
        ),
        (redirecting_script("/a", "/b", "/c", "/d"), "redirects more than 3 times"),
        (raw_answer("200 OK\r\nContent-Length: 0"), "is no JPEG, PNG, WebP or GIF image"),
    ],
    ids=["missing", "too large", "endless", "shorter than said", "compressed", "in a circle", "empty"],
)
async def test_a_fault_of_the_site_is_named_in_the_refusal(
    service: Service, site: PhotoSite, script: Any, message: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    for path in ("/a", "/b", "/c", "/d"):
        url = site.publish(path, script)

    assert failing_fields(await add_photos(ada, event, url=url))["url"][0].startswith(message)
    await nothing_is_left(service, ada, event)


@pytest.mark.parametrize(
    ("content", "declared", "message"),
    [
        (b"<html>not found</html>", "text/html", "is no JPEG, PNG, WebP or GIF image"),
        (b"<svg onload='alert(1)'/>", "image/svg+xml", "is no JPEG, PNG, WebP or GIF image"),
        (picture("image/png"), "image/jpeg", "is image/png, not image/jpeg"),
        (picture("image/jpeg"), "text/html", "is image/jpeg, not text/html"),
        (picture("image/jpeg")[:-9], "image/jpeg", "breaks off before its end"),
    ],
)
async def test_a_download_that_is_no_photo_is_refused_with_the_reason(
    service: Service, site: PhotoSite, content: bytes, declared: str, message: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert failing_fields(await add_photos(ada, event, url=site.publish("/a", content, declared)))["url"][0].startswith(
        message
    )
    await nothing_is_left(service, ada, event)
