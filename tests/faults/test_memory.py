"""The memory that one small request may cost."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2

from holdfast.kit.security.http_client import HttpClient
from tests.helpers.events_service import Service
from tests.helpers.processes import running_processes

MEGABYTE = 1_000_000


async def test_a_batch_of_long_lists_takes_little_memory(service: Service, database_url: str, tmp_path: Path) -> None:
    ada = await service.organizer()
    event = await ada.create_event(body="x" * 100_000)
    copied = (
        "organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode, price, "
        "recurrence_frequency, recurrence_interval, recurs_from, image_keys"
    )
    await service.run_sql(
        f"insert into events ({copied}) select {copied} from events, generate_series(1, 499) where id = %(id)s",
        id=event["id"],
    )
    calls: list[dict[str, Any]] = [
        {
            "jsonrpc": "2.0",
            "id": id,
            "method": "tools/call",
            "params": {"name": "list_events", "arguments": {"limit": 500}},
        }
        for id in range(10)
    ]
    headers = {"Authorization": f"Bearer {ada.key}", "MCP-Protocol-Version": "2025-03-26"}
    with running_processes(database_url, tmp_path, 1) as [process]:
        async with HttpClient(base_url=process.url, headers=headers, timeout=60) as http:
            await http.post("/mcp", json=calls[:1])
            before = process.memory()

            responses = await asyncio.gather(*(http.post("/mcp", json=calls) for _ in range(4)))

            grown = process.memory() - before
    for response in responses:
        assert response.status_code == 200
        assert len(response.content) < 15 * MEGABYTE
        answers = response.json()
        first, last = answers[0]["result"]["structuredContent"], answers[-1]["error"]
        assert first["pagination"]["has_more"] is True
        assert last["data"]["code"] == "service_unavailable"
    assert grown < 150 * MEGABYTE


async def test_unread_answers_take_little_memory(service: Service, database_url: str, tmp_path: Path) -> None:
    ada = await service.organizer()
    for _ in range(20):
        await ada.create_event(body="x" * 100_000)
    request = f"GET /api/events HTTP/1.1\r\nHost: here\r\nX-API-Key: {ada.key}\r\n\r\n".encode()
    with running_processes(database_url, tmp_path, 1) as [process]:
        port = httpx2.URL(process.url).port
        before = process.memory()
        writers: list[asyncio.StreamWriter] = []
        for _ in range(250):
            # With this limit the client stops reading after 2 kB.
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
            writers.append(writer)
            writer.write(request)
            assert await reader.readexactly(12) == b"HTTP/1.1 200"
        grown = process.memory() - before
        for writer in writers:
            writer.transport.abort()

    # 250 answers of 2 MB are 500 MB.
    assert grown < 400 * MEGABYTE
