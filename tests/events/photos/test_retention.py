"""A photo that no event has used for a day is deleted, also under kills; a used one never is."""

import asyncio
from collections.abc import AsyncIterator
from typing import LiteralString

import pytest

from holdfast.events.photos.model import upload_name
from holdfast.events.photos.retention import clear_photos
from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.steps import Steps
from tests.helpers.events_service import Client, Service, eventually, running_events
from tests.helpers.photos import a_day_passes, photo_states, presign, stored_file, stored_files, upload
from tests.helpers.pictures import picture


@pytest.fixture
async def service(disk_or_s3: Settings) -> AsyncIterator[Service]:
    async with running_events(disk_or_s3) as service:
        yield service


async def are_stored(service: Service, *names: str) -> list[bool]:
    """Whether files are there."""
    photos = service.database.resources.photos
    return [await stored_file(photos, name) is not None for name in names]


async def set_photos(client: Client, event: dict[str, int], *keys: str) -> None:
    response = await client.patch(f"/api/events/{event['id']}", {"event": {"image_keys": list(keys)}})
    assert response.status_code == 200, response.text


async def test_an_upload_that_was_never_attached_is_deleted_after_a_day(service: Service) -> None:
    ada = await service.organizer()
    uploaded, awaited = await upload(service, ada), (await presign(ada, picture()))["key"]

    assert await clear_photos(Steps(service.database)) == 0
    assert await are_stored(service, upload_name(uploaded)) == [True]
    await a_day_passes(service)
    assert await clear_photos(Steps(service.database)) == 2

    assert await photo_states(service) == {}
    assert await are_stored(service, upload_name(uploaded), upload_name(awaited)) == [False, False]


async def test_a_photo_an_event_shows_is_kept_however_long(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    event = await ada.create_event(image_keys=[key])

    for _ in range(3):
        await a_day_passes(service)
        await clear_photos(Steps(service.database))

    assert await are_stored(service, key) == [True]
    assert (await service.http.get(event["primary_image_url"])).content == picture()


async def test_the_upload_behind_a_photo_is_cleared_away_once_it_cannot_be_written(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    await ada.create_event(image_keys=[key])

    assert await clear_photos(Steps(service.database)) == 0
    assert await are_stored(service, upload_name(key)) == [True]
    await a_day_passes(service)
    assert await clear_photos(Steps(service.database)) == 1

    assert await are_stored(service, key, upload_name(key)) == [True, False]
    assert await clear_photos(Steps(service.database)) == 0


async def test_a_photo_taken_off_is_deleted_after_a_day(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    event = await ada.create_event(image_keys=[key])
    await a_day_passes(service)

    await ada.delete(f"/api/events/{event['id']}/photos", params={"key": key})
    await clear_photos(Steps(service.database))
    assert await are_stored(service, key) == [True]
    await a_day_passes(service)
    await clear_photos(Steps(service.database))

    assert await are_stored(service, key) == [False]
    assert await photo_states(service) == {}
    assert (await service.http.get(event["primary_image_url"])).status_code == 404


async def test_a_photo_is_kept_for_as_long_as_one_of_several_events_shows_it(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    one, other = await ada.create_event(image_keys=[key]), await ada.create_event(image_keys=[key])

    for event, remains in ((one, True), (other, False)):
        await set_photos(ada, event)
        await a_day_passes(service)
        await clear_photos(Steps(service.database))
        assert await are_stored(service, key) == [remains]


async def test_a_photo_dropped_by_several_events_at_once_counts_as_unused(service: Service) -> None:
    ada = await service.organizer()
    for _ in range(5):
        key = await upload(service, ada)
        events = [await ada.create_event(image_keys=[key]) for _ in range(4)]
        await asyncio.gather(*(set_photos(ada, event) for event in events))

    assert await service.run_sql("select count(*) from photos where idle_since is null") == [(0,)]


@pytest.mark.parametrize("letting_go", ["update events set image_keys = '{}'", "update users set logo_key = null"])
async def test_a_photo_dropped_while_another_event_takes_it_is_kept(
    service: Service, letting_go: LiteralString
) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    one, other = await ada.create_event(image_keys=[key]), await ada.create_event()
    if "logo" in letting_go:
        await service.run_sql("update users set logo_key = %(key)s where id = %(id)s", key=key, id=ada.id)
        await set_photos(ada, one)

    async with service.database.transaction() as tx:
        await tx.run(f"{letting_go} where id = %(id)s", {"id": ada.id if "logo" in letting_go else one["id"]})
        taking = asyncio.create_task(set_photos(ada, other, key))

        async def has_lock_or_waits() -> object:
            return taking.done() or await service.run_sql("select from pg_locks where not granted")

        await eventually(has_lock_or_waits)
    await taking
    await a_day_passes(service)
    await clear_photos(Steps(service.database))

    assert await are_stored(service, key) == [True]


async def test_a_photo_put_back_in_time_is_kept(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    event = await ada.create_event(image_keys=[key])
    await set_photos(ada, event)
    await a_day_passes(service)

    await set_photos(ada, event, key)
    await clear_photos(Steps(service.database))

    assert await are_stored(service, key) == [True]


async def test_a_photo_given_up_before_a_kill_is_deleted_by_the_next_run(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    event = await ada.create_event(image_keys=[key])
    await set_photos(ada, event)
    await a_day_passes(service)
    # Killed after it had given up the photo, before it deleted the files.
    await service.run_sql("update photos set state = 'doomed'")

    refusal = await ada.post(f"/api/events/{event['id']}/photos", {"key": key})
    assert refusal.status_code == 422
    assert await clear_photos(Steps(service.database)) == 1

    assert await are_stored(service, key, upload_name(key)) == [False, False]
    assert await photo_states(service) == {}


async def test_files_written_before_a_process_was_killed_are_deleted_with_their_row(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    # Killed after it had written the photo, before that was accepted.
    await service.database.resources.photos.write(key, picture(), "image/jpeg")
    await a_day_passes(service)

    await clear_photos(Steps(service.database))

    assert await are_stored(service, key, upload_name(key)) == [False, False]


async def test_a_photo_stays_listed_while_the_store_is_unreachable(in_s3: Settings) -> None:
    async with running_events(in_s3) as service:
        ada = await service.organizer()
        key = await upload(service, ada)
        await a_day_passes(service)
    async with running_events(in_s3.model_copy(update={"s3_endpoint_url": "http://127.0.0.1:1"})) as service:
        with pytest.raises(Problem):
            await clear_photos(Steps(service.database))
        assert await photo_states(service) == {key: "doomed"}
    async with running_events(in_s3) as service:
        assert await clear_photos(Steps(service.database)) == 1
        assert await are_stored(service, upload_name(key)) == [False]


async def test_a_file_half_written_when_a_process_was_killed_goes_with_its_upload(settings: Settings) -> None:
    async with running_events(settings) as service:
        ada = await service.organizer()
        key = await upload(service, ada)
        half = settings.data_dir / "media" / f"{upload_name(key)}.abcdefgh"
        half.write_bytes(b"half")
        await a_day_passes(service)

        await clear_photos(Steps(service.database))

        assert stored_files(service, "uploads") == set()


async def test_concurrent_runs_share_the_work_and_keep_used_photos(service: Service) -> None:
    ada = await service.organizer()
    attached = await upload(service, ada)
    event = await ada.create_event(image_keys=[attached])
    for _ in range(6):
        await upload(service, ada)
    await a_day_passes(service)

    await asyncio.gather(*(clear_photos(Steps(service.database)) for _ in range(3)))

    assert await photo_states(service) == {attached: "accepted"}
    assert (await service.http.get(event["primary_image_url"])).status_code == 200
