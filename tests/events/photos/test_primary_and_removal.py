"""One of an event's photos is made its primary one, or taken off it."""

from typing import Any

import pytest

from tests.helpers.events_service import Client, Service
from tests.helpers.photos import failing_fields, read_photo, upload
from tests.helpers.pictures import picture


async def three_photos(service: Service, client: Client) -> tuple[str, list[str]]:
    """The path of the photos of an event, and their keys."""
    keys = [await upload(service, client, picture(width=40 + number)) for number in range(3)]
    event = await client.create_event(image_keys=keys)
    return f"/api/events/{event['id']}/photos", keys


def result(path: str, keys: list[str]) -> dict[str, Any]:
    urls = [f"http://events.test/media/{key}" for key in keys]
    return {
        "event_id": int(path.split("/")[3]),
        "image_keys": keys,
        "image_urls": urls,
        "primary_image_url": urls[0] if urls else None,
    }


@pytest.mark.parametrize("chosen", [0, 1, 2])
async def test_a_primary_photo_moves_to_the_front_of_the_others(service: Service, chosen: int) -> None:
    ada = await service.organizer()
    path, keys = await three_photos(service, ada)

    response = await ada.put(f"{path}/primary", {"key": keys[chosen]})

    expected = [keys[chosen], *(key for key in keys if key != keys[chosen])]
    assert (response.status_code, response.json()["data"]) == (200, result(path, expected))
    event = (await ada.get(path.removesuffix("/photos"))).json()["data"]
    assert event["primary_image_url"] == result(path, expected)["primary_image_url"]


async def test_a_key_that_is_not_a_photo_of_the_event_cannot_be_primary(service: Service) -> None:
    ada = await service.organizer()
    path, keys = await three_photos(service, ada)
    other = await upload(service, ada)

    for key in (other, "nothing/here.png", keys[0].upper()):
        assert failing_fields(await ada.put(f"{path}/primary", {"key": key})).keys() == {"key"}
    assert failing_fields(await ada.put(f"{path}/primary", {})) == {"key": ["is required"]}


async def test_a_photo_is_taken_off_and_the_next_becomes_primary(service: Service) -> None:
    ada = await service.organizer()
    path, keys = await three_photos(service, ada)

    for left in (keys[1:], keys[2:], []):
        gone = keys[keys.index(left[0]) - 1] if left else keys[-1]
        response = await ada.delete(path, params={"key": gone})
        assert (response.status_code, response.json()["data"]) == (200, result(path, left))


async def test_a_photo_is_taken_off_once(service: Service) -> None:
    ada = await service.organizer()
    path, keys = await three_photos(service, ada)
    await ada.delete(path, params={"key": keys[0]})

    for key in (keys[0], "nothing/here.png"):
        refusal = await ada.delete(path, params={"key": key})
        assert (refusal.status_code, refusal.json()["code"]) == (404, "not_found")
    assert failing_fields(await ada.delete(path)) == {"key": ["is required"]}


async def test_a_photo_that_was_taken_off_can_still_be_put_back(service: Service) -> None:
    ada = await service.organizer()
    path, keys = await three_photos(service, ada)
    await ada.delete(path, params={"key": keys[0]})

    response = await ada.post(path, {"key": keys[0]})

    assert response.json()["data"]["image_keys"] == [*keys[1:], keys[0]]
    assert await read_photo(service, response.json()["data"]["url"]) == picture(width=40)


async def test_photos_of_an_event_of_another_organizer_cannot_be_changed(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    path, keys = await three_photos(service, ada)

    for refusal in (
        await ben.put(f"{path}/primary", {"key": keys[1]}),
        await ben.delete(path, params={"key": keys[1]}),
        await ben.post(path, {"key": keys[1]}),
    ):
        assert (refusal.status_code, refusal.json()["code"]) == (403, "forbidden")
    nowhere = path.replace(path.split("/")[3], "4711")
    assert (await ben.put(f"{nowhere}/primary", {"key": keys[1]})).status_code == 404
    assert (await ben.delete(nowhere, params={"key": keys[1]})).status_code == 404
    assert len((await ada.get(path.removesuffix("/photos"))).json()["data"]["image_urls"]) == 3
    assert (await (await service.admin()).delete(path, params={"key": keys[1]})).status_code == 200
