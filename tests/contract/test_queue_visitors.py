"""Queues as visitors meet them: they join, wait, are released, and show a token that proves it."""

from typing import Any

import msgspec
import pytest

from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import NotInQueue, Waiting, failing_fields, refusal
from tests.contract.steps import join, minute, yesterday
from tests.helpers.events_service import Service, running_events


@requirement("queues.active", "queues.status.until-released")
async def test_an_active_queue_releases_visitors_and_an_inactive_one_does_not(service: Service) -> None:
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
async def test_an_inactive_or_ended_queue_takes_no_new_visitors(service: Service) -> None:
    ada = await service.organizer()
    for fields, expected in (
        ({"active": False}, (503, "queue_inactive")),
        ({"ends_at": yesterday()}, (422, "queue_ended")),
    ):
        queue = await ada.create_queue(**fields)
        answer = await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": "ann"})
        assert refusal(answer) == expected


@requirement("queues.join", "queues.status")
async def test_a_visitor_who_joins_gets_an_address_to_poll_and_a_position(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue(release_rate=7)

    polls = [await join(ada, queue, visitor) for visitor in ("ann", "ben")]

    assert polls == [f"/api/queues/{queue['id']}/status/{visitor}" for visitor in ("ann", "ben")]
    visitors = [msgspec.convert((await ada.get(poll)).json(), Waiting) for poll in polls]
    assert [(visitor.position, visitor.estimated_wait_seconds) for visitor in visitors] == [(1, 9), (2, 18)]


@requirement("queues.status")
async def test_a_visitor_who_never_joined_is_reported_as_not_in_the_queue(service: Service) -> None:
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
    async with running_events(settings.model_copy(update={"joins_per_minute": default})) as service:
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
