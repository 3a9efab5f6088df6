"""Rate limits: counted per asker, from the first request on, in memory or in a Redis that processes share."""

import asyncio
import gc
import os
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import RateLimitItemPerMinute
from structlog.testing import capture_logs

from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import stranger
from holdfast.kit.contract.client import WIDE_SHARE, source
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.rate_limits import Limits, SharedLimit
from holdfast.kit.process.checks.check_list import run_checks
from holdfast.kit.process.checks.inspection import Inspection
from holdfast.kit.process.checks.partners import check_rate_limits
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.manual_clock import ManualClock
from tests.kit.operations.rate_limits import LIMITS, count_admitted, refusal_of

NOWHERE = "redis://127.0.0.1:1"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    clock = ManualClock(time.monotonic())
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


@pytest.mark.usefixtures("clock")
async def test_one_request_too_many_is_refused_with_the_time_to_wait() -> None:
    limits = Limits("memory://", LIMITS)

    assert await count_admitted(limits, "three", "ada", tries=3) == 3
    problem = await refusal_of(limits, "three", "ada")

    assert problem
    assert (problem.code, problem.status) == ("rate_limited", 429)
    assert problem.retry_after == 60
    assert "3 requests per minute" in problem.message


@pytest.mark.usefixtures("clock")
async def test_rate_limits_are_counted_for_one_caller_and_one_limit() -> None:
    limits = Limits("memory://", LIMITS)

    assert await count_admitted(limits, "three", "ada") == 3
    assert await count_admitted(limits, "three", "ben") == 3
    assert await count_admitted(limits, "ten", "ada") == 10


@pytest.mark.usefixtures("clock")
async def test_a_request_that_fails_is_counted_as_refused_also_when_the_limit_is_reached() -> None:
    limits = Limits("memory://", LIMITS, refused={"three": RateLimitItemPerMinute(2)})
    caller = stranger("192.0.2.1")
    for _ in range(3):
        await limits.admit("three", caller)
    for _ in range(2):
        with pytest.raises(Problem):
            await limits.admit("three", caller)

    for _ in range(3):
        await limits.count_as_refused("three", caller)

    with pytest.raises(Problem) as refusal:
        await limits.admit("three", caller)
    assert refusal.value.code == "rate_limited"


@pytest.mark.usefixtures("clock")
async def test_a_wide_network_of_ipv6_has_a_limit_for_all_networks_in_it() -> None:
    limits = Limits("memory://", LIMITS)
    networks = [source(f"2001:db8:0:{number:x}::1") for number in range(100)]

    let_in = [await refusal_of(limits, "three", network) is None for network in networks]

    assert let_in == [True] * (3 * WIDE_SHARE) + [False] * (100 - 3 * WIDE_SHARE)
    assert await count_admitted(limits, "three", source("2001:db8:1::1")) == 3


async def test_the_refusal_names_the_window_of_the_limit() -> None:
    limits = Limits("memory://", LIMITS)
    await count_admitted(limits, "hourly", "ada")
    await count_admitted(limits, "five minutes", "ada")

    for name, words in (("hourly", "10 requests per hour"), ("five minutes", "2 requests per 5 minutes")):
        problem = await refusal_of(limits, name, "ada")
        assert problem
        assert words in problem.message


@pytest.mark.usefixtures("clock")
async def test_requests_that_come_at_once_are_counted_one_by_one() -> None:
    limits = Limits("memory://", LIMITS)

    outcomes = await asyncio.gather(*(refusal_of(limits, "ten", "ada") for _ in range(100)))

    assert outcomes.count(None) == 10


async def test_a_window_starts_with_the_first_request_and_then_everything_is_allowed_again(clock: ManualClock) -> None:
    limits = Limits("memory://", LIMITS)
    clock.now += 40
    assert await count_admitted(limits, "ten", "ada", tries=4) == 4

    clock.now += 30  # a minute of the clock has ended, but not this window
    assert await count_admitted(limits, "ten", "ada") == 6
    clock.now += 29.9
    assert await count_admitted(limits, "ten", "ada") == 0
    clock.now += 0.2
    assert await count_admitted(limits, "ten", "ada") == 10


@pytest.mark.parametrize("name", ["three", "ten", "hourly", "five minutes"])
@pytest.mark.parametrize("moment", [0.0, 0.4, 12.3, 29.5, 59.9])
async def test_a_caller_who_waits_as_long_as_the_refusal_says_is_accepted(
    clock: ManualClock, name: str, moment: float
) -> None:
    limits = Limits("memory://", LIMITS)
    clock.now += moment
    for _ in range(25):
        problem = await refusal_of(limits, name, "ada")
        if problem:
            assert problem.retry_after
            assert 1 <= problem.retry_after <= LIMITS[name].get_expiry()
            clock.now += problem.retry_after + 0.001
            assert await refusal_of(limits, name, "ada") is None


async def test_while_a_storage_cannot_be_reached_the_process_counts_by_itself_and_says_so_once() -> None:
    limits = Limits(NOWHERE, LIMITS)

    with capture_logs() as logs:
        async with asyncio.timeout(10):
            assert await count_admitted(limits, "three", "ada", tries=5) == 3

    assert [entry["event"] for entry in logs] == ["rate limits unavailable"]


@pytest.fixture
async def silent_url() -> AsyncIterator[str]:
    """The address of a Redis that takes connections and never answers."""
    finished = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await finished.wait()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finished.set()
    gc.collect()  # so that a connection left open shows here and not in some other test


async def test_a_rate_limit_storage_that_does_not_answer_delays_no_request(settings: Settings, silent_url: str) -> None:
    async with running_events(settings.model_copy(update={"rate_limit_storage_url": silent_url})) as service:
        async with asyncio.timeout(5):
            assert (await service.organizer()).key


async def test_the_service_serves_while_the_storage_of_its_limits_is_away(settings: Settings) -> None:
    alone = settings.model_copy(update={"rate_limit_storage_url": NOWHERE, "organizers_per_hour": 2})
    async with running_events(alone) as service:
        answers = [await register_organizer(service, name) for name in ("ada", "ben", "cal")]

    assert [answer.status_code for answer in answers] == [201, 201, 429]


async def test_a_refused_request_is_answered_with_retry_after(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"registrations_per_minute": 2})) as service:
        ada, ben = await service.organizer("Ada Events"), await service.organizer("Ben Events")
        event = await ada.create_event()
        people = [{"event_id": event["id"], "email": f"person{number}@example.com"} for number in range(3)]
        answers = [await ada.post("/api/registrations", {"registration": person}) for person in people]
        other_key = await ben.post("/api/registrations", {"registration": people[0]})

    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert answers[2].json()["code"] == "rate_limited"
    assert answers[2].headers["Retry-After"] == str(answers[2].json()["retry_after"])
    assert other_key.status_code == 403


async def test_organizers_are_limited_by_the_address_they_come_from(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"organizers_per_hour": 1})) as service:
        first = await register_organizer(service, "ada")
        second = await register_organizer(service, "ben", {"X-Forwarded-For": "203.0.113.7"})

    assert (first.status_code, second.status_code) == (201, 429)


async def register_organizer(service: Service, name: str, headers: dict[str, str] | None = None) -> httpx2.Response:
    organizer = {"name": f"{name} Events", "email": f"{name}@example.com", "slug": f"{name}-events"}
    return await service.anonymous.post("/api/organizers/register", {"organizer": organizer}, headers=headers or {})


@pytest.fixture
def redis_port(tmp_path: Path) -> Iterator[int]:
    """A Redis of this test's own."""
    server = shutil.which("redis-server")
    if not server:
        reason = "redis-server is not installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        # It says so when it listens; a server that cannot start ends its output instead.
        assert any("Ready to accept connections" in line for line in process.stdout)
        yield port
        process.terminate()
    gc.collect()  # so that a connection left open shows here and not in some other test


@pytest.fixture
def shared_settings(settings: Settings, redis_port: int) -> Settings:
    """Settings under which processes share a limit of ten registrations a minute and key."""
    url = f"redis://127.0.0.1:{redis_port}"
    return settings.model_copy(update={"rate_limit_storage_url": url, "registrations_per_minute": 10})


async def redis(port: int, command: str) -> str:
    """What a Redis answers to a command."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{command}\r\nQUIT\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.decode()


async def register(client: Client, event_id: int, tries: int) -> list[int]:
    """The statuses of this many requests that count against the limit of a key."""
    body = {"registration": {"event_id": event_id, "email": "ann@example.com"}}
    answers = await asyncio.gather(*(client.post("/api/registrations", body) for _ in range(tries)))
    return sorted(answer.status_code for answer in answers)


async def test_processes_that_share_a_redis_share_their_limits(shared_settings: Settings) -> None:
    async with running_events(shared_settings) as one, running_events(shared_settings) as other:
        ada, ben = await one.organizer("Ada Events"), await one.organizer("Ben Events")
        event, bens = await ada.create_event(), await ben.create_event()
        other_client = Client(other.http, ada.key)

        assert await register(ada, event["id"], 6) == [202] * 6
        assert (await register(other_client, event["id"], 10)).count(202) == 4
        refusal = await ada.post("/api/registrations", {"registration": {"event_id": event["id"]}})
        assert refusal.status_code == 429
        assert 1 <= int(refusal.headers["Retry-After"]) <= 60
        assert await register(Client(other.http, ben.key), bens["id"], 3) == [202] * 3


async def test_requests_that_come_at_once_to_several_processes_are_counted_one_by_one(
    shared_settings: Settings,
) -> None:
    async with running_events(shared_settings) as one, running_events(shared_settings) as other:
        ada = await one.organizer()
        event = await ada.create_event()
        statuses = await asyncio.gather(
            register(ada, event["id"], 25), register(Client(other.http, ada.key), event["id"], 25)
        )

    assert [*statuses[0], *statuses[1]].count(202) == 10


async def test_limits_hold_again_after_the_connection_to_redis_was_lost(
    shared_settings: Settings, redis_port: int
) -> None:
    async with running_events(shared_settings) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        assert await register(ada, event["id"], 1) == [202]
        await redis(redis_port, "CLIENT KILL TYPE normal SKIPME yes")
        for _ in range(20):
            await register(ada, event["id"], 1)

        assert await register(ada, event["id"], 1) == [429]


async def test_a_service_that_has_stopped_leaves_no_connection_to_redis_open(
    shared_settings: Settings, redis_port: int
) -> None:
    async with running_events(shared_settings) as service:
        await service.organizer()
        assert (await redis(redis_port, "CLIENT LIST TYPE normal")).count(" addr=") > 1

    # Only the connection that asks.
    assert (await redis(redis_port, "CLIENT LIST TYPE normal")).count(" addr=") == 1


async def test_the_check_of_operators_finds_that_redis_answers(shared_settings: Settings, redis_port: int) -> None:
    [finding] = await run_checks(Inspection(EVENTS, shared_settings), [check_rate_limits])

    assert finding.status == "ok"
    assert (await redis(redis_port, "CLIENT LIST TYPE normal")).count(" addr=") == 1


SHARED = SharedLimit(RateLimitItemPerMinute(5), RateLimitItemPerMinute(2), wide_share=2)
SOURCES = ["address 192.0.2.1", "address 192.0.2.2", *(f"network 20010db80001000{number}" for number in range(4))]


async def is_admitted(limits: Limits, thing: str, source: str) -> bool:
    try:
        await limits.hit_shared("shared", thing, source)
    except Problem:
        return False
    return True


@given(st.lists(st.sampled_from(SOURCES), max_size=60))
def test_an_address_has_its_share_of_a_limit_whatever_others_send(
    history: list[str],
) -> None:
    async def admitted() -> list[bool]:
        limits = Limits("memory://", {}, shared={"shared": SHARED})
        return [await is_admitted(limits, "event 7", name) for name in history]

    results = asyncio.run(admitted())

    in_shares, counts, wide = 0, Counter[str](), 0
    for name, result in zip(history, results, strict=True):
        is_wide = name.startswith("network")
        if counts[name] < 2 and not (is_wide and wide == 4):
            assert result
            in_shares += 1
            wide += is_wide
        counts[name] += 1
    assert sum(results) <= in_shares + 5


@pytest.mark.usefixtures("clock")
async def test_requests_that_store_nothing_use_up_only_the_share_of_their_address() -> None:
    limits = Limits("memory://", {}, shared={"shared": SHARED})

    tried = [await limits.count_for_share("shared", "event 7", SOURCES[0]) for _ in range(50)]

    assert tried == [False] * 2 + [True] * 48
    for _ in range(5):
        await limits.count_together("shared", "event 7")
    with pytest.raises(Problem):
        await limits.count_for_share("shared", "event 7", SOURCES[0])
    assert not await limits.count_for_share("shared", "event 7", SOURCES[1])
    assert await limits.count_for_share("shared", "event 8", SOURCES[1]) is False


@pytest.mark.usefixtures("clock")
async def test_a_limit_of_everything_ends_the_shares_too_and_refused_requests_do_not_count_for_it() -> None:
    most = SharedLimit(RateLimitItemPerMinute(2), RateLimitItemPerMinute(1), most=RateLimitItemPerMinute(5))
    limits = Limits("memory://", {}, shared={"shared": most})

    alone = [await is_admitted(limits, "ann", SOURCES[0]) for _ in range(50)]
    others = [await is_admitted(limits, "ann", f"address 198.51.100.{number}") for number in range(4)]

    assert alone == [True] * 3 + [False] * 47
    assert others == [True, True, False, False]
