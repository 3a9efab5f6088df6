"""Large answers are kept for each organizer up to a number of bytes: storage does not grow with every request."""

import pytest

from holdfast.kit.operations import idempotency
from tests.events.idempotency.idempotency_scene import IdempotencyScene, status_and_code
from tests.helpers.events_service import Client

LONG = "x" * 90_000


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for the answers to two long events."""
    monkeypatch.setattr(idempotency, "MAX_LARGE_ANSWERS_BYTES", 300_000)


async def stored_bytes(scene: IdempotencyScene) -> int:
    return (await scene.service.run_sql("select sum(octet_length(sealed)) from idempotency_answers"))[0][0]


async def another_key(scene: IdempotencyScene) -> Client:
    made = await scene.ada.post("/api/keys", {"api_key": {"name": "One more"}})
    return Client(scene.service.http, made.json()["data"]["key"])


async def test_stored_answers_of_an_organizer_are_bounded_in_bytes_over_all_its_keys(scene: IdempotencyScene) -> None:
    for client in (scene.ada, await another_key(scene)):
        for number in range(5):
            assert (await scene.create(f"K{number}", client, body=LONG)).status_code == 201

    assert await stored_bytes(scene) < 300_000
    assert await scene.count_stored_answers() == 10


async def test_a_request_whose_answer_is_not_kept_is_still_done_once_and_says_so(scene: IdempotencyScene) -> None:
    first = [await scene.create(f"K{number}", body=LONG) for number in range(3)]
    before = await scene.count()

    again = [await scene.create(f"K{number}", body=LONG) for number in range(3)]

    assert [answer.content for answer in again[:2]] == [answer.content for answer in first[:2]]
    assert status_and_code(again[2]) == (422, "idempotency_key_reused")
    assert "too large" in again[2].json()["error"]
    assert again[2].json()["hint"].startswith("Look at what was created")
    assert await scene.count() == before


async def test_small_answers_are_stored_although_large_ones_are_not(scene: IdempotencyScene) -> None:
    for number in range(3):
        await scene.create(f"K{number}", body=LONG)

    small = await scene.create("small")

    assert (await scene.create("small")).content == small.content


async def test_the_large_answers_of_one_organizer_take_no_room_from_another(scene: IdempotencyScene) -> None:
    for number in range(3):
        await scene.create(f"K{number}", body=LONG)
    eve = await scene.service.organizer("Eve Events")

    first = await scene.create("K", eve, body=LONG)

    assert (await scene.create("K", eve, body=LONG)).content == first.content


async def test_large_answers_are_stored_again_after_a_day(scene: IdempotencyScene) -> None:
    for number in range(3):
        await scene.create(f"K{number}", body=LONG)
    await scene.service.run_sql("update idempotency_answers set inserted_at = now() - interval '24 hours'")

    first = await scene.create("new", body=LONG)

    assert (await scene.create("new", body=LONG)).content == first.content
