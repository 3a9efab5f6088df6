"""Sizes that cannot be made now or ever: the original is shown, and attempts are repeated where they can help."""

import asyncio
import signal
import struct
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from holdfast.events.photos import sandbox, scaling, sizes
from holdfast.events.photos.model import size_name, upload_name
from holdfast.events.photos.retention import clear_photos
from holdfast.events.photos.sizes import find_sizes
from holdfast.events.settings import Settings
from holdfast.kit.background.leases import LeasedRow
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.steps import Steps
from tests.events.photos.gate import Gate, program
from tests.helpers.events_service import Service, eventually, running_events
from tests.helpers.photos import (
    JPEG,
    a_day_passes,
    accept_photos,
    add_photos,
    key_of,
    photo_states,
    stored_file,
    stored_files,
    stored_sizes,
    upload,
    with_photo,
)
from tests.helpers.pictures import picture, png_chunk, riff
from tests.helpers.row_work import handle_all


@pytest.fixture
async def service(disk_or_s3: Settings) -> AsyncIterator[Service]:
    async with running_events(disk_or_s3) as service:
        yield service


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate(tmp_path / "gate", scaling.__name__)
    monkeypatch.setattr(sandbox, "SCALER", gate.program)
    return gate


async def make_sizes(service: Service) -> int:
    return await handle_all(sizes.SizesWork(service.database))


async def has_sizes(service: Service, key: str) -> bool:
    return key in await service.database.read(lambda reader: find_sizes(reader, [key]))


async def scaling_has_begun(service: Service) -> bool:
    return await service.run_sql("select from photos where scaling_tried > 0") != []


async def all_are_free(service: Service) -> bool:
    """Whether nobody holds a connection to the database."""
    stats = service.database.pool.get_stats()
    return stats["pool_available"] == stats["pool_size"]


def bomb() -> bytes:
    """A PNG file that says it is 60,000 pixels wide and high."""
    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) + png_chunk(b"IDAT", b"x\x9c") + png_chunk(b"IEND", b"")


def webp_bomb() -> bytes:
    """A WebP file that says it has 268 million pixels."""
    return riff((b"VP8L", b"\x2f" + struct.pack("<I", 16_382 | 16_382 << 14) + bytes(range(64))))


HOSTILE = {
    "a bomb": bomb(),
    "a bomb of WebP": webp_bomb(),
    "broken off": picture(JPEG, 900, 600)[:-30_000],
    "nothing": b"",
    "no picture": b"<script>alert(1)</script>",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
async def test_a_file_that_cannot_be_scaled_is_left_and_the_next_one_is_scaled(
    service: Service, content: bytes
) -> None:
    ada = await service.organizer()
    bad, good = key_of(ada.id, "b"), key_of(ada.id, "g")
    await accept_photos(service, bad, good)
    await service.database.resources.photos.write(bad, content, JPEG)
    event = await ada.create_event(image_keys=[bad, good])

    with capture_logs() as logs:
        assert await make_sizes(service) == 2
        assert await make_sizes(service) == 0

    assert [line["key"] for line in logs if line["event"] == "a photo has no sizes"] == [bad]
    assert (await has_sizes(service, bad), await has_sizes(service, good)) == (False, True)
    assert await stored_sizes(service, bad) == []
    assert (await service.http.get(event["image_urls"][0])).content == content


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_file_that_takes_its_decoder_down_is_not_tried_again(
    service: Service, end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = await with_photo(await service.organizer(), service)
    monkeypatch.setattr(sandbox, "SCALER", program(f"import os; os.kill(os.getpid(), {end})"))

    assert await make_sizes(service) == 1
    await a_day_passes(service)
    assert await make_sizes(service) == 0

    assert not await has_sizes(service, key)


async def test_a_photo_for_which_the_machine_was_too_busy_is_tried_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = await with_photo(await service.organizer(), service)
    with monkeypatch.context() as busy:
        busy.setattr(sandbox, "SCALER", program("import signal; signal.pause()"))
        busy.setattr(sandbox, "TIMEOUT_SECONDS", 0.2)
        with pytest.raises(TimeoutError):
            await make_sizes(service)
    assert await make_sizes(service) == 0

    await a_day_passes(service)
    assert await make_sizes(service) == 1

    assert await has_sizes(service, key)


async def test_a_photo_that_is_being_scaled_holds_up_no_request(service: Service, gate: Gate) -> None:
    ada = await service.organizer()
    event, key = await with_photo(ada, service)
    making = asyncio.create_task(make_sizes(service))
    await eventually(lambda: scaling_has_begun(service))

    # Another photo is looked at and added, and no connection to the database is held.
    assert (await add_photos(ada, event, key=await upload(service, ada))).status_code == 201
    await eventually(lambda: all_are_free(service))  # the notice of it takes one for a moment
    assert not making.done()
    assert not await has_sizes(service, key)

    gate.open()
    assert await making == 2
    assert await has_sizes(service, key)


async def test_a_photo_that_is_deleted_while_it_is_scaled_leaves_no_file(service: Service, gate: Gate) -> None:
    ada = await service.organizer()
    event, key = await with_photo(ada, service)
    making = asyncio.create_task(make_sizes(service))
    await eventually(lambda: scaling_has_begun(service))

    await ada.delete(f"/api/events/{event['id']}/photos", params={"key": key})
    await a_day_passes(service)
    await clear_photos(Steps(service.database))
    gate.open()
    await making

    assert await photo_states(service) == {}
    assert await stored_sizes(service, key) == []


async def lease_photo(service: Service) -> Sequence[LeasedRow]:
    """Lease a photo as another process does."""
    return await sizes.SizesWork(service.database).lease(1, (), scan_all=True)


async def killed_halfway(service: Service, key: str) -> None:
    """Leave what a process leaves that is killed after it has claimed a photo and stored one of its sizes."""
    await lease_photo(service)
    await service.database.resources.photos.write(size_name(key, 480), b"a size", "image/webp")
    half = service.database.resources.settings.data_dir / "media" / f"{size_name(key, 960)}.abcdefgh"
    if half.parent.exists():
        half.write_bytes(b"half a size")


async def test_sizes_that_a_killed_process_began_are_made_again_after_ten_seconds(service: Service) -> None:
    _, key = await with_photo(await service.organizer(), service)
    await killed_halfway(service, key)
    assert await make_sizes(service) == 0
    assert not await has_sizes(service, key)

    await service.run_sql("update photos set scaling_due = scaling_due - interval '10 seconds'")
    assert await make_sizes(service) == 1

    assert await has_sizes(service, key)
    names = await stored_sizes(service, key)
    assert len(names) == 3
    assert await stored_file(service.database.resources.photos, names[0]) != b"a size"
    assert stored_files(service) <= {key, *names}


async def test_a_photo_that_is_being_scaled_is_leased_by_no_other_process(
    service: Service, gate: Gate, short_leases: None
) -> None:
    _, key = await with_photo(await service.organizer(), service)
    making = asyncio.create_task(make_sizes(service))
    await eventually(lambda: scaling_has_begun(service))
    asyncio.get_running_loop().call_later(2.0, gate.open)

    claimed_by_others = 0
    while not making.done():
        claimed_by_others += len(await lease_photo(service))
        await asyncio.wait([making], timeout=0.05)

    assert (claimed_by_others, await making) == (0, 1)
    assert await has_sizes(service, key)
    assert await service.run_sql("select scaling_due from photos") == [(None,)]


async def test_a_process_whose_photo_another_one_has_claimed_stores_no_sizes(
    service: Service, gate: Gate, short_leases: None
) -> None:
    _, key = await with_photo(await service.organizer(), service)
    making = asyncio.create_task(make_sizes(service))
    await eventually(lambda: scaling_has_begun(service))

    await service.run_sql("update photos set scaling_tried = 2, scaling_due = now() + interval '1 hour'")

    assert await making == 1
    gate.open()
    assert not await has_sizes(service, key)


async def test_sizes_that_a_killed_process_left_are_deleted_with_the_photo(service: Service) -> None:
    ada = await service.organizer()
    event, key = await with_photo(ada, service)
    await killed_halfway(service, key)

    await ada.delete(f"/api/events/{event['id']}/photos", params={"key": key})
    await a_day_passes(service)
    await clear_photos(Steps(service.database))

    assert await stored_sizes(service, key) == []
    assert stored_files(service) == set()
    assert await stored_file(service.database.resources.photos, upload_name(key)) is None


async def test_processes_share_the_photos_and_make_no_size_twice(service: Service) -> None:
    ada = await service.organizer()
    for _ in range(6):
        await with_photo(ada, service)

    made = await asyncio.gather(*(make_sizes(service) for _ in range(3)))

    assert sum(made) == 6
    assert await service.run_sql("select distinct scaling_tried, cardinality(widths) from photos") == [(1, 3)]


async def test_a_photo_that_no_event_shows_is_scaled_once_an_event_shows_it_again(service: Service) -> None:
    ada = await service.organizer()
    event, key = await with_photo(ada, service)
    path = f"/api/events/{event['id']}"
    await ada.patch(path, {"event": {"image_keys": []}})
    await service.run_sql("update photos set idle_since = now() - interval '2 hours'")
    assert await make_sizes(service) == 0

    await ada.patch(path, {"event": {"image_keys": [key]}})

    assert await make_sizes(service) == 1


async def test_a_missing_file_is_reported_and_scaled_once_it_is_back(service: Service) -> None:
    ada = await service.organizer()
    key, other = key_of(ada.id, "m"), key_of(ada.id, "o")
    await accept_photos(service, key, other)
    await ada.create_event(image_keys=[key, other])
    store = service.database.resources.photos
    await store.delete([key])

    with capture_logs() as logs:
        assert await make_sizes(service) == 2

    assert [line["key"] for line in logs if line["event"] == "the file of a photo is missing"] == [key]
    assert (await has_sizes(service, key), await has_sizes(service, other)) == (False, True)
    await store.write(key, picture(), JPEG)
    await a_day_passes(service)
    await make_sizes(service)
    assert await has_sizes(service, key)


async def test_sizes_are_made_once_the_store_is_within_reach_again(in_s3: Settings) -> None:
    async with running_events(in_s3) as service:
        _, key = await with_photo(await service.organizer(), service)
    async with running_events(in_s3.model_copy(update={"s3_endpoint_url": "http://127.0.0.1:1"})) as service:
        with pytest.raises(Problem):
            await make_sizes(service)
    async with running_events(in_s3) as service:
        await a_day_passes(service)
        assert await make_sizes(service) == 1
        assert await has_sizes(service, key)


async def test_the_pause_between_attempts_grows_to_an_hour_and_no_further(service: Service) -> None:
    await with_photo(await service.organizer(), service)
    pauses: list[int] = []
    for _ in range(10):
        await lease_photo(service)
        [(pause,)] = await service.run_sql(
            "update photos set scaling_due = now() from photos as was where was.key = photos.key"
            " returning round(extract(epoch from was.scaling_due - now()))::int"
        )
        pauses.append(pause)

    assert pauses == [10, 10, 10, 120, 240, 480, 960, 1920, 3840, 3840]
