"""Streams of the handshake era: their first position, their messages, and how they resume."""

from typing import Any

import pytest

from holdfast.kit.http.event_streams import MAX_RETRY_MS, MIN_RETRY_MS
from holdfast.kit.mcp import Change
from tests.helpers.agents import EVENTS, LISTED, UPDATED, Agent, Kitchen, begin_request, open_kitchen
from tests.kit.mcp.pantry import Pantry


def update_message(uri: str) -> dict[str, Any]:
    """What agents are told of a change."""
    return {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}}


async def test_a_stream_begins_with_its_position(old: Agent) -> None:
    stream = await old.get()

    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["x-accel-buffering"] == "no"
    assert "mcp-session-id" not in stream.headers
    first = await stream.event()
    assert MIN_RETRY_MS <= int(first.pop("retry")) <= MAX_RETRY_MS
    assert first == {"id": "0", "data": ""}
    await stream.exchange.leave()


async def test_a_stream_for_clients_before_2025_11_25_sends_no_event_without_content(old: Agent) -> None:
    old.version = "2025-06-18"
    stream = await old.get()

    assert (await stream.event()).keys() == {"id", "retry"}
    await stream.exchange.leave()


async def test_a_change_is_sent_to_the_streams_that_are_open(old: Agent) -> None:
    stream = await old.get()
    await stream.event()

    await old.call("fill_jar", jar_id=2, grams=1)
    assert await stream.message() == update_message("jar://2")
    await old.call("add_jar", jar_id=9)
    assert await stream.message() == update_message("jar://9")
    assert await stream.message() == {"jsonrpc": "2.0", "method": LISTED}
    await stream.exchange.leave()


async def test_a_resumed_stream_continues_at_its_position(kitchen: Kitchen, old: Agent) -> None:
    for jar in (1, 2, 3):
        await old.call("fill_jar", jar_id=jar, grams=1)

    stream = await old.get((b"last-event-id", b"1"))

    assert (await stream.event())["id"] == "1"
    assert await stream.message() == update_message("jar://2")
    last = await stream.event()
    assert last["id"] == "3"
    await stream.exchange.leave()


async def test_a_position_is_sent_with_the_last_message_of_a_change(kitchen: Kitchen, old: Agent) -> None:
    stream = await old.get()
    await stream.event()

    kitchen.pantry.feed.publish(5, Change(["jar://1", "jar://2", "jar://1"], listed=True))

    events = [await stream.event() for _ in range(3)]
    assert ["id" in event for event in events] == [False, False, True]
    assert events[2]["id"] == "5"
    await stream.exchange.leave()


@pytest.mark.parametrize("last", [b"77", b"x", b"-1", b"1" * 40, b"\xff", b"1.0"])
async def test_a_stream_resumed_at_an_unknown_position_sends_everything(
    kitchen: Kitchen, old: Agent, last: bytes
) -> None:
    await old.call("fill_jar", jar_id=1, grams=1)

    stream = await old.get((b"last-event-id", last))

    assert (await stream.event())["id"] == "0"
    assert await stream.message() == update_message("jar://1")
    await old.call("fill_jar", jar_id=2, grams=1)
    assert await stream.message() == update_message("jar://2")
    await stream.exchange.leave()


async def test_a_stream_resumed_at_a_restarted_process_says_that_the_list_changed(kitchen: Kitchen, old: Agent) -> None:
    kitchen.pantry.feed.restart(5)

    stream = await old.get((b"last-event-id", b"3"))

    assert (await stream.event())["id"] == "3"
    assert await stream.message() == {"jsonrpc": "2.0", "method": LISTED}
    await stream.exchange.leave()


@pytest.mark.parametrize("headers", [[], [(b"last-event-id", b"")]])
async def test_a_stream_without_a_position_sends_changes_from_now_on(
    kitchen: Kitchen, old: Agent, headers: list[tuple[bytes, bytes]]
) -> None:
    await old.call("fill_jar", jar_id=1, grams=1)

    stream = await old.get(*headers)

    assert (await stream.event())["id"] == "1"
    await old.call("fill_jar", jar_id=2, grams=1)
    assert await stream.message() == update_message("jar://2")
    await stream.exchange.leave()


async def test_a_stream_that_missed_changes_says_that_the_list_changed(kitchen: Kitchen, old: Agent) -> None:
    stream = await old.get()
    await stream.event()

    kitchen.pantry.feed.restart(1_000)

    assert await stream.message() == {"jsonrpc": "2.0", "method": LISTED}
    await stream.exchange.leave()


async def test_a_stream_sends_only_changes_its_caller_may_read(kitchen: Kitchen, old: Agent) -> None:
    nobody = await kitchen.agent()
    stream = await nobody.get()
    await stream.event()

    kitchen.pantry.feed.publish(1, Change(["jar://1", "nothing://1"], listed=True))
    kitchen.pantry.feed.publish(2, Change(["jar://1", "pantry://rules"]))

    assert await stream.message() == update_message("pantry://rules")
    await stream.exchange.leave()


async def test_a_stream_needs_a_client_that_accepts_events(kitchen: Kitchen, old: Agent) -> None:
    key = (b"authorization", f"Bearer {old.key}".encode())
    for accept in (b"application/json", b""):
        response = await begin_request(old.app, "GET", [key, (b"accept", accept)]).response()
        assert response.status_code == 406
    response = await begin_request(old.app, "GET", [EVENTS]).response()
    assert response.status_code == 401
    response = await begin_request(old.app, "GET", [EVENTS, key, (b"mcp-protocol-version", b"1999-01-01")]).response()
    assert response.status_code == 400
    stream = await old.open("GET", [EVENTS, key])
    assert stream.status == 200
    await stream.exchange.leave()


async def test_a_stream_sends_changes_of_other_processes(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url)) as here, open_kitchen(Pantry(pantry_url)) as other:
        agent = await here.agent("read_jars", "write_jars")
        stream = await agent.get()
        await stream.event()

        await Agent(other.app, agent.key).call("fill_jar", jar_id=3, grams=1)

        assert await stream.message() == update_message("jar://3")
        await stream.exchange.leave()
