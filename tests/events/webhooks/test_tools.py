"""Agents of organizers make, try, read and delete endpoints of webhooks with tools."""

from typing import Any

from holdfast.events.webhooks.operations import MAX_ENDPOINTS
from tests.events.agents.samples import agent
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Service
from tests.helpers.webhook_programs import OrganizerPrograms
from tests.helpers.webhook_receiver import ReceiverAnswer, deliver

URL = "https://shop.example/webhooks"


async def test_a_new_endpoint_shows_its_secret_once(service: Service) -> None:
    asking = agent(service, await service.organizer())

    made = (await asking.call("set_webhook", url=URL))["structuredContent"]

    [listed] = (await asking.call("list_webhooks"))["structuredContent"]["data"]
    assert made["secret"].startswith("whsec_")
    assert listed == {name: value for name, value in made.items() if name != "secret"}


async def test_an_endpoint_is_changed_by_its_id_and_deleted(service: Service) -> None:
    asking = agent(service, await service.organizer())
    id = (await asking.call("set_webhook", url=URL))["structuredContent"]["id"]

    changed = await asking.call("set_webhook", endpoint_id=id, types=["event.full"], active=False)

    assert changed["structuredContent"]["types"] == ["event.full"]
    assert changed["structuredContent"]["status"] == "paused"
    assert "secret" not in changed["structuredContent"]
    await asking.call("delete_webhook", endpoint_id=id)
    assert (await asking.call("list_webhooks"))["structuredContent"] == {"data": []}


async def test_a_new_endpoint_needs_an_address(service: Service) -> None:
    asking = agent(service, await service.organizer())

    refusal = problem_of(await asking.call("set_webhook", types=["event.full"]))

    assert refusal["errors"] == {"endpoint_id": ["is required, or a url for a new endpoint"]}


async def test_one_endpoint_more_than_an_organizer_may_have_is_refused(service: Service) -> None:
    asking = agent(service, await service.organizer())
    for number in range(MAX_ENDPOINTS):
        await asking.call("set_webhook", url=f"{URL}/{number}")

    refusal = problem_of(await asking.call("set_webhook", url=URL))

    assert refusal["code"] == "quota_exceeded"


async def test_an_admin_has_no_endpoints(service: Service, programs: OrganizerPrograms) -> None:
    program = await programs.add(await service.organizer())
    asking = agent(service, await service.admin())
    which: dict[str, Any] = {"endpoint_id": program.endpoint["id"]}

    refusals = [
        problem_of(await asking.call("list_webhooks")),
        problem_of(await asking.call("set_webhook", url=URL)),
        problem_of(await asking.call("ping_webhook", **which)),
        problem_of(await asking.call("delete_webhook", **which)),
    ]

    assert [refusal["code"] for refusal in refusals] == ["forbidden"] * 4


async def test_an_agent_sees_why_a_test_failed_and_has_it_sent_again(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    asking, program = agent(service, ada), await programs.add(ada)
    which: dict[str, Any] = {"endpoint_id": program.endpoint["id"]}
    await asking.call("ping_webhook", **which)
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    await deliver(service.database)

    [message] = (await asking.call("list_webhook_deliveries", **which))["structuredContent"]["data"]
    answer = await asking.call("list_webhook_attempts", **which, message_id=message["message_id"])

    [attempt] = answer["structuredContent"]["data"]
    assert (message["type"], message["status"]) == ("ping", "waiting")
    assert (attempt["status"], attempt["reason"]) == (500, "status")
    # As after the last attempt, days later.
    await service.run_sql("update webhook_deliveries set status = 'failed', due_at = null, ended_at = now()")
    program.receiver.answer = lambda _: ReceiverAnswer()
    again = await asking.call("resend_webhook_messages", **which, since=message["created_at"])
    assert again["structuredContent"]["count"] == 1
    await deliver(service.database)
    assert program.receiver.types == ["ping", "ping"]


async def test_the_organizer_sees_what_agents_did_with_webhooks(service: Service) -> None:
    ada = await service.organizer()
    asking = agent(service, ada)
    id = (await asking.call("set_webhook", url=URL))["structuredContent"]["id"]
    await asking.call("ping_webhook", endpoint_id=id)
    await asking.call("resend_webhook_messages", endpoint_id=id, since="2026-01-01T00:00:00Z")
    await asking.call("delete_webhook", endpoint_id=id)

    stored = await service.run_sql("select operation from agent_actions order by id")

    assert [operation for (operation,) in stored] == [
        *("set_webhook", "ping_webhook", "resend_webhook_messages", "delete_webhook"),
    ]
