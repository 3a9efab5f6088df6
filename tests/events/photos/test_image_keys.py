"""Uploads are attached to an event by `image_keys`: checked, cleaned, in order, and only the organizer's own."""

import httpx2
import pytest

from holdfast.events.photos.image import check_photo
from holdfast.events.photos.model import upload_name
from tests.helpers.events_service import Client, Service, event_fields
from tests.helpers.photos import (
    failing_fields,
    photo_states,
    presign,
    put_upload,
    read_photo,
    stored_files,
    upload,
)
from tests.helpers.pictures import TYPES, animation, frames, picture


async def photo_keys(client: Client, event: dict[str, int]) -> list[str]:
    """The keys of the photos an event shows, read from their addresses."""
    data = (await client.get(f"/api/events/{event['id']}")).json()["data"]
    assert data["primary_image_url"] == next(iter(data["image_urls"]), None)
    return [url.removeprefix("http://events.test/media/") for url in data["image_urls"]]


async def attach(client: Client, event: dict[str, int], *keys: str) -> httpx2.Response:
    return await client.patch(f"/api/events/{event['id']}", {"event": {"image_keys": list(keys)}})


async def test_an_event_is_created_with_its_photos(service: Service) -> None:
    ada = await service.organizer()
    keys = [
        await upload(service, ada, content_type=content_type)
        for content_type in ("image/png", "image/jpeg", "image/gif")
    ]

    event = await ada.create_event(image_keys=keys)

    assert await photo_keys(ada, event) == keys
    assert stored_files(service) == set(keys)


async def test_photos_are_put_in_order_and_the_first_is_primary(service: Service) -> None:
    ada = await service.organizer()
    one, two, three = [await upload(service, ada) for _ in range(3)]
    event = await ada.create_event(image_keys=[one, two])

    for keys in ([two, one], [three, one, two], [two], [], [one, three]):
        assert (await attach(ada, event, *keys)).status_code == 200
        assert await photo_keys(ada, event) == keys


async def test_a_change_of_other_fields_leaves_the_photos_of_an_event(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    event = await ada.create_event(image_keys=[key])

    await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Portraits"}})

    assert await photo_keys(ada, event) == [key]


async def test_an_attached_upload_has_lost_what_the_camera_noted(service: Service) -> None:
    ada = await service.organizer()
    original = picture(comment=b"at home")
    event = await ada.create_event(image_keys=[await upload(service, ada, original)])

    public = await read_photo(service, event["primary_image_url"])

    assert b"at home" not in public
    assert frames(public) == frames(original)


async def test_an_animation_stays_animated(service: Service) -> None:
    ada = await service.organizer()
    original = animation("image/webp", duration=70)
    event = await ada.create_event(image_keys=[await upload(service, ada, original, "image/webp")])

    assert frames(await read_photo(service, event["primary_image_url"])) == frames(original)


async def test_a_later_upload_to_the_same_address_does_not_change_the_photo(service: Service) -> None:
    ada = await service.organizer()
    first, second = picture(width=40), picture(width=41)
    second += b"\0" * (len(first) - len(second))
    first += b"\0" * (len(second) - len(first))
    presigned = await presign(ada, first)
    await put_upload(service, presigned["upload_url"], first)
    event = await ada.create_event(image_keys=[presigned["key"]])

    assert (await put_upload(service, presigned["upload_url"], second)).status_code == 200
    await attach(ada, event, presigned["key"])

    assert frames(await read_photo(service, event["primary_image_url"])) == frames(first)


async def test_a_photo_taken_off_can_be_put_back_and_shown_by_another_event(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    event, other = await ada.create_event(image_keys=[key]), await ada.create_event()

    await attach(ada, event)
    await attach(ada, other, key)
    await attach(ada, event, key)

    assert (await photo_keys(ada, event), await photo_keys(ada, other)) == ([key], [key])


async def test_a_key_that_was_never_uploaded_is_refused_by_name(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    never = (await presign(ada, picture()))["key"]
    made_up = f"photos/{ada.id}/abcdefghijklmnopqrstuv.jpg"

    assert failing_fields(await attach(ada, event, never)) == {"image_keys": [f"{never} has not been uploaded yet"]}
    for key in (made_up, "nothing/here.png", "../../etc/passwd", f"uploads/{ada.id}/abcdefghijklmnopqrstuv.jpg"):
        assert failing_fields(await attach(ada, event, key)) == {"image_keys": [f"no uploaded photo has the key {key}"]}
    assert await photo_keys(ada, event) == []


@pytest.mark.parametrize(
    ("content", "content_type", "message"),
    [
        (b"<html><script>alert(1)</script></html>", "image/jpeg", "is no JPEG, PNG, WebP or GIF image"),
        (picture("image/png"), "image/jpeg", "is image/png, not image/jpeg"),
        (picture("image/jpeg")[:-20], "image/jpeg", "breaks off before its end"),
    ],
    ids=["a page", "another type", "truncated"],
)
async def test_an_upload_that_is_no_photo_is_refused_and_never_seen(
    service: Service, content: bytes, content_type: str, message: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    good, bad = await upload(service, ada), await upload(service, ada, content, content_type)

    [refusal] = failing_fields(await attach(ada, event, good, bad))["image_keys"]

    assert refusal.startswith(f"{bad} {message}")
    assert failing_fields(await ada.post("/api/events", {"event": event_fields(image_keys=[bad])})).keys() == {
        "image_keys"
    }
    assert await photo_keys(ada, event) == []
    assert bad not in stored_files(service)
    assert (await photo_states(service))[bad] == "awaited"
    assert (await attach(ada, event, good)).status_code == 200


@pytest.mark.parametrize("content_type", TYPES)
async def test_bytes_after_a_picture_are_not_stored(service: Service, content_type: str) -> None:
    """Before, such a file was refused: phones store films and data of their own after the picture."""
    ada = await service.organizer()
    event = await ada.create_event()
    key = await upload(service, ada, picture(content_type) + b"<script>alert(1)</script>", content_type)

    assert (await attach(ada, event, key)).status_code == 200

    stored = await read_photo(service, f"http://events.test/media/{key}")
    assert stored == check_photo(picture(content_type))[1]


async def test_an_upload_stored_with_a_wrong_length_is_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    key = (await presign(ada, b"x" * 9))["key"]
    await service.database.resources.photos.write(upload_name(key), picture(), "image/jpeg")

    [refusal] = failing_fields(await attach(ada, event, key))["image_keys"]

    assert refusal == f"{key} was presigned for 9 bytes and has {len(picture())}"


async def test_a_refused_upload_may_be_replaced_and_attached_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    content = picture()
    presigned = await presign(ada, content)
    await put_upload(service, presigned["upload_url"], content[:-2] + b"xx")
    failing_fields(await attach(ada, event, presigned["key"]))

    await put_upload(service, presigned["upload_url"], content)

    assert (await attach(ada, event, presigned["key"])).status_code == 200
    assert await read_photo(service, f"http://events.test/media/{presigned['key']}") == content


@pytest.mark.parametrize("attached", [False, True], ids=["an upload", "a photo"])
async def test_an_upload_or_photo_of_another_organizer_cannot_be_attached(service: Service, attached: bool) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    key = await upload(service, ada)
    if attached:
        await ada.create_event(image_keys=[key])
    his = await ben.create_event()
    before = await photo_states(service)

    refusals = [
        await attach(ben, his, key),
        await ben.post("/api/events", {"event": event_fields(image_keys=[key])}),
        await ben.post(f"/api/events/{his['id']}/photos", {"key": key}),
    ]

    for refusal in refusals:
        assert list(failing_fields(refusal).values()) == [[f"no uploaded photo has the key {key}"]]
    assert await photo_keys(ben, his) == []
    assert await photo_states(service) == before


async def test_a_photo_of_an_admin_can_be_attached_by_admins_only(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()
    event = await ada.create_event()
    key = await upload(service, admin)

    assert failing_fields(await attach(ada, event, key)).keys() == {"image_keys"}
    assert (await attach(admin, event, key)).status_code == 200
    assert await photo_keys(ada, event) == [key]
    other = await ada.create_event()
    assert failing_fields(await attach(ada, other, key)).keys() == {"image_keys"}


async def test_an_admin_attaches_an_organizers_photo_to_its_own_events_only(service: Service) -> None:
    ada, ben, admin = await service.organizer(), await service.organizer(), await service.admin()
    hers, his = await ada.create_event(), await ben.create_event()
    key = await upload(service, ada)

    assert failing_fields(await attach(admin, his, key)).keys() == {"image_keys"}
    assert (await attach(admin, hers, key)).status_code == 200


async def test_an_event_that_is_handed_over_keeps_its_photos(service: Service) -> None:
    ada, ben, admin = await service.organizer(), await service.organizer(), await service.admin()
    one, two = await upload(service, ada), await upload(service, ada)
    event = await ada.create_event(image_keys=[one, two])

    await admin.patch(f"/api/events/{event['id']}", {"event": {"organizer_id": ben.id}})

    assert await photo_keys(ben, event) == [one, two]
    assert (await attach(ben, event, two, one)).status_code == 200
    assert failing_fields(await ben.post("/api/events", {"event": event_fields(image_keys=[one])})).keys() == {
        "image_keys"
    }


async def test_a_photo_is_named_once_and_there_are_50_at_most(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    key = await upload(service, ada)

    assert failing_fields(await attach(ada, event, key, key)) == {
        "image_keys": ["image_keys[1] is the same as image_keys[0]"]
    }
    assert failing_fields(await attach(ada, event, *(f"photo {number}" for number in range(51)))).keys() == {
        "image_keys"
    }
    repeated = {"event": event_fields(image_keys=[key, key])}
    assert failing_fields(await ada.post("/api/events", repeated)).keys() == {"image_keys"}


async def test_every_invalid_field_is_named_together_with_the_photos(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=5)

    response = await ada.patch(f"/api/events/{event['id']}", {"event": {"image_keys": ["no such photo"], "price": 0}})

    assert failing_fields(response).keys() == {"image_keys", "price"}
