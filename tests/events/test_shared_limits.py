"""Rate limits hold for an organizer as a whole, with any number of keys; and typing errors lock out no owner."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.events.agents.samples import agent
from tests.helpers.agents import STATELESS
from tests.helpers.events_service import Client, Service, running_events


@pytest.fixture
async def service(settings: Settings) -> AsyncIterator[Service]:
    """The service with small limits: two of a kind for each key, and twice as many for an organizer."""
    changed: dict[str, Any] = {
        "registrations_per_minute": 2,
        "photos_per_minute": 2,
        "joins_per_minute": 2,
        "messages_per_second": 1,
        "keys_share": 2,
        "organizers_per_hour": 3,
        "refused_organizers_per_hour": 5,
    }
    async with running_events(settings.model_copy(update=changed)) as service:
        yield service


async def organizer(service: Service, keys: int = 4) -> list[Client]:
    """An organizer with this many keys."""
    async with running_events(service.database.resources.settings) as another:  # whose limits are used up by nothing
        ada = await another.organizer()
    clients = [Client(service.http, ada.key)]
    for _ in range(keys - 1):
        made = await clients[0].post("/api/keys", {"api_key": {"name": "One more"}})
        clients.append(Client(service.http, made.json()["data"]["key"]))
    return clients


async def with_every_key(clients: list[Client], path: str, body: Any) -> list[int]:
    """The statuses of three requests with each key, one key after the other."""
    return [(await client.post(path, body)).status_code for client in clients for _ in range(3)]


async def registrations(clients: list[Client]) -> list[int]:
    event = await clients[0].create_event()
    body = {"registration": {"event_id": event["id"], "email": "ann@example.com"}}
    return await with_every_key(clients, "/api/registrations", body)


async def test_keys_of_an_organizer_share_one_limit_of_registrations(service: Service) -> None:
    """The first two keys use up what each of them may; the others find nothing left."""
    clients = await organizer(service)

    assert await registrations(clients) == [202, 202, 429, 202, 202, 429, *[429] * 6]


async def test_keys_of_an_organizer_share_the_limits_of_joins_and_photos(service: Service) -> None:
    clients = await organizer(service)
    event, queue = await clients[0].create_event(), await clients[0].create_queue()

    joins = await with_every_key(clients, f"/api/queues/{queue['id']}/join", {"visitor_id": "ann"})
    downloads = await with_every_key(clients, f"/api/events/{event['id']}/photos", {"url": "http://127.0.0.1/a.jpg"})

    assert joins == [202, 202, 429, 202, 202, 429, *[429] * 6]
    assert downloads == [422, 422, 429, 422, 422, 429, *[429] * 6]


async def test_the_endpoint_for_agents_counts_all_keys_together(service: Service) -> None:
    clients = await organizer(service)

    answers = await asyncio.gather(
        *(agent(service, client, STATELESS).ask("tools/list") for client in clients for _ in range(2))
    )

    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [429] * 6


async def test_a_registration_through_a_tool_counts_with_those_of_other_keys(service: Service) -> None:
    clients = await organizer(service)
    event = await clients[0].create_event()
    assert (await registrations(clients[:2])).count(202) == 4

    answer = await agent(service, clients[2]).ask(
        "tools/call",
        {"name": "create_registration", "arguments": {"event_id": event["id"], "email": "ann@example.com"}},
    )

    assert answer.status_code == 429


async def test_the_refusal_says_that_all_keys_count_together(service: Service) -> None:
    clients = await organizer(service)
    await registrations(clients[:2])

    refusal = await clients[2].post("/api/registrations", {"registration": {}})

    assert refusal.json()["error"] == "At most 4 requests per minute are allowed here with all your keys together."
    assert 1 <= int(refusal.headers["Retry-After"]) <= 60


async def test_organizers_and_admins_have_separate_rate_limits(service: Service) -> None:
    assert (await registrations(await organizer(service))).count(202) == 4

    assert (await registrations(await organizer(service))).count(202) == 4
    ada, admin = (await organizer(service, keys=1))[0], await service.admin()
    event = await ada.create_event()
    body = {"registration": {"event_id": event["id"], "email": "ann@example.com"}}
    assert await with_every_key([admin], "/api/registrations", body) == [202, 202, 429]


async def test_new_keys_of_an_organizer_are_limited_even_if_it_revokes_others(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"keys_per_hour": 3})) as service:
        ada = await service.organizer()
        statuses: list[int] = []
        for _ in range(5):
            made = await ada.post("/api/keys", {"api_key": {"name": "One more"}})
            statuses.append(made.status_code)
            if made.status_code == 201:
                await ada.delete(f"/api/keys/{made.json()['data']['id']}")

    assert statuses == [201, 201, 201, 429, 429]


async def sign_up(service: Service, number: int, **fields: Any) -> httpx2.Response:
    body = {"name": "Ada Events", "email": f"ada{number}@example.com", "slug": f"ada-{number}", **fields}
    return await service.anonymous.post("/api/organizers/register", {"organizer": body})


async def test_typing_errors_do_not_use_up_what_an_address_may_register(service: Service) -> None:
    refusals = [await sign_up(service, 0, slug="Not a slug") for _ in range(4)]
    made = [await sign_up(service, number) for number in range(4)]

    assert [response.status_code for response in refusals] == [422] * 4
    assert [response.status_code for response in made] == [201] * 3 + [429]


async def test_refusals_have_a_limit_of_their_own(service: Service) -> None:
    """Otherwise a caller who wants to know which addresses have accounts could ask for ever."""
    assert (await sign_up(service, 0)).status_code == 201

    tries = [(await sign_up(service, 0)).status_code for _ in range(7)]

    assert tries == [422] * 5 + [429] * 2
    assert (await sign_up(service, 1)).status_code == 429


async def test_requests_at_once_make_no_more_organizers_than_are_allowed(service: Service) -> None:
    made = await asyncio.gather(*(sign_up(service, number) for number in range(20)))

    assert [response.status_code for response in made].count(201) == 3


async def test_the_answer_whether_an_address_is_an_organizer_is_limited_by_the_hour(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"organizers_per_email": 1})) as service:
        tries = [await sign_up(service, 1, slug=f"ada-{number}") for number in range(3)]
        tries.append(await sign_up(service, 1, email="Ada1@Example.com", slug="another"))
        other = await sign_up(service, 2)

    assert [response.status_code for response in tries] == [201, 422, 422, 429]
    refusal = tries[-1].json()
    assert refusal["code"] == "rate_limited"
    assert 3500 < int(tries[-1].headers["retry-after"]) <= 3600
    assert other.status_code == 201


async def test_no_stranger_keeps_an_address_from_becoming_an_organizer(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"organizers_per_email": 3})) as service:
        slug = (await service.organizer()).slug
        stranger, ada = Client(service.client_at("203.0.113.7")), Client(service.client_at("198.51.100.1"))

        tries = [await register(stranger, slug) for _ in range(8)]
        made = await register(ada, "ada")

    assert tries == [422] * 5 + [429] * 3
    assert made == 201


async def register(program: Client, slug: str) -> int:
    organizer = {"name": "Ada Events", "email": "ada@example.com", "slug": slug}
    return (await program.post("/api/organizers/register", {"organizer": organizer})).status_code
