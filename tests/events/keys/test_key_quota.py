"""An organizer has a limited number of active keys, through every way to get one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from holdfast.events.settings import Settings
from tests.events.agents.samples import agent
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Client, Service, running_events


@pytest.fixture
async def service(settings: Settings) -> AsyncIterator[Service]:
    """The service with three keys for each organizer."""
    async with running_events(settings.model_copy(update={"keys_per_organizer": 3})) as service:
        yield service


async def make_key(client: Client, **fields: object) -> int:
    return (await client.post("/api/keys", {"api_key": {"name": "One more", **fields}})).status_code


async def test_a_key_beyond_the_quota_is_refused_with_the_limit(service: Service) -> None:
    ada = await service.organizer()
    assert [await make_key(ada) for _ in range(2)] == [201, 201]

    answer = await ada.post("/api/keys", {"api_key": {"name": "One too many"}})

    refusal = answer.json()
    assert (answer.status_code, refusal["code"]) == (422, "quota_exceeded")
    assert refusal["error"] == "An organizer may have at most 3 active API keys."
    assert (refusal["quota"], refusal["limit"]) == ("active API keys", 3)
    assert len((await ada.get("/api/keys")).json()["data"]) == 3


async def test_a_key_beyond_the_quota_is_refused_by_the_tool_too(service: Service) -> None:
    ada = await service.organizer()
    tool = agent(service, ada)
    for _ in range(2):
        await tool.call("create_api_key", name="One more")

    refusal = problem_of(await tool.call("create_api_key", name="One too many"))

    assert (refusal["code"], refusal["limit"], refusal["retryable"]) == ("quota_exceeded", 3, False)


async def test_concurrent_requests_do_not_exceed_the_quota_of_keys(service: Service) -> None:
    ada = await service.organizer()

    made = await asyncio.gather(*(make_key(ada) for _ in range(10)))

    assert sorted(made) == [201] * 2 + [422] * 8


async def test_a_revoked_key_makes_room_for_another(service: Service) -> None:
    ada = await service.organizer()
    spare = (await ada.post("/api/keys", {"api_key": {"name": "Spare"}})).json()["data"]["id"]
    assert [await make_key(ada) for _ in range(2)] == [201, 422]

    await ada.delete(f"/api/keys/{spare}")

    assert await make_key(ada) == 201


async def test_the_keys_of_one_organizer_take_no_room_from_another(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    assert [await make_key(ada) for _ in range(3)] == [201, 201, 422]

    assert await make_key(ben) == 201


async def test_an_admin_cannot_exceed_the_quota_of_an_organizer(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()

    assert [await make_key(admin, user_id=ada.id) for _ in range(3)] == [201, 201, 422]
