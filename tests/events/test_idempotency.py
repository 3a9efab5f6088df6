"""A POST that creates something, repeated with its `Idempotency-Key`, is done once and answered as it was before."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, LiteralString

import httpx2
import pytest

from holdfast.events.api import OPERATIONS
from holdfast.events.settings import Settings
from holdfast.kit.idempotency import forget_answers
from holdfast.kit.operation import Operation
from tests.events.photos.pictures import picture
from tests.events.photos.site import site_of
from tests.events.photos.steps import accepted, files, key_of
from tests.support import Client, Service, event_fields, eventually, queue_fields, running, unlimited

REPEATABLE = [each for each in OPERATIONS if each.repeatable]
PHOTO, OTHER_PHOTO = key_of(1, "a"), key_of(1, "b")
OTHERWISE: dict[str, dict[str, Any]] = {
    "create_event": {"title": "Portraits"},
    "create_api_key": {"name": "Another"},
    "create_registration": {"email": "ben@example.com"},
    "add_event_photo": {"key": OTHER_PHOTO},
    "presign_upload": {"content_type": "image/png"},
    "create_queue": {"title": "Summer sale"},
    "join_queue": {"visitor_id": "ben"},
}
"""What makes another request of it, for each operation that takes the header."""

of_each = pytest.mark.parametrize("operation", REPEATABLE, ids=[each.name for each in REPEATABLE])

COUNT: LiteralString = """
    select (select count(*) from events), (select count(*) from api_keys), (select count(*) from registrations),
           (select count(*) from photos), (select count(*) from event_photos), (select count(*) from queues),
           (select count(*) from queue_visitors)
"""


class Scene:
    """An organizer with an event, photos and a queue, and requests that create something."""

    def __init__(self, service: Service, ada: Client, event_id: int, queue_id: int) -> None:
        self.service = service
        self.ada = ada
        self.event_id = event_id
        self.queue_id = queue_id

    def body(self, operation: Operation, **fields: Any) -> dict[str, Any]:
        acceptable: Mapping[str, dict[str, Any]] = {
            "create_event": event_fields(datetime="2031-05-01T18:00:00Z"),
            "create_api_key": {"name": "One more"},
            "create_registration": {"event_id": self.event_id, "email": "ann@example.com"},
            "add_event_photo": {"key": PHOTO},
            "presign_upload": {"content_type": "image/jpeg", "content_length": 1000},
            "create_queue": queue_fields(),
            "join_queue": {"visitor_id": "ann"},
        }
        content = {**acceptable[operation.name], **fields}
        return {operation.body: content} if operation.body else content

    def path(self, operation: Operation) -> str:
        return operation.path.format(event_id=self.event_id, queue_id=self.queue_id)

    async def send(
        self, operation: Operation, key: str, client: Client | None = None, /, **fields: Any
    ) -> httpx2.Response:
        body = self.body(operation, **fields)
        return await (client or self.ada).post(self.path(operation), body, headers={"Idempotency-Key": key})

    async def create(self, key: str, client: Client | None = None, **fields: Any) -> httpx2.Response:
        """Create an event with a key."""
        return await self.send(CREATE_EVENT, key, client, **fields)

    async def count(self) -> tuple[int, ...]:
        """Events, API keys, registrations, photos, photos shown, queues and visitors there are."""
        return (await self.service.run_sql(COUNT))[0]

    async def stored(self) -> int:
        return (await self.service.run_sql("select count(*) from idempotency_answers"))[0][0]


CREATE_EVENT, CREATE_REGISTRATION, ADD_PHOTO = (
    next(each for each in OPERATIONS if each.name == name)
    for name in ("create_event", "create_registration", "add_event_photo")
)


@pytest.fixture
async def scene(service: Service) -> Scene:
    ada = await service.organizer()
    await accepted(service, PHOTO, OTHER_PHOTO)
    return Scene(service, ada, (await ada.create_event())["id"], (await ada.create_queue())["id"])


def code(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def test_every_operation_that_takes_the_header_is_tried_here() -> None:
    assert {each.name for each in REPEATABLE} == set(OTHERWISE)


# Again


@of_each
async def test_a_request_that_comes_again_is_answered_to_the_byte_and_done_once(
    scene: Scene, operation: Operation
) -> None:
    first = await scene.send(operation, "K")
    after_one = await scene.count()
    again = [await scene.send(operation, "K") for _ in range(3)]

    assert first.status_code == operation.status
    assert {(each.status_code, each.content, each.headers["content-type"]) for each in again} == {
        (first.status_code, first.content, first.headers["content-type"])
    }
    assert await scene.count() == after_one
    assert sum(after_one) == sum(await scene.count())


@of_each
async def test_another_request_with_the_same_key_is_refused_and_not_done(scene: Scene, operation: Operation) -> None:
    first = await scene.send(operation, "K")
    before = await scene.count()

    refused = await scene.send(operation, "K", **OTHERWISE[operation.name])

    assert code(refused) == (422, "idempotency_key_reused")
    assert await scene.count() == before
    assert (await scene.send(operation, "K")).content == first.content


async def test_a_photo_is_not_downloaded_again_for_a_request_that_was_answered(scene: Scene) -> None:
    async with site_of(scene.service) as site:
        source = {"url": site.has("/a.jpg", picture()), "key": None}
        first = await scene.send(ADD_PHOTO, "K", **source)
        there = await scene.count(), files(scene.service)
        again = await scene.send(ADD_PHOTO, "K", **source)

        assert (first.status_code, again.content) == (201, first.content)
        assert site.asked == 1
        assert (await scene.count(), files(scene.service)) == there


async def test_the_same_request_to_another_address_is_another_request(scene: Scene) -> None:
    await scene.create("K")
    key = await scene.ada.post("/api/keys", {"api_key": {"name": "One more"}}, headers={"Idempotency-Key": "K"})

    assert code(key) == (422, "idempotency_key_reused")


async def test_the_way_a_body_is_written_does_not_make_another_request_of_it(scene: Scene) -> None:
    first = await scene.ada.post("/api/keys", {"api_key": {"name": "x"}}, headers={"Idempotency-Key": "K"})
    again = await scene.ada.request(
        "POST",
        "/api/keys",
        content=b'{ "api_key" : {"user_id": null,\n "name": "\\u0078"} }',
        headers={"Idempotency-Key": " K ", "Content-Type": "application/json"},
    )

    assert again.content == first.content


async def test_other_keys_and_no_key_are_other_requests(scene: Scene) -> None:
    answers = [await scene.create(key) for key in ("K", "k", "K2")]
    answers.append(await scene.ada.post("/api/events", scene.body(CREATE_EVENT)))

    assert len({each.json()["data"]["id"] for each in answers}) == 4


async def test_a_request_without_a_key_is_not_remembered(scene: Scene) -> None:
    await scene.ada.post("/api/keys", {"api_key": {"name": "One more"}})
    await scene.ada.register(scene.event_id, email="ann@example.com")

    assert await scene.stored() == 0


async def test_what_was_created_may_change_and_the_answer_stays(scene: Scene) -> None:
    first = await scene.create("K")
    address = f"/api/events/{first.json()['data']['id']}"
    await scene.ada.patch(address, {"event": {"title": "Portraits"}})
    await scene.ada.delete(address)

    assert (await scene.create("K")).content == first.content


# Whose key it is


async def test_a_key_of_one_organizer_is_nothing_to_another(scene: Scene) -> None:
    eve = await scene.service.organizer("Eve Events")
    mine = await scene.create("K")
    hers = await scene.create("K", eve)

    assert hers.status_code == 201
    assert (mine.json()["data"]["organizer_id"], hers.json()["data"]["organizer_id"]) == (scene.ada.id, eve.id)


async def test_a_key_belongs_to_the_api_key_it_was_sent_with(scene: Scene) -> None:
    made = await scene.ada.post("/api/keys", {"api_key": {"name": "One more"}})
    other = Client(scene.service.http, made.json()["data"]["key"])
    admins = [await scene.service.admin() for _ in range(2)]

    ids = [(await scene.create("K", client)).json()["data"]["id"] for client in (scene.ada, other)]
    ids += [(await scene.create("K", admin, organizer_id=scene.ada.id)).json()["data"]["id"] for admin in admins]

    assert len(set(ids)) == 4


async def test_nobody_without_an_api_key_learns_what_a_key_stands_for(scene: Scene) -> None:
    await scene.create("K")

    assert code(await scene.create("K", scene.service.anonymous)) == (401, "missing_api_key")
    stranger = Client(scene.service.http, "hf_" + "A" * 43)
    assert code(await scene.create("K", stranger)) == (401, "invalid_api_key")


# What is not kept


async def test_a_request_that_was_refused_may_be_corrected_with_the_same_key(scene: Scene) -> None:
    assert code(await scene.create("K", title="")) == (422, "validation_failed")
    assert code(await scene.create("K", capacity=0)) == (422, "validation_failed")
    assert code(await scene.create("K", organizer_id=4711)) == (403, "forbidden")
    assert await scene.stored() == 0

    assert (await scene.create("K")).status_code == 201


async def test_a_registration_that_found_no_place_may_be_tried_again_with_the_same_key(scene: Scene) -> None:
    event = await scene.ada.create_event(capacity=1)
    poll = await scene.ada.register(event["id"], email="first@example.com")
    await scene.service.settle()

    assert code(await scene.send(CREATE_REGISTRATION, "K", event_id=event["id"])) == (422, "event_full")
    await scene.ada.delete(poll)

    assert (await scene.send(CREATE_REGISTRATION, "K", event_id=event["id"])).status_code == 202


async def test_work_and_answer_are_stored_together_or_not_at_all(scene: Scene) -> None:
    before = await scene.count()
    await scene.service.run_sql("alter table idempotency_answers add constraint full_disk check (false)")

    for operation in REPEATABLE:
        assert code(await scene.send(operation, "K")) == (500, "internal_error")

    assert await scene.count() == before
    await scene.service.run_sql("alter table idempotency_answers drop constraint full_disk")
    for operation in REPEATABLE:
        assert (await scene.send(operation, operation.name)).status_code == operation.status


# At once


@of_each
async def test_of_many_who_ask_at_once_one_is_served_and_all_are_answered_alike(
    scene: Scene, operation: Operation
) -> None:
    before = await scene.count()

    answers = await asyncio.gather(*(scene.send(operation, "K") for _ in range(20)))

    assert {(each.status_code, each.content) for each in answers} == {(operation.status, answers[0].content)}
    assert sum(await scene.count()) - sum(before) == 1


@of_each
async def test_processes_that_are_asked_at_once_agree(scene: Scene, settings: Settings, operation: Operation) -> None:
    before = await scene.count()
    async with contextlib.AsyncExitStack() as stack:
        others = [await stack.enter_async_context(running(settings)) for _ in range(3)]
        clients = [Client(each.http, scene.ada.key) for each in others]
        answers = await asyncio.gather(
            *(scene.send(operation, f"K{number % 7}", client) for number in range(21) for client in clients)
        )

    assert {each.status_code for each in answers} == {operation.status}
    # The same person is registered once, the same photo shown once, the same visitor waits once, under whatever key.
    created = 1 if operation.name in {"create_registration", "add_event_photo", "join_queue"} else 7
    assert sum(await scene.count()) - sum(before) == created
    assert len({each.content for each in answers}) == created


async def test_a_request_waits_for_the_same_one_in_another_process_and_runs_when_that_one_failed(
    scene: Scene, settings: Settings
) -> None:
    """The other process has done the work, and dies before it commits."""
    async with running(settings) as other:
        async with scene.service.database.transaction() as tx:
            # Nobody else gets past the list of organizers now.
            await tx.value("select 1 from users for update")
            first = asyncio.create_task(scene.create("K", Client(other.http, scene.ada.key)))
            await eventually(lambda: scene.service.run_sql("select from pg_locks where not granted"))
            second = asyncio.create_task(scene.create("K"))
            await eventually(
                lambda: scene.service.run_sql("select from pg_locks where locktype = 'advisory' and not granted")
            )
            await tx.value(
                """
                select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock' and wait_event <> 'advisory'
                """
            )
            assert (await first).status_code == 503
        answer = await second

    assert answer.status_code == 201
    assert (await scene.count())[0] == 2


async def test_registrations_with_and_without_keys_share_the_service_and_each_gets_its_own_answer(
    scene: Scene,
) -> None:
    """New ones, repeated ones, misused keys and refusals, all at once."""
    await scene.send(CREATE_REGISTRATION, "old", email="old@example.com")
    fresh = [scene.send(CREATE_REGISTRATION, f"new{n}", email=f"n{n}@example.com") for n in range(10)]
    twice = [scene.send(CREATE_REGISTRATION, "new0", email="n0@example.com") for _ in range(5)]
    old = [scene.send(CREATE_REGISTRATION, "old", email="old@example.com") for _ in range(5)]
    misused = [scene.send(CREATE_REGISTRATION, "old", email="new@example.com") for _ in range(5)]
    nowhere = [scene.send(CREATE_REGISTRATION, f"lost{n}", event_id=4711) for n in range(5)]
    without = [scene.ada.register(scene.event_id, email=f"w{n}@example.com") for n in range(10)]

    answers = await asyncio.gather(*fresh, *twice, *old, *misused, *nowhere)
    polls = await asyncio.gather(*without)

    statuses = [each.status_code for each in answers]
    assert statuses == [202] * 20 + [422] * 5 + [404] * 5
    assert len({each.content for each in answers[:10]}) == 10
    assert {each.content for each in answers[10:15]} == {answers[0].content}
    assert len({each.content for each in answers[15:20]}) == 1
    assert {each.json()["code"] for each in answers[20:25]} == {"idempotency_key_reused"}
    assert len(set(polls)) == 10
    assert (await scene.count())[2] == 21
    assert await scene.stored() == 11


# A day


async def test_after_a_day_a_key_may_be_used_for_something_else(scene: Scene) -> None:
    first = await scene.create("K")
    await scene.service.run_sql("update idempotency_answers set inserted_at = now() - interval '24 hours'")

    second = await scene.create("K", title="Portraits")

    assert second.status_code == 201
    assert second.json()["data"]["id"] != first.json()["data"]["id"]
    assert (await scene.create("K", title="Portraits")).content == second.content


async def test_answers_older_than_a_day_are_deleted(scene: Scene) -> None:
    for key, hours in (("old", 25), ("young", 23)):
        await scene.create(key)
        await scene.service.run_sql(
            "update idempotency_answers set inserted_at = now() - make_interval(hours => %(hours)s)"
            " where inserted_at > now() - interval '1 hour'",
            hours=hours,
        )

    assert await scene.service.database.transact(forget_answers) == 1
    assert await scene.stored() == 1


# Secrets


async def test_a_secret_in_an_answer_is_told_again_and_nowhere_stored_readable(scene: Scene) -> None:
    body = {"api_key": {"name": "One more"}}
    first = await scene.ada.post("/api/keys", body, headers={"Idempotency-Key": "my-own-idempotency-key"})
    secret = first.json()["data"]["key"]

    again = await scene.ada.post("/api/keys", body, headers={"Idempotency-Key": "my-own-idempotency-key"})

    assert again.json()["data"]["key"] == secret
    [(row,)] = await scene.service.run_sql("select idempotency_answers::text from idempotency_answers")
    # Bytes are shown in hexadecimal.
    for readable in (secret, "One more", "my-own-idempotency-key"):
        assert readable not in row
        assert readable.encode().hex() not in row


async def test_an_answer_sealed_under_another_secret_is_refused_rather_than_done_again(
    scene: Scene, database_url: str, tmp_path: Path
) -> None:
    await scene.create("K")
    before = await scene.count()

    async with running(unlimited(database_url, tmp_path / "elsewhere")) as other:
        refused = await scene.create("K", Client(other.http, scene.ada.key))

    assert code(refused) == (422, "idempotency_key_reused")
    assert "another secret key" in refused.json()["error"]
    assert await scene.count() == before


async def test_registering_an_organizer_takes_no_key_since_anybody_could_ask_for_the_answer(service: Service) -> None:
    body = {"organizer": {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}}
    first, again = [
        await service.anonymous.post("/api/organizers/register", body, headers={"Idempotency-Key": "K"})
        for _ in range(2)
    ]

    assert first.status_code == 201
    assert code(again) == (422, "validation_failed")
    assert set(again.json()["errors"]) == {"email", "slug"}
    assert "hf_" not in again.text
    assert await service.run_sql("select from idempotency_answers") == []


# The header


@pytest.mark.parametrize("key", [b"", b"  ", b"\xe9", b"a\tb", "schlüssel".encode(), b"k" * 256])
@of_each
async def test_a_header_that_holds_no_key_is_refused(scene: Scene, operation: Operation, key: bytes) -> None:
    before = await scene.count()
    body = scene.body(operation)
    headers = [(b"x-api-key", str(scene.ada.key).encode()), (b"idempotency-key", key)]

    refused = await scene.service.http.post(scene.path(operation), json=body, headers=headers)

    assert code(refused) == (400, "bad_request")
    assert await scene.count() == before


@pytest.mark.parametrize("key", ["k" * 255, "order 17 / seat 4", "5f1c6e0e-2f0f-4f5c-9f1a-8f4a1d3b2c10"])
async def test_any_printable_text_is_a_key(scene: Scene, key: str) -> None:
    assert (await scene.create(key)).content == (await scene.create(key)).content


async def test_what_creates_nothing_does_not_mind_the_header(scene: Scene) -> None:
    address = f"/api/events/{scene.event_id}"
    for title in ("Portraits", "Landscapes"):
        changed = await scene.ada.patch(address, {"event": {"title": title}}, headers={"Idempotency-Key": ""})
        assert changed.json()["data"]["title"] == title

    assert (await scene.ada.get(address, headers={"Idempotency-Key": ""})).status_code == 200
    assert await scene.stored() == 0


async def test_the_documents_name_the_header_where_it_is_taken(service: Service) -> None:
    spec = (await service.http.get("/openapi.json")).json()

    named = {
        entry["operationId"]
        for methods in spec["paths"].values()
        for entry in methods.values()
        if any(each["name"] == "Idempotency-Key" and each["in"] == "header" for each in entry["parameters"])
    }

    assert named == {each.name for each in REPEATABLE}
