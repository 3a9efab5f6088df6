"""Subscriptions, the streams of 2026-07-28: what they grant, and that they send nothing else."""

from typing import Any

from holdfast.kit.mcp import Change
from tests.helpers.agents import LISTED, STATELESS, Agent, Kitchen


def subscription_message(method: str, id: int, **params: Any) -> dict[str, Any]:
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
    return {"jsonrpc": "2.0", "method": method, "params": {**params, **meta}}


async def test_a_subscription_begins_with_the_granted_resources(new_agent: Agent) -> None:
    stream = await new_agent.listen(
        toolsListChanged=True,
        promptsListChanged=True,
        resourcesListChanged=True,
        resourceSubscriptions=["jar://1", "nothing://1"],
    )

    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream"
    granted = {"resourcesListChanged": True, "resourceSubscriptions": ["jar://1"]}
    assert await stream.message() == subscription_message(
        "notifications/subscriptions/acknowledged", 1, notifications=granted
    )
    await stream.exchange.leave()


async def test_a_subscription_sends_only_the_requested_changes(kitchen: Kitchen, new_agent: Agent) -> None:
    jar, both = (
        await new_agent.listen(resourceSubscriptions=["jar://2"]),
        await new_agent.listen(resourcesListChanged=True),
    )
    for stream in (jar, both):
        await stream.message()

    kitchen.pantry.feed.publish(1, Change(["jar://1"], listed=True))
    kitchen.pantry.feed.publish(2, Change(["jar://2"]))

    assert await jar.event() | {"data": ""} == {"data": ""}  # no position: such streams are not resumed
    assert await both.message() == subscription_message(LISTED, 2)
    for stream in (jar, both):
        await stream.exchange.leave()


async def test_every_message_of_a_subscription_names_it(new_agent: Agent) -> None:
    message = new_agent.request(
        "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["jar://2"]}}, id="mine"
    )
    stream = await new_agent.open("POST", body=message)
    await stream.message()

    await new_agent.call("fill_jar", jar_id=2, grams=1)

    change = await stream.message()
    assert change["params"] == {"uri": "jar://2", "_meta": {"io.modelcontextprotocol/subscriptionId": "mine"}}
    await stream.exchange.leave()


async def test_a_subscription_that_missed_changes_reports_all_its_resources(kitchen: Kitchen, new_agent: Agent) -> None:
    stream = await new_agent.listen(resourcesListChanged=True, resourceSubscriptions=["jar://1", "jar://2"])
    await stream.message()

    kitchen.pantry.feed.restart(1_000)

    assert [(await stream.message())["params"].get("uri") for _ in range(3)] == ["jar://1", "jar://2", None]
    await stream.exchange.leave()


async def test_a_subscription_grants_only_what_its_caller_may_read(kitchen: Kitchen) -> None:
    nobody = await kitchen.agent(version=STATELESS)

    stream = await nobody.listen(resourcesListChanged=True, resourceSubscriptions=["jar://1", "pantry://rules"])

    granted = (await stream.message())["params"]["notifications"]
    assert granted == {"resourceSubscriptions": ["pantry://rules"]}
    await stream.exchange.leave()


async def test_a_subscription_without_valid_filters_is_refused(new_agent: Agent) -> None:
    filters: list[Any] = [None, [], {"resourceSubscriptions": 5}]
    wrong: list[dict[str, Any]] = [{}, *({"notifications": notifications} for notifications in filters)]
    for params in wrong:
        assert (await new_agent.error("subscriptions/listen", params, status=400))["code"] == -32602


async def test_a_subscription_needs_a_client_that_accepts_events(new_agent: Agent) -> None:
    message = new_agent.request("subscriptions/listen", {"notifications": {}})
    headers = [header for header in new_agent.headers(message) if header[0] != b"accept"]

    response = await new_agent.post(message, [*headers, (b"accept", b"application/json")])

    assert response.status_code == 406
    assert response.json()["code"] == "not_acceptable"


async def test_a_subscription_is_refused_in_the_handshake_era(old: Agent) -> None:
    assert (await old.error("subscriptions/listen", {"notifications": {}}))["code"] == -32601
