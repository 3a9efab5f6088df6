"""A request that creates something is done once and answered as before; one that was refused may be corrected."""

import pytest

from holdfast.kit.operations.operation import Operation
from tests.events.idempotency.idempotency_scene import (
    ADD_PHOTO,
    CREATE_EVENT,
    CREATE_REGISTRATION,
    OTHERWISE,
    REPEATABLE,
    IdempotencyScene,
    of_each,
    status_and_code,
)
from tests.events.photos.site import site_of
from tests.helpers.photos import stored_files
from tests.helpers.pictures import picture


def test_every_operation_that_takes_an_idempotency_key_is_tested_here() -> None:
    assert {operation.name for operation in REPEATABLE} == set(OTHERWISE), "OTHERWISE in idempotency_scene.py"


# Again


@of_each
async def test_a_request_that_comes_again_is_answered_to_the_byte_and_done_once(
    scene: IdempotencyScene, operation: Operation
) -> None:
    first = await scene.send(operation, "K")
    after_one = await scene.count()
    again = [await scene.send(operation, "K") for _ in range(3)]

    assert first.status_code == operation.status
    assert {(answer.status_code, answer.content, answer.headers["content-type"]) for answer in again} == {
        (first.status_code, first.content, first.headers["content-type"])
    }
    assert await scene.count() == after_one
    assert sum(after_one) == sum(await scene.count())


@of_each
async def test_a_different_request_with_the_same_key_is_refused_and_not_done(
    scene: IdempotencyScene, operation: Operation
) -> None:
    first = await scene.send(operation, "K")
    before = await scene.count()

    refusal = await scene.send(operation, "K", **OTHERWISE[operation.name])

    assert status_and_code(refusal) == (422, "idempotency_key_reused")
    assert await scene.count() == before
    assert (await scene.send(operation, "K")).content == first.content


async def test_a_photo_is_not_downloaded_again_for_a_request_that_was_answered(scene: IdempotencyScene) -> None:
    async with site_of(scene.service) as site:
        source = {"url": site.publish("/a.jpg", picture()), "key": None}
        first = await scene.send(ADD_PHOTO, "K", **source)
        before = await scene.count(), stored_files(scene.service)
        again = await scene.send(ADD_PHOTO, "K", **source)

        assert (first.status_code, again.content) == (201, first.content)
        assert site.request_count == 1
        assert (await scene.count(), stored_files(scene.service)) == before


async def test_a_key_used_at_another_address_is_refused(scene: IdempotencyScene) -> None:
    await scene.create("K")
    key = await scene.ada.post("/api/keys", {"api_key": {"name": "One more"}}, headers={"Idempotency-Key": "K"})

    assert status_and_code(key) == (422, "idempotency_key_reused")


async def test_a_body_written_in_another_way_is_the_same_request(scene: IdempotencyScene) -> None:
    first = await scene.ada.post("/api/keys", {"api_key": {"name": "x"}}, headers={"Idempotency-Key": "K"})
    again = await scene.ada.request(
        "POST",
        "/api/keys",
        content=b'{ "api_key" : {"user_id": null,\n "name": "\\u0078"} }',
        headers={"Idempotency-Key": " K ", "Content-Type": "application/json"},
    )

    assert again.content == first.content


async def test_requests_with_different_keys_or_none_are_each_done(scene: IdempotencyScene) -> None:
    answers = [await scene.create(key) for key in ("K", "k", "K2")]
    answers.append(await scene.ada.post("/api/events", scene.body(CREATE_EVENT)))

    assert len({answer.json()["data"]["id"] for answer in answers}) == 4


async def test_a_request_without_a_key_is_not_remembered(scene: IdempotencyScene) -> None:
    await scene.ada.post("/api/keys", {"api_key": {"name": "One more"}})
    await scene.ada.register(scene.event_id, email="ann@example.com")

    assert await scene.count_stored_answers() == 0


async def test_a_repeated_request_gets_the_first_answer_after_later_changes(scene: IdempotencyScene) -> None:
    first = await scene.create("K")
    address = f"/api/events/{first.json()['data']['id']}"
    await scene.ada.patch(address, {"event": {"title": "Portraits"}})
    await scene.ada.delete(address)

    assert (await scene.create("K")).content == first.content


# What is not kept


async def test_a_request_that_was_refused_may_be_corrected_with_the_same_key(scene: IdempotencyScene) -> None:
    assert status_and_code(await scene.create("K", title="")) == (422, "validation_failed")
    assert status_and_code(await scene.create("K", capacity=0)) == (422, "validation_failed")
    assert status_and_code(await scene.create("K", organizer_id=4711)) == (403, "forbidden")
    assert await scene.count_stored_answers() == 0

    assert (await scene.create("K")).status_code == 201


async def test_a_registration_that_found_no_place_may_be_tried_again_with_the_same_key(scene: IdempotencyScene) -> None:
    event = await scene.ada.create_event(capacity=1)
    poll = await scene.ada.register(event["id"], email="first@example.com")
    await scene.service.settle()

    assert status_and_code(await scene.send(CREATE_REGISTRATION, "K", event_id=event["id"])) == (422, "event_full")
    await scene.ada.delete(poll)

    assert (await scene.send(CREATE_REGISTRATION, "K", event_id=event["id"])).status_code == 202


@pytest.mark.usefixtures("own_service")
async def test_an_operation_whose_answer_cannot_be_stored_is_not_done(scene: IdempotencyScene) -> None:
    before = await scene.count()
    await scene.service.run_sql("alter table idempotency_answers add constraint full_disk check (false)")

    for operation in REPEATABLE:
        assert status_and_code(await scene.send(operation, "K")) == (500, "internal_error")

    assert await scene.count() == before
    await scene.service.run_sql("alter table idempotency_answers drop constraint full_disk")
    for operation in REPEATABLE:
        assert (await scene.send(operation, operation.name)).status_code == operation.status
