"""A service reports its health, and does its background work as long as it runs."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from holdfast.events.keys.operations import find_callers
from holdfast.events.oauth import external_consent
from holdfast.events.queues.release_tokens import RELEASE_SIGNING_KEYS
from holdfast.events.resources import Database, Steps
from holdfast.kit.background.loops import Loop, LoopStep, RowWaiters
from holdfast.kit.background.tasks import Schedule, TimedTask
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.process import service as kit
from holdfast.kit.process.part import Endpoints, Part
from holdfast.kit.security.api_keys import KeyRing
from tests.helpers.any_bound import ANY_BOUND
from tests.helpers.events_service import Service, eventually


def with_loops(database: Database, *steps: LoopStep) -> kit.Service:
    return kit.Service(
        database=database,
        runner=Runner((), database),
        operations=(),
        authenticate=KeyRing(database, find_callers).caller,
        limits=Limits("memory://", {}),
        streams=Streams(ANY_BOUND),
        parts=(Part(loops=[Loop(f"{number}.loop", step) for number, step in enumerate(steps)]),),
    )


async def test_the_first_keys_are_made_as_a_service_starts(service: Service) -> None:
    starting = replace(with_loops(service.database), parts=(Part(keys=(RELEASE_SIGNING_KEYS, external_consent.KEYS)),))

    async def are_made() -> bool:
        counted = "select (select count(*) from queue_signing_keys), (select count(*) from trusted_auth_keys)"
        return await service.run_sql(counted) == [(1, 1)]

    async with starting.background():
        await eventually(are_made)


async def test_a_service_that_reaches_its_database_is_alive_and_ready(service: Service) -> None:
    alive, ready = await service.http.get("/healthz"), await service.http.get("/readyz")

    assert (alive.status_code, alive.text) == (200, "alive\n")
    assert (ready.status_code, ready.text) == (200, "ready\n")


async def test_a_service_without_its_database_is_alive_and_ready(service: Service) -> None:
    await service.database.close()
    alive, ready = await service.http.get("/healthz"), await service.http.get("/readyz")

    assert (alive.status_code, ready.status_code) == (200, 200)
    unavailable = await service.http.get("/api/events", headers={"X-API-Key": "hf_" + 43 * "x"})
    assert (unavailable.status_code, unavailable.json()["code"]) == (503, "service_unavailable")


async def test_requests_that_need_the_database_are_unavailable_without_it(service: Service) -> None:
    ada = await service.organizer()
    await service.database.close()

    for response in (await ada.get("/api/events"), await ada.post("/api/keys", {"api_key": {"name": "One more"}})):
        assert (response.status_code, response.json()["code"]) == (503, "service_unavailable")
        assert response.headers["retry-after"] == str(response.json()["retry_after"])


async def test_requests_are_counted_by_operation_and_status(service: Service) -> None:
    ada = await service.organizer()
    await ada.get("/api/events?offset=x")
    page = await service.http.get("/metrics")

    assert page.headers["content-type"].startswith("text/plain")
    for operation, status in (("register_organizer", 201), ("list_events", 422)):
        assert f'holdfast_requests_total{{operation="{operation}",status="{status}"}}' in page.text


async def test_a_service_whose_jobs_share_a_name_is_not_made(service: Service) -> None:
    async def clean_up(_: Steps) -> int:
        return 0

    twice = (TimedTask("clean_up", Schedule.hourly(1), clean_up), TimedTask("clean_up", Schedule.hourly(2), clean_up))
    with pytest.raises(ValueError, match="Several tasks have the name clean_up"):
        replace(with_loops(service.database), parts=(Part(timed_tasks=twice),))


async def test_a_loop_that_fails_is_logged_and_started_again(service: Service) -> None:
    runs = 0
    again = asyncio.Event()

    async def fail_once(_: Database, __: RowWaiters) -> float:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise RuntimeError("not the first time")
        again.set()
        return 60.0

    with capture_logs() as logs:
        async with with_loops(service.database, fail_once).background(), asyncio.timeout(5):
            await again.wait()

    assert runs == 2
    assert [str(entry["exc_info"]) for entry in logs if entry["log_level"] == "error"] == ["not the first time"]


async def test_background_work_ends_with_the_service(service: Service) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def work(_: Database, __: RowWaiters) -> float:
        started.set()
        try:
            await asyncio.Event().wait()
            return 0.0
        finally:
            ended.set()

    async with with_loops(service.database, work, work).background(), asyncio.timeout(5):
        await started.wait()
        assert not ended.is_set()

    assert ended.is_set()
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not {name for name in names if name.endswith(".loop")}


async def test_a_service_that_fails_ends_its_background_work_too(service: Service) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def work(_: Database, __: RowWaiters) -> float:
        started.set()
        try:
            await asyncio.Event().wait()
            return 0.0
        finally:
            ended.set()

    async def serve() -> None:
        async with with_loops(service.database, work).background(), asyncio.timeout(5):
            await started.wait()
            raise RuntimeError("the port is taken")

    with pytest.raises(ExceptionGroup) as failure:
        await serve()

    assert failure.group_contains(RuntimeError, match="the port is taken")
    assert ended.is_set()


async def test_endpoints_are_closed_when_the_service_ends(service: Service) -> None:
    closed: list[str] = []

    async def close() -> None:
        closed.append("closed")

    app = replace(with_loops(service.database), endpoints=Endpoints(closing=(close,))).app(background=False)
    async with app.lifespan():
        assert closed == []

    assert closed == ["closed"]
