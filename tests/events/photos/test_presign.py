"""POST /api/uploads/presign: an upload is presigned for one type and length, under a key of its organizer."""

import re
from typing import Any

import pytest

from holdfast.events.photos.model import MAX_IDLE_PHOTOS
from holdfast.events.settings import Settings
from tests.helpers.events_service import Service, running_events
from tests.helpers.photos import (
    failing_fields,
    photo_states,
    presign,
    put_upload,
    read_photo,
    stored_files,
    upload,
)
from tests.helpers.pictures import TYPES, picture

RIGHT: dict[str, Any] = {"content_type": "image/png", "content_length": 1000}


@pytest.mark.parametrize("content_type", TYPES)
async def test_a_presigned_upload_becomes_a_photo_wherever_it_is_kept(disk_or_s3: Settings, content_type: str) -> None:
    async with running_events(disk_or_s3) as service:
        ada = await service.organizer()
        content = picture(content_type)

        presigned = await presign(ada, content, content_type)
        response = await put_upload(service, presigned["upload_url"], content, content_type)
        event = await ada.create_event(image_keys=[presigned["key"]])

        assert response.status_code == 200
        assert event["image_urls"] == [f"http://events.test/media/{presigned['key']}"]
        assert await read_photo(service, event["primary_image_url"]) == content


async def test_a_presigned_upload_repeats_its_fields_and_says_when_it_expires(service: Service) -> None:
    ada = await service.organizer()

    response = await ada.post("/api/uploads/presign", {"filename": "poster.png", **RIGHT})

    presigned = response.json()["data"]
    assert response.status_code == 201
    assert presigned.keys() == {"key", "content_type", "content_length", "expires_in", "upload_url"}
    assert {**presigned, **RIGHT} == presigned
    assert presigned["expires_in"] == 900


async def test_a_key_is_random_and_lies_under_its_organizer(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()

    keys = {(await presign(ada, b"x" * 9))["key"] for _ in range(20)}

    assert len(keys) == 20
    for key in keys:
        assert re.fullmatch(rf"photos/{ada.id}/[A-Za-z0-9_-]{{22}}\.jpg", key)
    assert (await presign(admin, b"x" * 9))["key"].startswith("photos/admin/")


@pytest.mark.parametrize("length", [1, 5_000_000])
async def test_a_file_of_up_to_5_million_bytes_is_presigned(service: Service, length: int) -> None:
    ada = await service.organizer()

    response = await ada.post("/api/uploads/presign", {**RIGHT, "content_length": length})

    assert response.json()["data"]["content_length"] == length


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("content_length", value) for value in (0, -1, 5_000_001, 1.5, "1000", None, True)),
        *(("content_type", value) for value in ("image/jpg", "image/svg+xml", "IMAGE/PNG", "image/png; q=1", "", None)),
        ("filename", "x" * 301),
        ("organizer_id", 1),
    ],
)
async def test_an_invalid_upload_is_not_presigned(service: Service, name: str, value: Any) -> None:
    ada = await service.organizer()

    assert failing_fields(await ada.post("/api/uploads/presign", {**RIGHT, name: value})).keys() == {name}
    assert await photo_states(service) == {}


@pytest.mark.parametrize("name", RIGHT)
async def test_type_and_length_are_required(service: Service, name: str) -> None:
    ada = await service.organizer()
    body = {field: value for field, value in RIGHT.items() if field != name}

    assert failing_fields(await ada.post("/api/uploads/presign", body)) == {name: ["is required"]}


async def test_an_upload_without_an_api_key_is_answered_with_401(service: Service) -> None:
    assert (await service.anonymous.post("/api/uploads/presign", RIGHT)).status_code == 401


async def test_an_organizer_can_have_a_limited_number_of_unattached_uploads(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    key = await upload(service, ada)
    await service.run_sql(
        """
        insert into photos (key, organizer_id, content_type, content_length)
        select format('photos/%%s/%%s.png', %(id)s::bigint, lpad(number::text, 22, '0')), %(id)s, 'image/png', 1
          from generate_series(1, %(count)s) as number
        """,
        id=ada.id,
        count=MAX_IDLE_PHOTOS - 1,
    )

    refusal = await ada.post("/api/uploads/presign", RIGHT)

    assert (refusal.status_code, refusal.json()["code"]) == (422, "too_many_uploads")
    assert (await ben.post("/api/uploads/presign", RIGHT)).status_code == 201
    await ada.create_event(image_keys=[key])
    assert (await ada.post("/api/uploads/presign", RIGHT)).status_code == 201


async def test_a_presigned_upload_stores_no_file(service: Service) -> None:
    await presign(await service.organizer(), b"x" * 9)

    assert (stored_files(service, "uploads"), stored_files(service)) == (set(), set())
