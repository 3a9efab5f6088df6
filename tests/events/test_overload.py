"""Overload: when work waits too long, new work is refused, and health checks are still answered."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator
from typing import Any

import psycopg
import pytest

from holdfast.kit.operations.admission import MIN_IN_PROGRESS
from holdfast.kit.operations.runner import TENANT_SHARE_DIVISOR
from holdfast.kit.operations.slots import SLOT_TIMEOUT_SECONDS
from tests.events.console.organizer_scene import open_organizer_scene
from tests.helpers.event_visitor import Visitor, field_value, page_text
from tests.helpers.events_service import Client, Service, eventually
from tests.helpers.locked_rows import hold_locks


@contextlib.asynccontextmanager
async def slow_reads(service: Service, ada: Client, event_id: int, seconds: float) -> AsyncGenerator[None]:
    """Let the reads of an event wait for this many seconds. Afterwards they get their answers."""
    async with await psycopg.AsyncConnection.connect(service.database.url) as blocker:
        await blocker.execute("lock table events in access exclusive mode")
        reads = [asyncio.create_task(ada.get(f"/api/events/{event_id}")) for _ in range(MIN_IN_PROGRESS)]
        await eventually(lambda: service.runner.admission.in_progress == MIN_IN_PROGRESS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(service.runner.admission, "now", lambda: time.monotonic() + seconds / 2)
            yield
        await blocker.rollback()
    assert {answer.status_code for answer in await asyncio.gather(*reads)} == {200}


async def test_reads_are_answered_with_503_and_retry_after_while_changes_are_accepted(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    async with slow_reads(service, ada, event["id"], 3):
        read = await ada.get("/api/queues")
        key = await ada.post("/api/keys", {"api_key": {"name": "Another"}})
        log = await service.http.get(f"/log/events/{event['id']}/checkpoint")

    assert (read.status_code, log.status_code) == (503, 503)
    assert (read.json()["code"], read.headers["retry-after"]) == (
        "service_unavailable",
        str(read.json()["retry_after"]),
    )
    assert re.fullmatch(r"Work waits for \d+ seconds\. This request was not begun\.", read.json()["error"])
    assert key.status_code == 201
    assert (await ada.get("/api/queues")).status_code == 200


async def test_an_accepted_registration_is_answered_while_new_ones_are_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    queue = await ada.create_queue()
    assert (await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": "ann"})).status_code == 202

    async with slow_reads(service, ada, event["id"], 5):
        refusal = await ada.post(
            "/api/registrations", {"registration": {"event_id": event["id"], "email": "a@b.example"}}
        )
        joined = await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": "ben"})
        status = await ada.get(f"/api/queues/{queue['id']}/status/ann")

    assert (refusal.status_code, joined.status_code, status.status_code) == (503, 503, 200)
    assert await service.run_sql("select from registrations") == []


async def test_an_agent_reads_that_a_call_refused_under_overload_can_be_repeated(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    call: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "list_queues", "arguments": {}},
    }

    async with slow_reads(service, ada, event["id"], 3):
        answer = await ada.post("/mcp", call, headers={"Accept": "application/json, text/event-stream"})

    assert "service_unavailable" in answer.text
    assert "retry" in answer.text


async def test_a_form_refused_under_overload_is_shown_as_it_was_filled_in(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await service.wait_for_notices()
    visitor = Visitor(service, framed=False)
    token = field_value(await visitor.open(event["id"]), "token")

    async with slow_reads(service, ada, event["id"], 5):
        answer = await visitor.post(event["id"], token=token, email="ann@example.com", name="Ann")

    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert "could not store your registration" in page_text(answer)
    assert field_value(answer, "email") == "ann@example.com"


async def test_the_console_does_not_wait_behind_programs_of_the_same_organizer(service: Service) -> None:
    scene = await open_organizer_scene(service)
    async with await psycopg.AsyncConnection.connect(service.database.url) as blocker:
        await blocker.execute("lock table queues in access exclusive mode")
        reads = [asyncio.create_task(scene.ada.get("/api/queues")) for _ in range(50)]

        def are_waiting() -> bool:
            return service.runner.admission.in_progress == service.database.pool.max_size // TENANT_SHARE_DIVISOR

        await eventually(are_waiting)
        async with asyncio.timeout(SLOT_TIMEOUT_SECONDS - 1):
            page = await scene.page("/console/look")
        await blocker.rollback()

    assert "Appearance" in page
    assert {answer.status_code for answer in await asyncio.gather(*reads)} == {200}


async def test_a_caller_who_waits_for_its_own_organizer_gets_no_other_caller_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, ben = await service.organizer(), await service.organizer("Ben Events")
    async with await psycopg.AsyncConnection.connect(service.database.url) as blocker:
        await blocker.execute("lock table queues in access exclusive mode")
        reads = [asyncio.create_task(ada.get("/api/queues")) for _ in range(MIN_IN_PROGRESS)]

        def are_waiting() -> bool:
            return service.runner.admission.in_progress == service.database.pool.max_size // TENANT_SHARE_DIVISOR

        await eventually(are_waiting)
        with monkeypatch.context() as patch:
            patch.setattr(service.runner.admission, "now", lambda: time.monotonic() + 60)
            answer = await ben.get("/api/keys")
        await blocker.rollback()

    assert answer.status_code == 200
    assert {read.status_code for read in await asyncio.gather(*reads)} == {200}


async def test_joins_that_wait_for_a_locked_queue_do_not_get_other_calls_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, ben = await service.organizer(), await service.organizer("Ben Events")
    queue = await ada.create_queue()
    path = f"/api/queues/{queue['id']}/join"
    locked = "select from queues where id = %(id)s for no key update"
    async with hold_locks(service.database.url, locked, id=queue["id"]) as operator:
        joins = [
            asyncio.create_task(ada.post(path, {"visitor_id": f"visitor{number}"})) for number in range(MIN_IN_PROGRESS)
        ]
        await operator.wait_for_waiters()
        await eventually(lambda: service.runner.admission.in_progress == 0)
        with monkeypatch.context() as patch:
            patch.setattr(service.runner.admission, "now", lambda: time.monotonic() + 60)
            answer, refusal = await ben.get("/api/keys"), await ada.post(path, {"visitor_id": "late"})

    assert (answer.status_code, refusal.status_code) == (200, 503)
    assert {join.status_code for join in await asyncio.gather(*joins)} == {202}


async def test_health_and_readiness_are_answered_however_long_work_waits(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    async with slow_reads(service, ada, event["id"], 3600):
        health = await service.http.get("/healthz")
        ready = await service.http.get("/readyz")
        document = await service.http.get("/llms.txt")
        page = await Visitor(service).http.get("/sign-in")

    assert [answer.status_code for answer in (health, ready, document, page)] == [200] * 4
