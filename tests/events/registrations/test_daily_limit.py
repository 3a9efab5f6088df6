"""The daily limit that an organizer sets for an API key: the key never registers more people in a day."""

import asyncio
import datetime as dt

import pytest
from psycopg.errors import CheckViolation

from holdfast.accounts.agents.limits import SetLimit
from holdfast.events.keys.key_retention import forget_keys
from holdfast.events.keys.operations import KEY_LIMITS
from holdfast.kit.contract.caller import access_token, system
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, Problem
from tests.helpers.events_service import Client, Service, running_events


async def key_of(service: Service, client: Client) -> int:
    [(id,)] = await service.run_sql("select id from api_keys where user_id = %(id)s order by id limit 1", id=client.id)
    return id


async def limit(service: Service, client: Client, daily_limit: int | None) -> None:
    """Set the limit of the first key of an organizer."""
    command = SetLimit(key_id=await key_of(service, client), daily_limit=daily_limit)
    await service.database.transact(lambda tx: KEY_LIMITS.store_limit(tx, system(client.id), command))


async def attempt(client: Client, event_id: int, email: str) -> str:
    """Register a person; the code of the refusal, or `accepted`."""
    response = await client.post("/api/registrations", {"registration": {"event_id": event_id, "email": email}})
    return "accepted" if response.status_code == 202 else response.json()["code"]


async def used_calls(service: Service) -> int:
    [(count,)] = await service.run_sql("select used from agent_limits")
    return count


async def test_a_key_registers_up_to_its_limit_and_the_refusal_says_when_it_may_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=100)
    await limit(service, ada, 2)

    assert [await attempt(ada, event["id"], f"p{number}@example.com") for number in range(3)] == [
        "accepted",
        "accepted",
        "daily_limit_reached",
    ]
    body = {"registration": {"event_id": event["id"], "email": "late@example.com"}}
    refusal = await ada.post("/api/registrations", body)
    answer = refusal.json()
    tomorrow = dt.datetime.combine(dt.datetime.now(dt.UTC).date() + dt.timedelta(days=1), dt.time(), dt.UTC)
    assert refusal.status_code == 429
    assert (answer["daily_limit"], answer["used"], answer["requested"]) == (2, 2, 1)
    assert dt.datetime.fromisoformat(answer["starts_again_at"]) == tomorrow
    assert 0 < int(refusal.headers["retry-after"]) <= 86_400
    assert "may register 2 people a day, and 2 are registered today" in answer["error"]
    assert "Only a person can change the limit" in answer["hint"]
    assert await service.run_sql("select count(*) from users where email = 'late@example.com'") == [(0,)]


async def test_a_daily_limit_is_never_exceeded_by_concurrent_calls(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=100)
    await limit(service, ada, 7)

    codes = await asyncio.gather(*(attempt(ada, event["id"], f"p{number}@example.com") for number in range(64)))

    assert codes.count("accepted") == 7
    assert codes.count("daily_limit_reached") == 57
    assert await service.run_sql("select count(*) from registrations") == [(7,)]
    assert await used_calls(service) == 7


async def test_only_stored_registrations_count_towards_the_daily_limit(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=0)
    other = await ada.create_event(capacity=100)
    await limit(service, ada, 3)

    await attempt(ada, event["id"], "ann@example.com")
    await service.settle()
    assert await attempt(ada, event["id"], "ben@example.com") == "event_full"
    assert await attempt(ada, 999, "ben@example.com") == "not_found"
    codes = await asyncio.gather(*(attempt(ada, event["id"], "ann@example.com") for _ in range(5)))
    assert {*codes} == {"accepted"}
    assert await used_calls(service) == 1
    codes = await asyncio.gather(*(attempt(ada, other["id"], "cal@example.com") for _ in range(5)))
    assert {*codes} == {"accepted"}
    assert await used_calls(service) == 2


async def test_a_registered_person_can_be_registered_again_when_the_daily_limit_is_reached(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=100)
    await limit(service, ada, 1)
    await attempt(ada, event["id"], "ann@example.com")

    assert await attempt(ada, event["id"], "ann@example.com") == "accepted"
    assert await attempt(ada, event["id"], "ben@example.com") == "daily_limit_reached"


async def test_a_person_whom_the_event_rejected_counts_when_registered_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=0)
    await asyncio.gather(*(attempt(ada, event["id"], f"p{number}@example.com") for number in range(2)))
    await service.settle()
    await ada.request("PATCH", f"/api/events/{event['id']}", {"event": {"capacity": 9}})
    await limit(service, ada, 1)
    [(rejected,)] = await service.run_sql(
        "select email from users join registrations on user_id = users.id where status = 'rejected'"
    )

    assert await attempt(ada, event["id"], rejected) == "accepted"
    assert await used_calls(service) == 1
    assert await attempt(ada, event["id"], "new@example.com") == "daily_limit_reached"


async def test_a_new_day_starts_the_count_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=100)
    await limit(service, ada, 1)
    await attempt(ada, event["id"], "ann@example.com")

    await service.run_sql("update agent_limits set day = day - 1")

    assert await attempt(ada, event["id"], "ben@example.com") == "accepted"
    assert await attempt(ada, event["id"], "cal@example.com") == "daily_limit_reached"
    assert await used_calls(service) == 1


async def test_a_lower_limit_holds_at_once_and_no_limit_lets_go_on(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=100)
    await limit(service, ada, 5)
    for number in range(3):
        await attempt(ada, event["id"], f"p{number}@example.com")

    await limit(service, ada, 2)
    assert await attempt(ada, event["id"], "ann@example.com") == "daily_limit_reached"
    await limit(service, ada, 4)
    assert await attempt(ada, event["id"], "ann@example.com") == "accepted"
    assert await attempt(ada, event["id"], "ben@example.com") == "daily_limit_reached"
    await limit(service, ada, None)
    assert await attempt(ada, event["id"], "ben@example.com") == "accepted"


async def test_a_second_key_of_the_organizer_has_its_own_daily_limit(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=100)
    other = (await ada.post("/api/keys", {"api_key": {"name": "Ticket shop"}})).json()["data"]["key"]
    await limit(service, ada, 0)

    assert await attempt(ada, event["id"], "ann@example.com") == "daily_limit_reached"
    assert await attempt(Client(service.http, other), event["id"], "ann@example.com") == "accepted"


async def test_a_key_with_a_limit_makes_no_key_without_one(service: Service) -> None:
    ada = await service.organizer()
    await limit(service, ada, 5)

    refusal = await ada.post("/api/keys", {"api_key": {"name": "Free"}})

    assert refusal.json()["code"] == "forbidden"
    assert "has a daily limit" in refusal.json()["error"]


async def test_an_agent_cannot_change_a_daily_limit(service: Service) -> None:
    ada = await service.organizer()
    command = SetLimit(key_id=await key_of(service, ada), daily_limit=5)

    with pytest.raises(Problem) as refusal:
        await service.runner.run_of(KEY_LIMITS.set_limit)(access_token(ada.id), command)

    assert refusal.value.type is FORBIDDEN


async def test_a_daily_limit_of_the_key_of_another_organizer_cannot_be_set(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer("Ben Events")

    with pytest.raises(Problem) as refusal:
        await service.runner.run_of(KEY_LIMITS.set_limit)(
            system(ben.id), SetLimit(key_id=await key_of(service, ada), daily_limit=0)
        )

    assert refusal.value.type is NOT_FOUND


async def test_the_first_limit_holds_in_every_process_as_soon_as_it_is_answered(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=100)
    async with running_events(service.database.resources.settings) as other:
        at_other = Client(other.http, ada.key)
        assert await attempt(at_other, event["id"], "ann@example.com") == "accepted"

        command = SetLimit(key_id=await key_of(service, ada), daily_limit=0)
        await service.runner.run_of(KEY_LIMITS.set_limit)(system(ada.id), command)

        assert await attempt(at_other, event["id"], "ben@example.com") == "daily_limit_reached"


async def test_the_schema_refuses_more_registrations_than_the_daily_limit(service: Service) -> None:
    ada = await service.organizer()
    await limit(service, ada, 2)

    with pytest.raises(CheckViolation, match="never_beyond_the_limit"):
        await service.run_sql("update agent_limits set used = 3")


async def test_a_daily_limit_is_deleted_with_its_key(service: Service) -> None:
    ada = await service.organizer()
    await limit(service, ada, 2)
    await ada.request("DELETE", f"/api/keys/{await key_of(service, ada)}")
    await service.run_sql("update api_keys set revoked_at = now() - interval '31 days' where not active")

    await service.database.transact(forget_keys)

    assert await service.run_sql("select count(*) from agent_limits") == [(0,)]
