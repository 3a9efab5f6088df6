"""A store of files, on the disk and in S3: it reads and writes by name, and accepts signed uploads only.

The S3 here is a real server that checks signatures (rclone). Without it these tests are skipped, but not in CI.
"""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from holdfast.events.resources import build
from holdfast.events.settings import Settings
from holdfast.events.storage.disk import DiskStore
from holdfast.events.storage.store import CHUNK_BYTES, MissingPackage, Store
from holdfast.kit.contract.problems import Problem
from tests.helpers.events_service import Service, eventually, running_events
from tests.helpers.photos import JPEG, put_upload, stored_file

NAME = "uploads/7/abcdefghijklmnopqrstuv.jpg"
OTHER = "uploads/8/abcdefghijklmnopqrstuv.jpg"
PHOTO = "photos/7/abcdefghijklmnopqrstuv.jpg"


@pytest.fixture
async def service(disk_or_s3: Settings) -> AsyncIterator[Service]:
    async with running_events(disk_or_s3) as service:
        yield service


@pytest.fixture
async def store(service: Service) -> AsyncIterator[Store]:
    store = service.database.resources.photos
    yield store
    await store.delete([NAME, OTHER, PHOTO])


async def test_a_file_in_a_store_is_read_as_it_was_written(store: Store) -> None:
    content = bytes(range(256)) * 1000
    await store.write(PHOTO, content, JPEG)

    async with store.open(PHOTO) as opened:
        assert opened
        assert opened.size == len(content)
        chunks = [chunk async for chunk in opened.chunks]
    assert b"".join(chunks) == content
    assert max(map(len, chunks)) <= CHUNK_BYTES
    assert await stored_file(store, PHOTO) == content


async def test_reading_a_file_may_stop_before_its_end(store: Store) -> None:
    await store.write(PHOTO, b"x" * 300_000, JPEG)

    async with store.open(PHOTO) as opened:
        assert opened
        assert await anext(opened.chunks)
    async with store.open(PHOTO):
        pass


async def test_a_file_that_was_never_written_reads_as_none(store: Store) -> None:
    async with store.open(PHOTO) as opened:
        assert opened is None
    assert await stored_file(store, PHOTO) is None


async def test_a_file_takes_the_place_of_one_with_its_name(store: Store) -> None:
    await store.write(PHOTO, b"first", JPEG)
    await store.write(PHOTO, b"second", JPEG)

    assert await stored_file(store, PHOTO) == b"second"


async def test_a_deleted_file_is_gone_and_others_stay(store: Store) -> None:
    await store.write(NAME, b"upload", JPEG)
    await store.write(PHOTO, b"photo", JPEG)

    await store.delete([NAME, OTHER])

    assert await stored_file(store, NAME) is None
    assert await stored_file(store, PHOTO) == b"photo"


async def test_a_file_can_be_deleted_twice(store: Store) -> None:
    await store.write(PHOTO, b"photo", JPEG)

    await store.delete([PHOTO])
    await store.delete([PHOTO])

    assert await stored_file(store, PHOTO) is None


async def test_concurrent_writes_of_different_files_store_all_of_them(store: Store) -> None:
    names = [f"photos/7/{number:022}.jpg" for number in range(20)]
    await asyncio.gather(*(store.write(name, name.encode(), JPEG) for name in names))

    assert [await stored_file(store, name) for name in names] == [name.encode() for name in names]
    await store.delete(names)


async def test_an_upload_as_it_was_signed_is_accepted(service: Service, store: Store) -> None:
    url = await store.upload_url(NAME, JPEG, 5, 900)

    assert (await put_upload(service, url, b"photo")).status_code == 200
    assert await stored_file(store, NAME) == b"photo"


async def test_an_upload_may_be_repeated(service: Service, store: Store) -> None:
    url = await store.upload_url(NAME, JPEG, 5, 900)
    await put_upload(service, url, b"photo")

    assert (await put_upload(service, url, b"other")).status_code == 200
    assert await stored_file(store, NAME) == b"other"


async def assert_refused(service: Service, store: Store, url: str, content: bytes = b"photo", kind: str = JPEG) -> None:
    """Assert that an upload is refused, and that nothing of it is there."""
    response = await put_upload(service, url, content, kind)
    assert response.status_code in (400, 403), response.text
    assert [await stored_file(store, name) for name in (NAME, OTHER, PHOTO)] == [None, None, None]


@pytest.mark.parametrize("content", [b"phot", b"photos", b""])
async def test_an_upload_of_another_length_is_refused(service: Service, store: Store, content: bytes) -> None:
    await assert_refused(service, store, await store.upload_url(NAME, JPEG, 5, 900), content)


@pytest.mark.parametrize("kind", ["image/png", "text/html", ""])
async def test_an_upload_of_another_type_is_refused(service: Service, store: Store, kind: str) -> None:
    await assert_refused(service, store, await store.upload_url(NAME, JPEG, 5, 900), kind=kind)


async def test_an_upload_under_another_name_is_refused(service: Service, store: Store) -> None:
    url = await store.upload_url(NAME, JPEG, 5, 900)

    await assert_refused(service, store, url.replace(NAME, OTHER))
    await assert_refused(service, store, url.replace("abcdef", "ABCDEF"))


async def test_an_upload_that_is_not_signed_is_refused(service: Service, store: Store) -> None:
    url = await store.upload_url(NAME, JPEG, 5, 900)
    path, signature = url.split("?")[0], url[-64:]

    for forged in (path, url[:-1], url.replace(signature, "0" * 64), url.replace(signature, signature[::-1])):
        await assert_refused(service, store, forged)


async def test_an_upload_is_refused_once_its_address_has_expired(service: Service, store: Store) -> None:
    url = await store.upload_url(NAME, JPEG, 5, 1)

    async def has_expired() -> bool:
        return (await put_upload(service, url, b"photo")).status_code in (400, 403)

    await eventually(has_expired)
    await store.delete([NAME])
    await assert_refused(service, store, url)


async def test_the_expiry_of_an_upload_address_cannot_be_changed(service: Service, store: Store) -> None:
    url = await store.upload_url(NAME, JPEG, 5, 900)
    query = urlsplit(url).query
    [name] = [name for name in ("expires", "X-Amz-Expires") if f"{name}=" in query]

    await assert_refused(service, store, url.replace(f"{name}=", f"{name}=9"))


async def test_a_store_that_is_out_of_reach_is_unavailable(service: Service, store: Store) -> None:
    if isinstance(store, DiskStore):
        (service.database.resources.settings.data_dir / "media").write_text("in the way")
        unreachable: Store = store
    else:
        unreachable = build(
            service.database.resources.settings.model_copy(update={"s3_endpoint_url": "http://127.0.0.1:1"})
        ).photos

    for call in (
        unreachable.write(PHOTO, b"photo", JPEG),
        stored_file(unreachable, PHOTO),
    ):
        with pytest.raises(Problem) as refusal:
            await call
        assert (refusal.value.status, refusal.value.retry_after) == (503, 5)
    if isinstance(store, DiskStore):
        (service.database.resources.settings.data_dir / "media").unlink()


async def test_s3_without_its_client_says_how_to_get_it(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "holdfast.events.storage.s3", None)

    with pytest.raises(MissingPackage, match="holdfast-server with the extra s3"):
        build(settings.model_copy(update={"s3_bucket": "another"}))
