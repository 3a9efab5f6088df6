"""Strangers store few photos: one organizer, one network, and all of them together. It limits no proved organizer."""

import asyncio

import httpx2
import pytest

from holdfast.events.photos import retention, unproved_quotas
from holdfast.events.photos.unproved_quotas import MAX_IDLE_BYTES, MAX_IDLE_FILES, MAX_TOTAL_BYTES
from holdfast.events.settings import Settings
from holdfast.kit.operations.steps import Steps
from tests.events.photos.site import PhotoSite
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.photos import photo_states, presign, put_upload, stored_files, upload
from tests.helpers.pictures import picture

MEGABYTE = 1_000_000


async def stranger(service: Service, host: str) -> Client:
    """An organizer that a visitor at an address has registered."""
    return await Service(service.app, service.client_at(host), service.database, service.runner).organizer(
        is_proved=False
    )


async def wish(client: Client, size: int) -> httpx2.Response:
    return await client.post("/api/uploads/presign", {"content_type": "image/png", "content_length": size})


async def count_allowed_uploads(client: Client, size: int, times: int) -> int:
    """How many uploads of this size are allowed, if `times` are wished."""
    answers = [await wish(client, size) for _ in range(times)]
    for answer in answers:
        assert answer.status_code == 201 or (answer.status_code, answer.json()["code"]) == (422, "too_many_uploads")
    return sum(answer.status_code == 201 for answer in answers)


async def test_an_unproved_organizer_has_few_uploads_that_no_event_shows(service: Service) -> None:
    eve, ada = await stranger(service, "203.0.113.1"), await service.organizer()

    assert await count_allowed_uploads(eve, 5 * MEGABYTE, 12) == MAX_IDLE_BYTES // (5 * MEGABYTE)
    assert await count_allowed_uploads(await stranger(service, "203.0.113.2"), 1, 22) == MAX_IDLE_FILES
    assert await count_allowed_uploads(ada, 5 * MEGABYTE, 22) == 22

    refusal = await wish(eve, 1 * MEGABYTE)
    assert refusal.json()["hint"] == unproved_quotas.CONFIRM_HINT


async def test_a_photo_that_an_event_shows_does_not_count_as_unused(service: Service) -> None:
    eve = await stranger(service, "203.0.113.1")
    assert await count_allowed_uploads(eve, 1, MAX_IDLE_FILES - 1) == MAX_IDLE_FILES - 1
    key = await upload(service, eve)
    assert await count_allowed_uploads(eve, 1, 1) == 0

    await eve.create_event(image_keys=[key])

    assert await count_allowed_uploads(eve, 1, 2) == 1


@pytest.mark.parametrize(
    ("hosts", "others"),
    [
        (["203.0.113.1"], ["203.0.113.2", "2001:db8::1"]),
        (["2001:db8::1", "2001:db8::2", "2001:db8::ffff:1"], ["203.0.113.1"]),
    ],
)
async def test_the_organizers_of_one_network_have_a_share_together(
    service: Service, hosts: list[str], others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unproved_quotas, "MAX_NETWORK_BYTES", 30 * MEGABYTE)
    organizers = [await stranger(service, hosts[number % len(hosts)]) for number in range(4)]

    counts = [await count_allowed_uploads(organizer, 4 * MEGABYTE, 2) for organizer in organizers]

    assert (counts, sum(counts) * 4) == ([2, 2, 2, 1], 28)
    for host in others:
        assert await count_allowed_uploads(await stranger(service, host), 4 * MEGABYTE, 2) == 2


async def test_photos_that_events_show_count_for_the_network(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unproved_quotas, "MAX_NETWORK_FILES", 2)
    eve, mallory = [await stranger(service, "203.0.113.1") for _ in range(2)]
    await eve.create_event(image_keys=[await upload(service, eve)])
    await mallory.create_event(image_keys=[await upload(service, mallory)])

    assert [await count_allowed_uploads(client, 1, 1) for client in (eve, mallory)] == [0, 0]
    assert await count_allowed_uploads(await stranger(service, "203.0.113.2"), 1, 1) == 1


async def test_unproved_organizers_together_have_a_total_that_one_network_cannot_use_up(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unproved_quotas.MAX_NETWORK_BYTES * 20 <= MAX_TOTAL_BYTES
    assert unproved_quotas.MAX_NETWORK_FILES * 20 <= unproved_quotas.MAX_TOTAL_FILES
    monkeypatch.setattr(unproved_quotas, "MAX_TOTAL_BYTES", 12 * MEGABYTE)
    ada = await service.organizer()
    first, second, third = [await stranger(service, f"203.0.113.{number}") for number in (1, 2, 3)]

    counts = [await count_allowed_uploads(client, 5 * MEGABYTE, 1) for client in (first, second, third)]

    assert counts == [1, 1, 0]
    assert await count_allowed_uploads(third, 2 * MEGABYTE, 1) == 1
    assert await count_allowed_uploads(ada, 5 * MEGABYTE, 4) == 4
    await service.set_proof_age(first)
    assert await count_allowed_uploads(third, 5 * MEGABYTE, 1) == 1


async def test_an_organizer_who_proves_the_address_has_no_photo_limit_and_no_stored_network(service: Service) -> None:
    eve = await stranger(service, "203.0.113.1")
    assert await count_allowed_uploads(eve, 1, MAX_IDLE_FILES + 1) == MAX_IDLE_FILES
    [(networks,)] = await service.run_sql("select registered_from from users where id = %(id)s", id=eve.id)
    assert len(networks) == 1
    assert "203" not in networks[0]

    await service.set_proof_age(eve)

    assert await count_allowed_uploads(eve, 1, 10) == 10
    assert await service.run_sql("select registered_from from users where id = %(id)s", id=eve.id) == [(None,)]
    assert await service.run_sql("select from photos where networks is not null") == []


async def test_the_limit_holds_when_many_uploads_are_wished_at_once(service: Service) -> None:

    organizers = [await stranger(service, "203.0.113.1") for _ in range(3)]

    answers = await asyncio.gather(*(wish(client, 5 * MEGABYTE) for client in organizers for _ in range(12)))

    assert sum(answer.status_code == 201 for answer in answers) == 3 * MAX_IDLE_BYTES // (5 * MEGABYTE)
    assert {answer.status_code for answer in answers} == {201, 422}


async def test_downloaded_photos_count_towards_the_limit(service: Service, site: PhotoSite) -> None:
    eve = await stranger(service, "203.0.113.1")
    event = await eve.create_event()
    assert await count_allowed_uploads(eve, 1, MAX_IDLE_FILES) == MAX_IDLE_FILES

    answer = await eve.post(f"/api/events/{event['id']}/photos", {"url": site.publish("/a.jpg", picture())})

    assert (answer.status_code, answer.json()["code"]) == (422, "too_many_uploads")
    assert stored_files(service) == set()


async def test_an_upload_of_a_stranger_that_is_no_photo_is_deleted_after_an_hour(service: Service) -> None:
    eve, ada = await stranger(service, "203.0.113.1"), await service.organizer()
    waiting = [await presign(client, b"x" * 9) for client in (eve, ada)]
    for presigned in waiting:
        assert (await put_upload(service, presigned["upload_url"], b"x" * 9)).status_code == 200
    await service.run_sql("update photos set idle_since = now() - interval '61 minutes'")

    await retention.clear_photos(Steps(service.database))

    assert [*await photo_states(service)] == [waiting[1]["key"]]
    assert stored_files(service, "uploads") == {waiting[1]["key"].replace("photos/", "uploads/")}


async def test_an_upload_that_is_no_photo_is_deleted_when_that_is_found(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    zeros = bytes(len(picture()))
    presigned = await presign(ada, zeros)
    await put_upload(service, presigned["upload_url"], zeros)

    refusal = await ada.patch(f"/api/events/{event['id']}", {"event": {"image_keys": [presigned["key"]]}})

    assert refusal.status_code == 422
    assert stored_files(service, "uploads") == set()
    await put_upload(service, presigned["upload_url"], picture())
    accepted = await ada.patch(f"/api/events/{event['id']}", {"event": {"image_keys": [presigned["key"]]}})
    assert accepted.status_code == 200


async def test_a_key_presigns_a_limited_number_of_uploads_a_minute(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"photos_per_minute": 1})) as service:
        ada, ben = await service.organizer(), await service.organizer()

        statuses = [(await wish(ada, 1)).status_code for _ in range(5)]

        assert statuses == [201, 201, 201, 201, 429]
        assert (await wish(ben, 1)).status_code == 201
        assert await service.run_sql("select count(*) from photos where organizer_id = %(id)s", id=ada.id) == [(4,)]
