"""Concurrent calls with two keys in two processes never register more people than the daily limit of a key."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.accounts.agents.limits import SetLimit
from holdfast.events.keys.operations import KEY_LIMITS
from holdfast.kit.contract.caller import system
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import Client, Service, running_events, unlimited


@dataclass(frozen=True)
class Attempt:
    """One call: the number of the person, and which key and which process it uses."""

    person: int
    key: int
    process: int


@dataclass(frozen=True)
class Phase:
    """What is asked at once, after the limits of both keys were set."""

    limits: tuple[int, int]
    attempts: Sequence[Attempt]


LIMIT = st.integers(0, 12)
ATTEMPT = st.builds(Attempt, st.integers(0, 25), st.integers(0, 1), st.integers(0, 1))
PHASES = st.lists(
    st.builds(Phase, st.tuples(LIMIT, LIMIT), st.lists(ATTEMPT, min_size=1, max_size=64)), min_size=1, max_size=3
)


async def try_phases(services: Sequence[Service], phases: Sequence[Phase]) -> None:
    """Ask for all of this, and see after each phase that no limit was broken."""
    ada = await services[0].organizer()
    event = await ada.create_event(capacity=10)
    second = (await ada.post("/api/keys", {"api_key": {"name": "Second"}})).json()["data"]
    [(first_id,)] = await services[0].run_sql("select min(id) from api_keys where user_id = %(id)s", id=ada.id)
    ids, secrets = (first_id, second["id"]), (ada.key, second["key"])
    before = [0, 0]
    for phase in phases:
        for id, daily_limit in zip(ids, phase.limits, strict=True):
            command = SetLimit(key_id=id, daily_limit=daily_limit)
            await services[0].database.transact(
                lambda tx, command=command: KEY_LIMITS.store_limit(tx, system(ada.id), command)
            )

        async def attempt(call: Attempt) -> str:
            client = Client(services[call.process].http, secrets[call.key])
            person = {"event_id": event["id"], "email": f"p{call.person}@example.com"}
            response = await client.post("/api/registrations", {"registration": person})
            return "accepted" if response.status_code == 202 else response.json()["code"]

        codes = await asyncio.gather(*(attempt(call) for call in phase.attempts))
        rows = await services[0].run_sql(
            "select used from agent_limits where tenant_id = %(id)s order by key_id", id=ada.id
        )
        used = [count for (count,) in rows]
        [(stored,)] = await services[0].run_sql(
            "select count(*) from registrations where organizer_id = %(id)s", id=ada.id
        )
        assert {*codes} <= {"accepted", "daily_limit_reached"}
        assert stored == sum(used)
        for key, daily_limit in enumerate(phase.limits):
            assert used[key] <= max(daily_limit, before[key])
            is_refused = any(
                code != "accepted" for code, call in zip(codes, phase.attempts, strict=True) if call.key == key
            )
            assert not is_refused or used[key] == max(daily_limit, before[key])
        before = used


@pytest.fixture(scope="module")
def run(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Sequence[Phase]], None]]:
    """Tries phases in two processes on a database that all examples share."""
    with scratch_database(template_url, "limits") as url, asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        where = unlimited(url, tmp_path_factory.mktemp("limits"))

        async def begin() -> list[Service]:
            return [await stack.enter_async_context(running_events(where)) for _ in range(2)]

        services = runner.run(begin())
        yield lambda phases: runner.run(try_phases(services, phases))
        runner.run(stack.aclose())


@given(PHASES)
@example(
    # Two keys name the same person at once: only the first of them registers it, so the other has room for one more.
    [Phase((1, 1), [Attempt(1, 1, 1), Attempt(1, 0, 1), Attempt(0, 0, 1)])]
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_key_registers_more_people_than_its_limit(
    run: Callable[[Sequence[Phase]], None], phases: Sequence[Phase]
) -> None:
    run(phases)
