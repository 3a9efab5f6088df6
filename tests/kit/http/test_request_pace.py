"""The pace: a turn of the event loop begins a limited number of requests, in turns of addresses."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.kit.contract.client import source
from holdfast.kit.http.connection import MAX_HEADER_BYTES, MAX_PIPELINED_REQUESTS
from holdfast.kit.http.connection_limits import ConnectionLimits
from holdfast.kit.http.request_pace import (
    MAX_URGENT_REQUESTS,
    MAX_URGENT_REQUESTS_PER_ADDRESS,
    REQUESTS_IN_A_TURN,
    TURN_SECONDS,
    URGENT,
    Pace,
)
from tests.helpers.events_service import eventually
from tests.helpers.manual_clock import ManualClock
from tests.kit.sockets import REQUEST, SocketSite, serve_site

HEALTH = REQUEST.replace(b"GET / ", b"GET /healthz ")

ADDRESS, OTHER_ADDRESS = "address 192.0.2.1", "address 192.0.2.2"

MANY = 2 * REQUESTS_IN_A_TURN + 10
"""More requests than two turns begin."""


class Numbered:
    """A request that notes its number when it is begun. It takes this many seconds."""

    def __init__(self, number: int, begun: list[int], clock: ManualClock | None = None, seconds: float = 0) -> None:
        self._number = number
        self._begun = begun
        self._clock = clock or ManualClock(0)
        self._seconds = seconds

    def begin(self) -> None:
        self._clock.now += self._seconds
        self._begun.append(self._number)


async def test_a_turn_begins_a_limited_number_and_the_others_follow_in_their_order() -> None:
    pace, begun, turns = Pace(ManualClock(0)), list[int](), list[int]()
    for number in range(MANY):
        request = Numbered(number, begun)
        if pace.begins_at_once(asyncio.get_running_loop(), REQUEST, ADDRESS):
            request.begin()
        else:
            pace.add(request, ADDRESS)

    for _ in range(3):
        turns.append(len(begun))
        await asyncio.sleep(0)

    assert turns == [REQUESTS_IN_A_TURN, 2 * REQUESTS_IN_A_TURN, MANY]
    assert begun == [*range(MANY)]


async def test_a_turn_begins_fewer_while_turns_take_long() -> None:
    clock, begun = ManualClock(0), list[int]()
    pace, loop = Pace(clock), asyncio.get_running_loop()
    while pace.begins_at_once(loop, REQUEST, ADDRESS):
        pass
    for number in range(400):
        pace.add(Numbered(number, begun, clock, TURN_SECONDS / 32 if number < 300 else 0), ADDRESS)

    sizes: list[int] = []
    while len(begun) < 400:
        before = len(begun)
        await asyncio.sleep(0)
        sizes.append(len(begun) - before)

    assert sizes[:4] == [REQUESTS_IN_A_TURN, 64, 32, 32]
    assert max(sizes[4:]) > 32


async def test_a_later_request_does_not_overtake_a_waiting_one() -> None:
    pace, begun, loop = Pace(ManualClock(0)), list[int](), asyncio.get_running_loop()
    for _ in range(REQUESTS_IN_A_TURN):
        assert pace.begins_at_once(loop, REQUEST, ADDRESS)
    for number in range(REQUESTS_IN_A_TURN):
        assert not pace.begins_at_once(loop, REQUEST, ADDRESS)
        pace.add(Numbered(number, begun), ADDRESS)
    await asyncio.sleep(0)

    assert len(begun) == REQUESTS_IN_A_TURN
    assert not pace.begins_at_once(loop, REQUEST, ADDRESS)


@pytest.mark.parametrize("urgent", URGENT)
async def test_urgent_requests_do_not_wait(urgent: bytes) -> None:
    pace, loop = Pace(ManualClock(0)), asyncio.get_running_loop()
    while pace.begins_at_once(loop, REQUEST, ADDRESS):
        pass

    assert pace.begins_at_once(loop, urgent + b" HTTP/1.1\r\n", ADDRESS)


async def test_one_request_does_not_wait_for_all_of_another_address() -> None:
    pace, begun, loop = Pace(ManualClock(0)), list[int](), asyncio.get_running_loop()
    while pace.begins_at_once(loop, REQUEST, ADDRESS):
        pass
    for number in range(1, MANY):
        pace.add(Numbered(number, begun), ADDRESS)
    pace.add(Numbered(0, begun), OTHER_ADDRESS)
    await asyncio.sleep(0)

    assert begun[:3] == [1, 0, 2]


async def test_networks_of_one_wide_network_take_turns_as_one_address() -> None:
    pace, begun, loop = Pace(ManualClock(0)), list[int](), asyncio.get_running_loop()
    while pace.begins_at_once(loop, REQUEST, ADDRESS):
        pass
    for number in range(1, MANY):
        pace.add(Numbered(number, begun), source(f"2001:db8:1:{number:x}::1"))
    pace.add(Numbered(0, begun), OTHER_ADDRESS)
    await asyncio.sleep(0)

    assert begun[:3] == [1, 0, 2]


async def test_urgent_requests_of_one_address_are_few_in_a_turn() -> None:
    pace, loop = Pace(ManualClock(0)), asyncio.get_running_loop()
    while pace.begins_at_once(loop, REQUEST, ADDRESS):
        pass

    begun = [pace.begins_at_once(loop, HEALTH, ADDRESS) for _ in range(MANY)]
    other = pace.begins_at_once(loop, HEALTH, OTHER_ADDRESS)
    await asyncio.sleep(0)
    while pace.begins_at_once(loop, REQUEST, ADDRESS):
        pass

    assert (sum(begun), other) == (MAX_URGENT_REQUESTS_PER_ADDRESS, True)
    assert pace.begins_at_once(loop, HEALTH, ADDRESS), "the next turn begins further ones"


async def test_urgent_requests_of_many_addresses_leave_most_of_a_turn_to_others() -> None:
    pace, loop = Pace(ManualClock(0)), asyncio.get_running_loop()
    while pace.begins_at_once(loop, REQUEST, ADDRESS):
        pass

    begun = [pace.begins_at_once(loop, HEALTH, f"address 192.0.2.{number}") for number in range(200)]

    assert sum(begun) == MAX_URGENT_REQUESTS


class Held(Pace):
    """A pace that begins only urgent requests, until it is released."""

    loop: asyncio.AbstractEventLoop

    def begins_at_once(self, loop: asyncio.AbstractEventLoop, request: bytes, source: str | None) -> bool:
        self.loop = loop
        return request.startswith(URGENT)

    def count(self) -> int:
        return sum(map(len, self._waiting.values()))

    def release(self) -> None:
        """Begin all that wait, in the thread of the server."""
        self.loop.call_soon_threadsafe(self._begin_all)

    def _begin_all(self) -> None:
        while self._waiting:
            self._next_request().begin()


@pytest.fixture
def pace() -> Held:
    return Held()


@pytest.fixture
def begun_paths() -> list[str]:
    """The paths of the requests that were begun."""
    return []


@pytest.fixture
async def site(pace: Held, begun_paths: list[str]) -> AsyncIterator[SocketSite]:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        begun_paths.append(scope["path"])
        await Response(str(len(await Request(scope, receive).body())))(scope, receive, send)

    async with serve_site(answer, ConnectionLimits(1000, 500, pace=pace)) as site:
        yield site


async def waits(pace: Held, count: int = 1) -> None:
    """Wait until a number of requests wait."""
    await eventually(lambda: pace.count() == count)


async def test_a_health_check_is_answered_while_requests_wait(
    site: SocketSite, pace: Held, begun_paths: list[str]
) -> None:
    client, balancer = await site.client(), await site.client()
    await client.send(REQUEST)
    await waits(pace)
    await balancer.send(HEALTH)

    assert (await balancer.answer())[0] == 200
    assert begun_paths == ["/healthz"]
    pace.release()
    assert (await client.answer())[0] == 200


async def test_a_body_that_arrives_while_its_request_waits_belongs_to_it(site: SocketSite, pace: Held) -> None:
    client, length = await site.client(), 4 * MAX_HEADER_BYTES
    await client.send(b"POST / HTTP/1.1\r\nHost: here\r\n")
    await waits(pace)
    await client.send(b"Content-Length: %d\r\n\r\n" % length)
    sending = asyncio.create_task(client.send(b"x" * length))
    pace.release()

    assert await client.answer() == (200, str(length).encode())
    await sending


async def test_a_request_whose_client_has_gone_is_not_begun(
    site: SocketSite, pace: Held, begun_paths: list[str]
) -> None:
    client = await site.client()
    await client.send(REQUEST)
    await waits(pace)
    client.close()
    await eventually(lambda: site.connections == 0)
    pace.release()
    later = await site.client()
    await later.send(HEALTH)

    assert (await later.answer())[0] == 200
    assert begun_paths == ["/healthz"]


async def test_requests_that_were_sent_together_are_begun_in_turns(
    site: SocketSite, pace: Held, begun_paths: list[str]
) -> None:
    client, other = await site.client(), await site.client()
    await client.send(HEALTH + 2 * REQUEST)

    assert (await client.answer())[0] == 200
    await waits(pace)
    await other.send(HEALTH)
    assert (await other.answer())[0] == 200
    assert begun_paths == ["/healthz", "/healthz"]
    pace.release()
    assert (await client.answer())[0] == 200
    await waits(pace)
    pace.release()
    assert (await client.answer())[0] == 200


async def test_a_connection_with_very_many_pipelined_requests_gets_the_first_answered() -> None:
    async with serve_site(Response("here"), ConnectionLimits(1000, 500)) as site:
        client = await site.client()
        await client.send(1_000 * REQUEST)
        answers = (await client.read_until_closed()).split(b"HTTP/1.1 200 OK")[1:]

    assert len(answers) == MAX_PIPELINED_REQUESTS + 1
    assert [b"connection: close" in answer for answer in answers] == [False] * MAX_PIPELINED_REQUESTS + [True]
