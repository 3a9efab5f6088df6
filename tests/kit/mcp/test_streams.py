"""Streams: what agents hear of changes, and when they stop hearing."""

import asyncio
from typing import Any

import pytest

from holdfast.kit import streams
from holdfast.kit.mcp import Change
from tests.kit.mcp.pantry import Pantry
from tests.kit.mcp.wire import EVENTS, STATELESS, Agent, Exchange, Kitchen, Stream, opened

UPDATED = "notifications/resources/updated"
LISTED = "notifications/resources/list_changed"


def updated(uri: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}}


def subscribed(method: str, id: int, **params: Any) -> dict[str, Any]:
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
    return {"jsonrpc": "2.0", "method": method, "params": {**params, **meta}}


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats come at once."""
    monkeypatch.setattr(streams, "HEARTBEAT", 0.01)


# GET


async def test_a_stream_begins_with_its_position(old: Agent) -> None:
    stream = await old.get()

    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["x-accel-buffering"] == "no"
    assert "mcp-session-id" not in stream.headers
    assert await stream.event() == {"id": "0", "retry": "3000", "data": ""}
    await stream.exchange.leave()


async def test_clients_before_2025_11_25_are_spared_an_event_without_content(old: Agent) -> None:
    old.version = "2025-06-18"
    stream = await old.get()

    assert await stream.event() == {"id": "0", "retry": "3000"}
    await stream.exchange.leave()


async def test_a_change_is_heard(old: Agent) -> None:
    stream = await old.get()
    await stream.event()

    await old.call("fill_jar", jar_id=2, grams=1)
    assert await stream.message() == updated("jar://2")
    await old.call("add_jar", jar_id=9)
    assert await stream.message() == updated("jar://9")
    assert await stream.message() == {"jsonrpc": "2.0", "method": LISTED}
    await stream.exchange.leave()


async def test_a_stream_goes_on_where_it_was(kitchen: Kitchen, old: Agent) -> None:
    for jar in (1, 2, 3):
        await old.call("fill_jar", jar_id=jar, grams=1)

    stream = await old.get((b"last-event-id", b"1"))

    assert (await stream.event())["id"] == "1"
    assert await stream.message() == updated("jar://2")
    last = await stream.event()
    assert last["id"] == "3"
    await stream.exchange.leave()


async def test_the_position_stands_at_the_last_message_of_a_piece(kitchen: Kitchen, old: Agent) -> None:
    stream = await old.get()
    await stream.event()

    kitchen.pantry.feed.publish(5, Change(["jar://1", "jar://2", "jar://1"], listed=True))

    events = [await stream.event() for _ in range(3)]
    assert ["id" in event for event in events] == [False, False, True]
    assert events[2]["id"] == "5"
    await stream.exchange.leave()


@pytest.mark.parametrize("last", [b"77", b"x", b"-1", b"", b"1" * 40, b"\xff", b"1.0"])
async def test_a_position_that_is_unknown_means_from_now_on(kitchen: Kitchen, old: Agent, last: bytes) -> None:
    await old.call("fill_jar", jar_id=1, grams=1)

    stream = await old.get((b"last-event-id", last))

    assert (await stream.event())["id"] == "1"
    await old.call("fill_jar", jar_id=2, grams=1)
    assert await stream.message() == updated("jar://2")
    await stream.exchange.leave()


async def test_whoever_has_missed_something_reads_the_list_again(kitchen: Kitchen, old: Agent) -> None:
    stream = await old.get()
    await stream.event()

    kitchen.pantry.feed.restart(1_000)

    assert await stream.message() == {"jsonrpc": "2.0", "method": LISTED}
    await stream.exchange.leave()


async def test_a_stream_tells_what_its_caller_may_read(kitchen: Kitchen, old: Agent) -> None:
    nobody = await kitchen.agent()
    stream = await nobody.get()
    await stream.event()

    kitchen.pantry.feed.publish(1, Change(["jar://1", "nothing://1"], listed=True))
    kitchen.pantry.feed.publish(2, Change(["jar://1", "pantry://rules"]))

    assert await stream.message() == updated("pantry://rules")
    await stream.exchange.leave()


async def test_a_stream_is_opened_by_those_who_take_events(kitchen: Kitchen, old: Agent) -> None:
    key = (b"authorization", f"Bearer {old.key}".encode())
    for accept in (b"application/json", b""):
        response = await Exchange(old.app, "GET", [key, (b"accept", accept)]).response()
        assert response.status_code == 406
    response = await Exchange(old.app, "GET", [EVENTS]).response()
    assert response.status_code == 401
    response = await Exchange(old.app, "GET", [EVENTS, key, (b"mcp-protocol-version", b"1999-01-01")]).response()
    assert response.status_code == 400
    stream = await old.open("GET", [EVENTS, key])
    assert stream.status == 200
    await stream.exchange.leave()


# subscriptions/listen


async def test_a_subscription_begins_with_what_it_grants(new: Agent) -> None:
    stream = await new.listen(
        toolsListChanged=True,
        promptsListChanged=True,
        resourcesListChanged=True,
        resourceSubscriptions=["jar://1", "nothing://1"],
    )

    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream"
    granted = {"resourcesListChanged": True, "resourceSubscriptions": ["jar://1"]}
    assert await stream.message() == subscribed("notifications/subscriptions/acknowledged", 1, notifications=granted)
    await stream.exchange.leave()


async def test_a_subscription_tells_what_was_asked_for_and_no_more(kitchen: Kitchen, new: Agent) -> None:
    jar, both = await new.listen(resourceSubscriptions=["jar://2"]), await new.listen(resourcesListChanged=True)
    for stream in (jar, both):
        await stream.message()

    kitchen.pantry.feed.publish(1, Change(["jar://1"], listed=True))
    kitchen.pantry.feed.publish(2, Change(["jar://2"]))

    assert await jar.event() | {"data": ""} == {"data": ""}  # no position: such streams are not resumed
    assert await both.message() == subscribed(LISTED, 2)
    for stream in (jar, both):
        await stream.exchange.leave()


async def test_every_message_of_a_subscription_names_it(new: Agent) -> None:
    message = new.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["jar://2"]}}, id="mine")
    stream = await new.open("POST", body=message)
    await stream.message()

    await new.call("fill_jar", jar_id=2, grams=1)

    told = await stream.message()
    assert told["params"] == {"uri": "jar://2", "_meta": {"io.modelcontextprotocol/subscriptionId": "mine"}}
    await stream.exchange.leave()


async def test_a_subscription_that_has_missed_something_hears_of_all_it_follows(kitchen: Kitchen, new: Agent) -> None:
    stream = await new.listen(resourcesListChanged=True, resourceSubscriptions=["jar://1", "jar://2"])
    await stream.message()

    kitchen.pantry.feed.restart(1_000)

    assert [(await stream.message())["params"].get("uri") for _ in range(3)] == ["jar://1", "jar://2", None]
    await stream.exchange.leave()


async def test_a_subscription_grants_what_its_caller_may_read(kitchen: Kitchen) -> None:
    nobody = await kitchen.agent(version=STATELESS)

    stream = await nobody.listen(resourcesListChanged=True, resourceSubscriptions=["jar://1", "pantry://rules"])

    granted = (await stream.message())["params"]["notifications"]
    assert granted == {"resourceSubscriptions": ["pantry://rules"]}
    await stream.exchange.leave()


async def test_a_subscription_says_what_it_wants(new: Agent) -> None:
    filters: list[Any] = [None, [], {"resourceSubscriptions": 5}]
    wrong: list[dict[str, Any]] = [{}, *({"notifications": each} for each in filters)]
    for params in wrong:
        assert (await new.error("subscriptions/listen", params, status=400))["code"] == -32602


async def test_a_subscription_is_for_those_who_take_events(new: Agent) -> None:
    message = new.request("subscriptions/listen", {"notifications": {}})
    headers = [header for header in new.headers(message) if header[0] != b"accept"]

    response = await new.post(message, [*headers, (b"accept", b"application/json")])

    assert response.status_code == 406
    assert response.json()["code"] == "not_acceptable"


async def test_subscriptions_are_of_2026(old: Agent) -> None:
    assert (await old.error("subscriptions/listen", {"notifications": {}}))["code"] == -32601


# The end


async def opened_by(agent: Agent) -> Stream:
    """A stream of the agent's era that tells everything, begun."""
    stream = await (
        agent.listen(resourcesListChanged=True, resourceSubscriptions=["jar://1"])
        if agent.version == STATELESS
        else agent.get()
    )
    await stream.event()
    return stream


async def test_a_revoked_key_hears_nothing_more(kitchen: Kitchen, agent: Agent, old: Agent) -> None:
    stream = await opened_by(agent)

    await kitchen.revoke(agent)
    await old.call("fill_jar", jar_id=1, grams=1)

    assert await stream.event() == {}


@pytest.mark.usefixtures("hasty")
async def test_a_revoked_key_loses_its_stream_even_when_nothing_happens(kitchen: Kitchen, agent: Agent) -> None:
    stream = await opened_by(agent)

    await kitchen.revoke(agent)

    async with asyncio.timeout(10):
        while event := await stream.event():
            assert event == {":": ""}


@pytest.mark.usefixtures("hasty")
async def test_a_stream_that_has_nothing_to_say_says_that_it_lives(agent: Agent) -> None:
    stream = await opened_by(agent)

    assert await stream.event() == {":": ""}
    await stream.exchange.leave()


async def test_a_scope_that_is_taken_away_is_felt_at_once(kitchen: Kitchen, agent: Agent) -> None:
    stream = await opened_by(agent)

    await kitchen.strip(agent)
    kitchen.pantry.feed.publish(1, Change(["jar://1"], listed=True))
    kitchen.pantry.service.streams.close()

    ending = await stream.event()
    assert UPDATED not in str(ending)
    assert LISTED not in str(ending)


async def test_when_the_process_stops_subscriptions_are_answered(kitchen: Kitchen, new: Agent) -> None:
    stream = await opened_by(new)

    kitchen.pantry.service.streams.close()

    meta = {"io.modelcontextprotocol/subscriptionId": 1}
    assert await stream.message() == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"resultType": "complete", "_meta": meta},
    }
    assert await stream.event() == {}


async def test_when_the_process_stops_other_streams_just_end(kitchen: Kitchen, old: Agent) -> None:
    stream = await opened_by(old)

    kitchen.pantry.service.streams.close()

    assert await stream.event() == {}


async def test_a_client_that_goes_away_leaves_nothing_behind(kitchen: Kitchen, agent: Agent) -> None:
    stream = await opened_by(agent)
    assert kitchen.pantry.feed.is_heard

    await stream.exchange.leave()

    assert not kitchen.pantry.feed.is_heard


async def test_changes_are_heard_from_other_processes(pantry_url: str) -> None:
    async with opened(Pantry(pantry_url)) as here, opened(Pantry(pantry_url)) as there:
        agent = await here.agent("read_jars", "write_jars")
        stream = await agent.get()
        await stream.event()

        await Agent(there.app, agent.key).call("fill_jar", jar_id=3, grams=1)

        assert await stream.message() == updated("jar://3")
        await stream.exchange.leave()
