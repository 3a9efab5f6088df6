"""The header `Idempotency-Key`: which texts it may hold, and which operations take it."""

import pytest

from holdfast.kit.operations.operation import Operation
from tests.events.idempotency.idempotency_scene import REPEATABLE, IdempotencyScene, of_each, status_and_code
from tests.helpers.cases import in_turn
from tests.helpers.events_service import Service


@in_turn("key", [b"", b"  ", b"\xe9", b"a\tb", "schlüssel".encode(), b"k" * 256])
@of_each
async def test_an_invalid_idempotency_key_is_refused(scene: IdempotencyScene, operation: Operation, key: bytes) -> None:
    before = await scene.count()
    body = scene.body(operation)
    headers = [(b"x-api-key", str(scene.ada.key).encode()), (b"idempotency-key", key)]

    refusal = await scene.service.http.post(scene.path(operation), json=body, headers=headers)

    assert status_and_code(refusal) == (400, "bad_request")
    assert await scene.count() == before


@pytest.mark.parametrize("key", ["k" * 255, "order 17 / seat 4", "5f1c6e0e-2f0f-4f5c-9f1a-8f4a1d3b2c10"])
async def test_a_printable_text_is_an_idempotency_key(scene: IdempotencyScene, key: str) -> None:
    assert (await scene.create(key)).content == (await scene.create(key)).content


async def test_an_operation_that_creates_nothing_ignores_the_idempotency_key(scene: IdempotencyScene) -> None:
    address = f"/api/events/{scene.event_id}"
    for title in ("Portraits", "Landscapes"):
        changed = await scene.ada.patch(address, {"event": {"title": title}}, headers={"Idempotency-Key": ""})
        assert changed.json()["data"]["title"] == title

    assert (await scene.ada.get(address, headers={"Idempotency-Key": ""})).status_code == 200
    assert await scene.count_stored_answers() == 0


async def test_the_documents_name_the_header_where_it_is_taken(service: Service) -> None:
    spec = (await service.http.get("/openapi.json")).json()

    named = {
        entry["operationId"]
        for methods in spec["paths"].values()
        for entry in methods.values()
        if any(
            parameter["name"] == "Idempotency-Key" and parameter["in"] == "header" for parameter in entry["parameters"]
        )
    }

    assert named == {operation.name for operation in REPEATABLE}
