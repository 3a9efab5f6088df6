"""Actions of agents are stored once, with their tool, and listed for their own organizer only."""

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.accounts.agents.actions import forget_actions
from holdfast.events.agents.actions import STORED_OPERATIONS, AgentAction, ListAgentActions, list_actions
from holdfast.events.api import OPERATIONS as TABLE
from holdfast.events.ownership import end_stranger
from holdfast.kit.contract.caller import person
from tests.helpers.agents import Agent
from tests.helpers.events_service import Client, Service, event_fields, queue_fields


def agent_of(service: Service, organizer: Client) -> Agent:
    assert organizer.key
    return Agent(service.app, organizer.key, "2025-11-25")


async def actions(service: Service, organizer: Client, **fields: Any) -> Sequence[AgentAction]:
    caller, command = person(1, organizer.id), ListAgentActions(**fields)
    return await service.database.read(lambda reader: list_actions(reader, caller, command))


async def test_an_action_of_an_agent_is_listed_with_its_event_and_person(service: Service) -> None:
    ada = await service.organizer()
    agent = agent_of(service, ada)
    event = (await agent.call("create_event", **event_fields(title="Jazz night")))["structuredContent"]
    await agent.call("create_registration", event_id=event["id"], email="ben@example.com")
    await service.settle()

    registered, created = await actions(service, ada)

    assert (created.operation, created.event_title, created.is_event_upcoming) == ("create_event", "Jazz night", True)
    assert (registered.operation, registered.event_title) == ("create_registration", "Jazz night")
    assert (registered.email, registered.status) == ("ben@example.com", "registered")
    assert created.agent_name
    assert {created.credential, registered.credential} == {f"key {await key_id(service, ada)}"}


async def key_id(service: Service, organizer: Client) -> int:
    [(id,)] = await service.run_sql("select id from api_keys where user_id = %(id)s", id=organizer.id)
    return id


async def test_changes_by_every_tool_are_listed(service: Service) -> None:
    untold = {
        operation.name
        for operation in TABLE
        if operation.tool and not operation.mode.reads and operation.name not in STORED_OPERATIONS
    }

    assert untold == {"presign_upload"}, "STORED_OPERATIONS in holdfast/events/agents/actions.py"


async def test_actions_of_agents_name_the_resource_they_changed(service: Service) -> None:
    ada = await service.organizer()
    agent = agent_of(service, ada)
    event = (await agent.call("create_event", **event_fields()))["structuredContent"]["id"]
    registration = {"event_id": event, "email": "ben@example.com"}
    await agent.call("create_registration", **registration)
    await service.settle()
    [user] = (await ada.get("/api/registrations")).json()["data"]
    ben = {"event_id": event, "user_id": user["user_id"]}
    await agent.call("update_registration", **{**ben, "status": "waitlisted"})
    await agent.call("delete_registration", **ben)
    queue = (await agent.call("create_queue", **queue_fields()))["structuredContent"]["id"]
    await agent.call("update_queue", queue_id=queue, active=False)
    await agent.call("delete_queue", queue_id=queue)
    key = (await agent.call("create_api_key", name="Till"))["structuredContent"]["id"]
    await agent.call("revoke_api_key", id=key)
    await agent.call("update_event", event_id=event, capacity=20)
    await agent.call("cancel_event", event_id=event)

    subjects = [
        (action.operation, action.event_id, action.queue_id, action.key_id)
        for action in reversed(await actions(service, ada))
    ]

    assert subjects == [
        ("create_event", event, None, None),
        ("create_registration", event, None, None),
        ("update_registration", event, None, None),
        ("delete_registration", event, None, None),
        ("create_queue", None, queue, None),
        ("update_queue", None, queue, None),
        ("delete_queue", None, queue, None),
        ("create_api_key", None, None, key),
        ("revoke_api_key", None, None, key),
        ("update_event", event, None, None),
        ("cancel_event", event, None, None),
    ]


async def test_a_read_or_refused_call_of_an_agent_is_not_listed(service: Service) -> None:
    ada = await service.organizer()
    agent = agent_of(service, ada)

    await agent.call("list_events")
    refusal = await agent.call("create_registration", event_id=999_999, email="ben@example.com")
    failed = await agent.call("create_event", **event_fields(capacity=-1))

    assert (refusal["isError"], failed["isError"]) == (True, True)
    assert await actions(service, ada) == []


async def test_a_change_made_with_the_key_but_without_mcp_is_not_listed(service: Service) -> None:
    ada = await service.organizer()

    await ada.create_event()

    assert await actions(service, ada) == []


async def test_actions_of_agents_of_another_organizer_are_not_listed(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = (await agent_of(service, bob).call("create_event", **event_fields()))["structuredContent"]["id"]
    await agent_of(service, ada).call("create_registration", event_id=event, email="ben@example.com")
    await agent_of(service, ada).call("update_event", event_id=event, capacity=1)

    assert await actions(service, ada) == []
    assert [action.operation for action in await actions(service, bob)] == ["create_event"]


async def test_a_person_whose_registration_is_removed_is_not_named_in_the_actions(service: Service) -> None:
    ada = await service.organizer()
    agent = agent_of(service, ada)
    event = (await agent.call("create_event", **event_fields()))["structuredContent"]["id"]
    user = (await ada.register(event, email="ben@example.com")).rpartition("/")[2]
    await service.settle()
    await agent.call("delete_registration", event_id=event, user_id=user)

    [removed, _] = await actions(service, ada)

    assert (removed.operation, removed.email, removed.user_id) == ("delete_registration", None, None)


async def test_pages_of_actions_follow_each_other_without_gaps(service: Service) -> None:
    ada = await service.organizer()
    agent = agent_of(service, ada)
    for title in ("one", "two", "three"):
        await agent.call("create_event", **event_fields(title=title))

    first = await actions(service, ada, limit=2)
    second = await actions(service, ada, limit=2, before=first[-1].id)

    assert [action.event_title for action in (*first, *second)] == ["three", "two", "one"]


async def test_actions_of_agents_are_kept_for_ninety_days(service: Service) -> None:
    ada = await service.organizer()
    agent = agent_of(service, ada)
    await agent.call("create_event", **event_fields(title="old"))
    await service.run_sql("update agent_actions set done_at = now() - interval '91 days'")
    await agent.call("create_event", **event_fields(title="new"))

    deleted = await service.database.transact(forget_actions)

    assert deleted == 1
    assert [action.event_title for action in await actions(service, ada)] == ["new"]


async def test_actions_of_agents_among_many_programs_are_listed_exactly_once(service: Service) -> None:
    ada = await service.organizer()
    agent = agent_of(service, ada)
    event = (await ada.create_event(capacity=100))["id"]
    registered = [{"event_id": event, "email": f"agent{number}@example.com"} for number in range(20)]

    await asyncio.gather(
        *(ada.register(event, email=f"program{number}@example.com") for number in range(20)),
        *(
            agent.call("create_registration", event_id=event, email=f"agent{number}@example.com")
            for number in range(20)
        ),
    )
    await service.settle()

    emails = sorted(action.email or "" for action in await actions(service, ada))
    assert emails == sorted(registration["email"] for registration in registered)
    assert await service.run_sql("select count(*) from registrations where status = 'registered'") == [(40,)]


async def test_a_repeated_call_that_changes_nothing_is_not_listed_again(service: Service) -> None:
    ada = await service.organizer()
    agent = agent_of(service, ada)
    event = (await agent.call("create_event", **event_fields()))["structuredContent"]["id"]
    await agent.call("create_registration", event_id=event, email="ben@example.com")
    await service.settle()
    [user] = (await ada.get("/api/registrations")).json()["data"]
    queue = (await agent.call("create_queue", **queue_fields()))["structuredContent"]["id"]
    key = (await agent.call("create_api_key", name="Till"))["structuredContent"]["id"]
    repeated: Sequence[tuple[str, dict[str, Any]]] = [
        ("create_registration", {"event_id": event, "email": "ben@example.com"}),
        ("update_registration", {"event_id": event, "user_id": user["user_id"], "amount_paid": 5}),
        ("update_event", {"event_id": event, "capacity": 20}),
        ("update_queue", {"queue_id": queue, "active": False}),
        ("revoke_api_key", {"id": key}),
        ("cancel_event", {"event_id": event}),
    ]
    for tool, arguments in repeated:
        for _ in range(3):
            answer = await agent.call(tool, **arguments)
            assert not answer.get("isError"), (tool, answer)

    operations = [action.operation for action in reversed(await actions(service, ada))]

    assert operations == [
        "create_event",
        "create_registration",
        "create_queue",
        "create_api_key",
        *(tool for tool, _ in repeated[1:]),
    ]


async def test_the_actions_of_agents_are_deleted_with_their_organizer(service: Service) -> None:
    ada, bob = await service.organizer(is_proved=False), await service.organizer()
    for organizer in (ada, bob):
        await agent_of(service, organizer).call("create_event", **event_fields())

    await service.database.transact(lambda tx: end_stranger(tx, ada.id))

    assert await service.run_sql("select organizer_id from agent_actions") == [(bob.id,)]
