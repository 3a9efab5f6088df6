"""Queues: what the contract promises of virtual waiting rooms."""

from typing import Any

import msgspec
import pytest

from holdfast.events.queues import release
from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import Accepted, NotInQueue, Queue, Waiting, failing_fields, listed, one, page, refusal
from tests.contract.steps import yesterday
from tests.support import Client, Service, queue_fields, running


async def join(client: Client, queue: dict[str, Any], visitor: str) -> str:
    """Let a visitor join; where to poll."""
    answer = await client.post(f"/api/queues/{queue['id']}/join", {"visitor_id": visitor})
    assert answer.status_code == 202, answer.text
    return msgspec.convert(answer.json(), Accepted).next.url


async def minute(service: Service) -> None:
    """Let a minute pass, at the end of which somebody is released."""
    await service.run_sql("update queues set paced_at = paced_at - interval '1 minute'")
    await release.release(service.database)


@requirement("queues.create")
async def test_a_queue_is_created_with_defaults_for_what_is_left_out(service: Service) -> None:
    ada = await service.organizer()

    queue = one(await ada.post("/api/queues", {"queue_event": queue_fields()}), Queue, status=201)

    assert (queue.title, queue.release_rate, queue.token_ttl_minutes) == ("Spring sale", 60, 10)
    assert (queue.active, queue.queue_length, queue.organizer_id) == (True, 0, ada.id)
    assert (queue.description, queue.starts_at, queue.ends_at, queue.max_queue_size) == (None,) * 4
    assert queue.waiting_room_url == f"http://events.test/queues/{queue.id}"
    assert queue.embed_url == f"http://events.test/queues/{queue.id}/embed"


@requirement("queues.create")
async def test_a_queue_is_created_as_it_was_described(service: Service) -> None:
    described = {
        "description": "Be patient.",
        "active": False,
        "starts_at": "2031-05-01T18:00:00Z",
        "ends_at": "2031-05-01T20:00:00Z",
        "max_queue_size": 1000,
        "target_url": "http://127.0.0.1:3000/sale?a=1#top",
    }

    queue = await (await service.organizer()).create_queue(**described)

    assert {name: queue[name] for name in described} == described


@requirement("queues.create.fields")
@pytest.mark.parametrize("field", ["title", "release_rate", "target_url", "token_ttl_minutes"])
async def test_a_queue_without_a_required_field_is_refused(service: Service, field: str) -> None:
    fields = queue_fields()
    del fields[field]

    assert failing_fields(await (await service.organizer()).post("/api/queues", {"queue_event": fields})) == {field}


@requirement("queues.create.fields")
@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("title", ["", " ", "x" * 301, 7, None]),
        ("description", ["x" * 10_001, 7]),
        ("active", ["yes", 1, None]),
        ("release_rate", [0, -1, 1.5, "60", None, 2**31]),
        ("token_ttl_minutes", [0, -1, 1.5, "10", None, 2**31]),
        ("max_queue_size", [0, -1, 1.5, "10", 2**31]),
        ("starts_at", ["tomorrow", 7, "2031-02-30T00:00:00Z"]),
        ("ends_at", ["tomorrow", 7, "2031-02-30T00:00:00Z"]),
        (
            "target_url",
            [
                *("", "shop.example", "/sale", "//shop.example", "https://", "https:///sale", "ftp://shop.example"),
                *("javascript:alert(1)", "data:text/html,x", "https://ada:pw@shop.example", "https://shop.example:0"),
                *("https://shop.example/a b", "https://shop.example/\n", "https://shop.example\\@evil.example"),
                *("https://shop.example:port", "https://[::1", "https://" + "x" * 2000, 7, None),
            ],
        ),
    ],
)
async def test_a_field_out_of_bounds_is_refused_on_creation_and_on_change(
    service: Service, subtests: pytest.Subtests, field: str, values: list[Any]
) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    for value in values:
        with subtests.test(value=str(value)[:50]):
            created = await ada.post("/api/queues", {"queue_event": queue_fields(**{field: value})})
            changed = await ada.patch(f"/api/queues/{queue['id']}", {"queue_event": {field: value}})

            assert failing_fields(created) == {field}
            assert failing_fields(changed) == {field}
    assert listed(await ada.get("/api/queues"), Queue) == [msgspec.convert(queue, Queue)]


@requirement("queues.create.fields")
async def test_a_queue_must_end_after_it_starts(service: Service) -> None:
    ada = await service.organizer()
    backwards = {"starts_at": "2031-05-01T18:00:00Z", "ends_at": "2031-05-01T18:00:00Z"}
    queue = await ada.create_queue(starts_at="2031-05-01T18:00:00Z")

    assert failing_fields(await ada.post("/api/queues", {"queue_event": queue_fields(**backwards)})) == {"ends_at"}
    change = {"queue_event": {"ends_at": "2031-05-01T17:00:00Z"}}
    assert failing_fields(await ada.patch(f"/api/queues/{queue['id']}", change)) == {"ends_at"}


@requirement("queues.create.organizer", "auth.admin-organizer-id")
async def test_an_admin_names_the_organizer_of_a_queue(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()

    queue = await admin.create_queue(organizer_id=ada.id)

    assert queue["organizer_id"] == ada.id
    for organizer in ({}, {"organizer_id": None}, {"organizer_id": 4711}):
        body = {"queue_event": queue_fields(**organizer)}
        assert failing_fields(await admin.post("/api/queues", body)) == {"organizer_id"}


@requirement("queues.create.organizer", "auth.organizer-scope")
async def test_an_organizer_creates_queues_of_its_own_only(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()

    assert (await ada.create_queue(organizer_id=ada.id))["organizer_id"] == ada.id
    refused = await eve.post("/api/queues", {"queue_event": queue_fields(organizer_id=ada.id)})
    assert refusal(refused) == (403, "forbidden")


@requirement("queues.list")
async def test_an_organizer_lists_its_own_queues_and_an_admin_all(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    mine = [await ada.create_queue(title=f"Sale {number}") for number in range(3)]
    other = await eve.create_queue()

    assert [each.id for each in listed(await ada.get("/api/queues"), Queue)] == [each["id"] for each in mine]
    everything = listed(await (await service.admin()).get("/api/queues"), Queue)
    assert [each.id for each in everything] == [*(each["id"] for each in mine), other["id"]]
    [second], where = page(await ada.get("/api/queues?offset=1&limit=1"), Queue)
    assert (second.id, where.count, where.offset, where.limit, where.has_more) == (mine[1]["id"], 1, 1, 1, True)


@requirement("queues.get")
async def test_a_queue_tells_how_many_wait_now(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    path = f"/api/queues/{queue['id']}"

    lengths = [one(await ada.get(path), Queue).queue_length]
    for visitor in ("ann", "ben"):
        await join(ada, queue, visitor)
        lengths.append(one(await ada.get(path), Queue).queue_length)
    await minute(service)
    lengths.append(one(await ada.get(path), Queue).queue_length)

    assert lengths == [0, 1, 2, 0]
    assert refusal(await ada.get("/api/queues/4711")) == (404, "not_found")


@requirement("queues.update")
async def test_a_change_sets_what_is_given_and_keeps_the_rest(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue(description="Be patient.", max_queue_size=5)
    changes: list[dict[str, Any]] = [
        {"title": "Summer sale"},
        {"release_rate": 7, "token_ttl_minutes": 3},
        {"active": False},
        {"description": None, "max_queue_size": None},
        {"starts_at": "2031-05-01T18:00:00Z", "ends_at": "2031-05-02T18:00:00Z"},
        {"target_url": "https://elsewhere.example/"},
        {},
    ]
    for change in changes:
        queue |= change
        changed = one(await ada.patch(f"/api/queues/{queue['id']}", {"queue_event": change}), Queue)
        assert changed == msgspec.convert(queue, Queue)


@requirement("queues.update")
async def test_a_queue_stays_with_its_organizer(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()
    queue = await ada.create_queue()

    for client in (ada, admin):
        body = {"queue_event": {"organizer_id": ada.id}}
        assert failing_fields(await client.patch(f"/api/queues/{queue['id']}", body)) == {"organizer_id"}


@requirement("queues.delete")
async def test_a_deleted_queue_is_gone_for_everybody(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    poll = await join(ada, queue, "ann")
    path = f"/api/queues/{queue['id']}"

    deleted = await ada.delete(path)

    assert (deleted.status_code, deleted.content) == (204, b"")
    assert listed(await ada.get("/api/queues"), Queue) == []
    for answer in (
        await ada.get(path),
        await ada.patch(path, {"queue_event": {"title": "Again"}}),
        await ada.delete(path),
        await ada.get(poll),
        await ada.post(f"{path}/join", {"visitor_id": "ann"}),
        await ada.post(f"{path}/join", {"visitor_id": "ben"}),
    ):
        assert refusal(answer) == (404, "not_found")


@requirement("queues.active", "queues.status.until-released")
async def test_an_active_queue_releases_and_another_does_not(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    polls = [await join(ada, queue, visitor) for visitor in ("ann", "ben")]
    assert [(await ada.get(poll)).json()["status"] for poll in polls] == ["waiting"] * 2
    await ada.patch(f"/api/queues/{queue['id']}", {"queue_event": {"active": False}})

    await minute(service)
    assert [(await ada.get(poll)).json()["status"] for poll in polls] == ["waiting"] * 2

    await ada.patch(f"/api/queues/{queue['id']}", {"queue_event": {"active": True}})
    await minute(service)
    assert [(await ada.get(poll)).json()["status"] for poll in polls] == ["not_in_queue"] * 2


@requirement("queues.active")
async def test_a_queue_that_is_not_active_or_over_takes_nobody(service: Service) -> None:
    ada = await service.organizer()
    for fields, expected in (
        ({"active": False}, (503, "queue_inactive")),
        ({"ends_at": yesterday()}, (422, "queue_ended")),
    ):
        queue = await ada.create_queue(**fields)
        answer = await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": "ann"})
        assert refusal(answer) == expected


@requirement("queues.join", "queues.status")
async def test_who_joins_is_told_where_to_poll_and_waits_there(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue(release_rate=7)

    polls = [await join(ada, queue, visitor) for visitor in ("ann", "ben")]

    assert polls == [f"/api/queues/{queue['id']}/status/{visitor}" for visitor in ("ann", "ben")]
    standing = [msgspec.convert((await ada.get(poll)).json(), Waiting) for poll in polls]
    assert [(each.position, each.estimated_wait_seconds) for each in standing] == [(1, 9), (2, 18)]


@requirement("queues.status")
async def test_who_never_joined_is_not_in_the_queue(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()

    answer = await ada.get(f"/api/queues/{queue['id']}/status/ann")

    assert msgspec.convert(answer.json(), NotInQueue).status == "not_in_queue"
    assert refusal(await ada.get("/api/queues/4711/status/ann")) == (404, "not_found")


@requirement("queues.join.visitor")
@pytest.mark.parametrize("body", [{}, {"visitor_id": None}, {"visitor_id": ""}, {"visitor_id": 7}])
async def test_a_join_without_a_visitor_is_refused(service: Service, body: dict[str, Any]) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()

    assert failing_fields(await ada.post(f"/api/queues/{queue['id']}/join", body)) == {"visitor_id"}


@requirement("queues.join.limit")
async def test_a_key_joins_60_times_a_minute_unless_configured_otherwise(settings: Settings) -> None:
    default = Settings.model_fields["joins_per_minute"].default
    assert default == 60
    async with running(settings.model_copy(update={"joins_per_minute": default})) as service:
        ada, ben = await service.organizer(), await service.organizer()
        queue = await ada.create_queue()
        path = f"/api/queues/{queue['id']}/join"
        answers = [await ada.post(path, {"visitor_id": f"visitor{number}"}) for number in range(61)]

        assert [answer.status_code for answer in answers] == [202] * 60 + [429]
        assert refusal(answers[-1]) == (429, "rate_limited")
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        assert answers[-1].json()["retry_after"] == int(answers[-1].headers["retry-after"])
        assert refusal(await ben.post(path, {"visitor_id": "ann"})) == (403, "forbidden")
        assert (await ada.get(f"/api/queues/{queue['id']}/status/visitor1")).status_code == 200


@requirement("queues.verify", "queues.verify.invalid")
async def test_the_token_of_a_released_visitor_is_valid_and_anything_else_is_not(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    poll = await join(ada, queue, "ann")
    await minute(service)
    token = (await ada.get(poll)).json()["token"]

    valid = await ada.post("/api/queues/verify_token", {"token": token})
    invalid = await ada.post("/api/queues/verify_token", {"token": token[:-3] + "AAA"})

    assert valid.status_code == 200
    assert valid.json().keys() == {"valid", "data"}
    assert (valid.json()["valid"], valid.json()["data"]["visitor_id"]) == (True, "ann")
    assert refusal(invalid) == (401, "invalid_token")
    assert invalid.json()["valid"] is False


@requirement("auth.organizer-scope")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {"queue_event": {"title": "Mine now"}}),
        ("PATCH", "", {"queue_event": {"active": False}}),
        ("DELETE", "", None),
        ("POST", "/join", {"visitor_id": "eve"}),
        ("POST", "/join", {"visitor_id": "ann"}),
        ("GET", "/status/ann", None),
        ("GET", "/status/eve", None),
    ],
)
async def test_nothing_of_a_queue_of_another_organizer_can_be_seen_or_changed(
    service: Service, method: str, path: str, body: Any
) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    queue = await ada.create_queue()
    await join(ada, queue, "ann")
    before = (await ada.get("/api/queues")).json()

    response = await eve.request(method, f"/api/queues/{queue['id']}{path}", body)

    assert refusal(response) == (403, "forbidden")
    assert (await ada.get("/api/queues")).json() == before
    assert (await eve.get("/api/queues")).json()["data"] == []


@requirement("auth.admin")
async def test_an_admin_works_with_queues_of_any_organizer(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()
    queue = await ada.create_queue()
    path = f"/api/queues/{queue['id']}"

    poll = await join(admin, queue, "ann")
    assert (await admin.get(poll)).json()["position"] == 1
    assert one(await admin.patch(path, {"queue_event": {"title": "Winter sale"}}), Queue).queue_length == 1
    assert (await admin.delete(path)).status_code == 204
