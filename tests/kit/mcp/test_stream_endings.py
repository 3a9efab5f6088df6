"""Streams of both eras live until the key, its scope, the process or the client goes."""

import asyncio

import pytest

from holdfast.kit.http import event_streams
from holdfast.kit.mcp import Change
from tests.helpers.agents import LISTED, STATELESS, UPDATED, Agent, Kitchen, Stream


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats come at once."""
    monkeypatch.setattr(event_streams, "HEARTBEAT_SECONDS", 0.01)


async def opened_by(agent: Agent) -> Stream:
    """A stream of the agent's era that tells everything, begun."""
    stream = await (
        agent.listen(resourcesListChanged=True, resourceSubscriptions=["jar://1"])
        if agent.version == STATELESS
        else agent.get()
    )
    await stream.event()
    return stream


async def test_a_stream_of_a_revoked_key_ends(kitchen: Kitchen, agent: Agent, old: Agent) -> None:
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
            assert event == {"": ""}


@pytest.mark.usefixtures("hasty")
async def test_a_silent_stream_sends_comments(agent: Agent) -> None:
    stream = await opened_by(agent)

    assert await stream.event() == {"": ""}
    await stream.exchange.leave()


async def test_a_stream_ends_when_the_scope_of_its_key_is_taken_away(kitchen: Kitchen, agent: Agent) -> None:
    stream = await opened_by(agent)

    await kitchen.strip(agent)
    kitchen.pantry.feed.publish(1, Change(["jar://1"], listed=True))
    kitchen.pantry.service.streams.close()

    ending = await stream.event()
    assert UPDATED not in str(ending)
    assert LISTED not in str(ending)


async def test_subscriptions_are_answered_when_the_process_stops(kitchen: Kitchen, new_agent: Agent) -> None:
    stream = await opened_by(new_agent)

    kitchen.pantry.service.streams.close()

    meta = {"io.modelcontextprotocol/subscriptionId": 1}
    assert await stream.message() == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"resultType": "complete", "_meta": meta},
    }
    assert await stream.event() == {}


async def test_streams_of_the_old_era_end_without_an_answer_when_the_process_stops(
    kitchen: Kitchen, old: Agent
) -> None:
    stream = await opened_by(old)

    kitchen.pantry.service.streams.close()

    assert await stream.event() == {}


async def test_a_client_that_goes_away_leaves_nothing_behind(kitchen: Kitchen, agent: Agent) -> None:
    stream = await opened_by(agent)
    assert kitchen.pantry.feed.has_readers

    await stream.exchange.leave()

    assert not kitchen.pantry.feed.has_readers
