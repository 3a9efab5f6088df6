"""A photo is added from a public address, or from an upload; what is no photo leaves nothing behind."""

import asyncio
from typing import Any

import httpx2
import pytest

from holdfast.events.photos.model import LARGEST, MOST, MOST_IDLE
from holdfast.events.settings import Settings
from tests.events.photos.pictures import TYPES, frames, picture
from tests.events.photos.site import Site, site_of
from tests.events.photos.steps import failing, files, photo, presign, states, upload
from tests.outside import redirects, says
from tests.support import Client, Service, running


async def add(client: Client, event: dict[str, Any], **source: Any) -> httpx2.Response:
    return await client.post(f"/api/events/{event['id']}/photos", source)


async def nothing_is_left(service: Service, client: Client, event: dict[str, Any]) -> None:
    """Assert that an event shows no photo, and that none is kept."""
    assert (await client.get(f"/api/events/{event['id']}")).json()["data"]["image_urls"] == []
    assert await states(service) == {}
    assert files(service) == set()


@pytest.mark.parametrize("content_type", TYPES)
async def test_a_photo_is_downloaded_and_shown(service: Service, site: Site, content_type: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    original = picture(content_type)

    response = await add(ada, event, url=site.has("/poster", original, content_type))

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
    assert await photo(service, added["url"]) == original
    data = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    assert (data["image_urls"], data["primary_image_url"]) == ([added["url"]], added["url"])


async def test_photos_are_appended_and_the_first_stays_primary(service: Service, site: Site) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    url = site.has("/poster.jpg", picture())

    first, second = [(await add(ada, event, url=url)).json()["data"] for _ in range(2)]

    assert second["image_keys"] == [first["key"], second["key"]]
    assert second["primary_image_url"] == first["url"]
    assert first["key"] != second["key"]


async def test_a_downloaded_photo_has_lost_what_the_camera_noted(service: Service, site: Site) -> None:
    ada = await service.organizer()
    original = picture(comment=b"at home")

    added = (await add(ada, await ada.create_event(), url=site.has("/a.jpg", original))).json()["data"]

    assert b"at home" not in await photo(service, added["url"])
    assert frames(await photo(service, added["url"])) == frames(original)


async def test_photos_are_kept_in_s3_as_on_the_disk(in_s3: Settings) -> None:
    async with running(in_s3) as service, site_of(service) as site:
        ada = await service.organizer()
        added = (await add(ada, await ada.create_event(), url=site.has("/a.jpg", picture()))).json()["data"]

        assert await photo(service, added["url"]) == picture()
        assert files(service) == set()


@pytest.mark.parametrize("declared", ["", "application/octet-stream", "binary/octet-stream", "image/jpg", "IMAGE/JPEG"])
async def test_a_site_need_not_know_what_a_photo_is(service: Service, site: Site, declared: str) -> None:
    ada = await service.organizer()

    response = await add(ada, await ada.create_event(), url=site.has("/photo", picture(), declared))

    assert response.json()["data"]["key"].endswith(".jpg")


async def test_an_upload_is_added_by_its_key(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    key = await upload(service, ada)

    response = await add(ada, event, key=key)

    assert response.status_code == 201
    assert response.json()["data"]["image_keys"] == [key]
    assert (await add(ada, event, key=key)).json()["data"]["image_keys"] == [key]


async def test_a_key_that_is_no_photo_is_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    never, bad = (await presign(ada, picture()))["key"], await upload(service, ada, b"<html>")

    for key in (never, bad, "nothing/here.png"):
        assert failing(await add(ada, event, key=key)).keys() == {"key"}
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
async def test_exactly_one_source_is_given(service: Service, source: dict[str, Any], field: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert field in failing(await add(ada, event, **source))
    await nothing_is_left(service, ada, event)


HOSTILE = (
    *("127.0.0.1", "localhost", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"),
    *("10.0.0.1", "100.64.0.1", "[fd00::1]", "[64:ff9b::7f00:1]", "2130706433", "127.1"),
)


@pytest.mark.parametrize("redirected", [False, True], ids=["at once", "by a redirect"])
async def test_nothing_inside_is_reached(
    service: Service, site: Site, redirected: bool, subtests: pytest.Subtests
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    for host in HOSTILE:
        with subtests.test(host=host):
            target = f"http://{host}/secret.jpg"
            url = site.has("/away", redirects(target)) if redirected else target

            [said] = failing(await add(ada, event, url=url))["url"]

            assert said in ("leads to an address that is not public", "names a host that cannot be found")
    assert site.asked == len(HOSTILE) * redirected
    await nothing_is_left(service, ada, event)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://example.com/a.jpg", "must begin with http:// or https:// and a host"),
        ("http://ada:secret@example.com/a.jpg", "must not carry a user name or password"),
        ("http://example.com:8080/a.jpg", "must use the default port, 80 for http or 443 for https"),
    ],
)
async def test_why_an_address_is_refused_is_said(service: Service, url: str, said: str) -> None:
    ada = await service.organizer()

    assert failing(await add(ada, await ada.create_event(), url=url)) == {"url": [said]}


async def endless(writer: asyncio.StreamWriter, _: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n\r\n\xff\xd8\xff")
    while not writer.is_closing():
        writer.write(b"\0" * 100_000)
        await writer.drain()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (says("404 Not Found\r\nContent-Length: 0"), "is answered with status 404"),
        (says(f"200 OK\r\nContent-Length: {LARGEST + 1}"), "holds more than 5000000 bytes"),
        (endless, "holds more than 5000000 bytes"),
        (says("200 OK\r\nContent-Length: 9", b"\xff\xd8\xff"), "broke off"),
        (says("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2", b"\x1f\x8b"), "is answered in compressed form"),
        (redirects("/a", "/b", "/c", "/d"), "redirects more than 3 times"),
        (says("200 OK\r\nContent-Length: 0"), "is no JPEG, PNG, WebP or GIF image"),
    ],
    ids=["missing", "too large", "endless", "shorter than said", "compressed", "in a circle", "empty"],
)
async def test_what_a_site_does_wrong_is_said(service: Service, site: Site, script: Any, said: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    for path in ("/a", "/b", "/c", "/d"):
        url = site.has(path, script)

    assert failing(await add(ada, event, url=url))["url"][0].startswith(said)
    await nothing_is_left(service, ada, event)


@pytest.mark.parametrize(
    ("content", "declared", "said"),
    [
        (b"<html>not found</html>", "text/html", "is no JPEG, PNG, WebP or GIF image"),
        (b"<svg onload='alert(1)'/>", "image/svg+xml", "is no JPEG, PNG, WebP or GIF image"),
        (picture("image/png"), "image/jpeg", "is image/png, not image/jpeg"),
        (picture("image/jpeg"), "text/html", "is image/jpeg, not text/html"),
        (picture("image/jpeg")[:-9], "image/jpeg", "breaks off before its end"),
        (picture("image/jpeg") + b"PK\3\4", "image/jpeg", "goes on after the end of the image"),
    ],
)
async def test_what_is_no_photo_is_refused(
    service: Service, site: Site, content: bytes, declared: str, said: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert failing(await add(ada, event, url=site.has("/a", content, declared)))["url"][0].startswith(said)
    await nothing_is_left(service, ada, event)


async def test_nothing_is_asked_of_the_site_for_who_may_not_change_the_event(service: Service, site: Site) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event = await ada.create_event()
    url = site.has("/a.jpg", picture())

    assert (await add(ben, event, url=url)).json()["code"] == "forbidden"
    assert (await add(ben, {"id": 4711}, url=url)).json()["code"] == "not_found"
    assert (await add(service.anonymous, event, url=url)).json()["code"] == "missing_api_key"
    assert site.asked == 0
    await nothing_is_left(service, ada, event)
    assert (await add(await service.admin(), event, url=url)).status_code == 201


async def full_event(service: Service, client: Client) -> dict[str, Any]:
    """An event with as many photos as it may have."""
    event = await client.create_event(image_keys=[await upload(service, client)])
    await service.run_sql(
        """
        with made as (
            insert into photos (key, organizer_id, state, content_type, content_length)
            select format('photos/%%s/%%s.png', organizer_id, lpad(number::text, 22, '0')), organizer_id, 'accepted',
                   'image/png', 1
              from events, generate_series(2, %(most)s) as number where id = %(id)s
            returning key)
        select count(*) from made
        """,
        id=event["id"],
        most=MOST,
    )
    await service.run_sql(
        """
        update events set image_keys = (select array_agg(key) from photos where organizer_id = events.organizer_id)
         where id = %(id)s
        """,
        id=event["id"],
    )
    return event


async def test_an_event_shows_50_photos_at_most(service: Service, site: Site) -> None:
    ada = await service.organizer()
    event = await full_event(service, ada)

    for source in ({"url": site.has("/a.jpg", picture())}, {"key": await upload(service, ada)}):
        refusal = await add(ada, event, **source)
        assert (refusal.status_code, refusal.json()["code"]) == (422, "too_many_photos")
    assert site.asked == 0


async def test_whoever_has_too_many_photos_that_no_event_shows_adds_none(service: Service, site: Site) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await service.run_sql(
        """
        insert into photos (key, organizer_id, content_type, content_length)
        select format('photos/%%s/%%s.png', %(id)s::bigint, lpad(number::text, 22, '0')), %(id)s, 'image/png', 1
          from generate_series(1, %(count)s) as number
        """,
        id=ada.id,
        count=MOST_IDLE,
    )

    refusal = await add(ada, event, url=site.has("/a.jpg", picture()))

    assert (refusal.status_code, refusal.json()["code"]) == (422, "too_many_uploads")
    assert files(service) == set()


async def test_photos_added_at_once_are_all_there(service: Service, site: Site) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    url = site.has("/a.jpg", picture())

    added = await asyncio.gather(*(add(ada, event, url=url) for _ in range(8)))

    keys = {each.json()["data"]["key"] for each in added}
    shown = (await ada.get(f"/api/events/{event['id']}")).json()["data"]["image_urls"]
    assert len(keys) == 8
    assert {url.removeprefix("http://events.test/media/") for url in shown} == keys


async def test_a_key_adds_so_many_photos_a_minute_and_is_told_to_wait(settings: Settings) -> None:
    few = settings.model_copy(update={"photos_per_minute": 2})
    async with running(few) as service:
        ada, ben = await service.organizer(), await service.organizer()
        event, his = await ada.create_event(), await ben.create_event()
        statuses = [(await add(ada, event, url="nothing")).status_code for _ in range(2)]

        refusal = await add(ada, event, url="nothing")

        assert statuses == [422, 422]
        assert (refusal.status_code, refusal.json()["code"]) == (429, "rate_limited")
        assert 1 <= int(refusal.headers["Retry-After"]) <= 60
        assert (await add(ben, his, url="nothing")).status_code == 422
        assert (await ada.post("/api/uploads/presign", {"content_type": "image/png", "content_length": 1})).is_success
