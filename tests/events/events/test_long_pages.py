"""A page ends early when its items are long, and the next page goes on where it ended."""

from typing import Any

import pytest

from holdfast.kit.postgres import pagination
from tests.events.agents.samples import agent
from tests.helpers.events_service import Client, Service

LONG = 100_000
"""The most characters of the description of an event."""


@pytest.fixture
async def ada(service: Service) -> Client:
    """An organizer with 50 events of 100 kB, and 300 queues of 10 kB."""
    ada = await service.organizer()
    event, queue = await ada.create_event(body="x" * LONG), await ada.create_queue(description="x" * 10_000)
    await copy(service, "events", event["id"], 49)
    await copy(service, "queues", queue["id"], 299)
    return ada


async def copy(service: Service, table: Any, id: int, copies: int) -> None:
    """Store more rows like one."""
    names = f"select column_name from information_schema.columns where table_name = '{table}' and column_name <> 'id'"
    columns = ", ".join(f'"{name}"' for (name,) in await service.run_sql(names))
    await service.run_sql(
        f"""
        insert into {table} ({columns})
        select {columns} from {table}, generate_series(1, %(copies)s) where id = %(id)s
        """,
        copies=copies,
        id=id,
    )


async def pages(ada: Client, path: str, step: str) -> list[dict[str, Any]]:
    """Every page of a list, each at the offset that the one before tells."""
    read: list[dict[str, Any]] = []
    offset = 0
    while True:
        page = (await ada.get(path, params={"limit": 500, "offset": offset})).json()
        read.append(page)
        if not page["pagination"]["has_more"]:
            return read
        offset += page["pagination"][step]


both = pytest.mark.parametrize(("path", "items"), [("/api/events", 50), ("/api/queues", 300)])


@both
async def test_a_page_of_long_items_ends_early_and_says_so(ada: Client, path: str, items: int) -> None:
    response = await ada.get(path, params={"limit": 500})
    page = response.json()

    assert pagination.MAX_PAGE_BYTES / 2 < len(response.content) < pagination.MAX_PAGE_BYTES * 1.5
    assert 0 < len(page["data"]) < items
    assert page["pagination"] == {
        "count": len(page["data"]),
        "offset": 0,
        "limit": len(page["data"]),
        "has_more": True,
    }


@both
@pytest.mark.parametrize("step", ["count", "limit"])
async def test_following_pages_show_every_item_once(ada: Client, path: str, items: int, step: str) -> None:
    read = await pages(ada, path, step)

    ids = [item["id"] for page in read for item in page["data"]]
    assert ids == sorted(set(ids))
    assert len(ids) == items
    assert len(read) > 1
    assert read[-1]["pagination"]["limit"] == 500


@both
async def test_a_page_that_is_short_enough_has_the_requested_number_of_items(
    ada: Client, path: str, items: int
) -> None:
    page = (await ada.get(path, params={"limit": 10})).json()

    assert page["pagination"] == {"count": 10, "offset": 0, "limit": 10, "has_more": True}


async def test_an_item_longer_than_a_page_has_a_page_of_its_own(ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MAX_PAGE_BYTES", LONG // 2)

    page = (await ada.get("/api/events", params={"offset": 48})).json()
    last = (await ada.get("/api/events", params={"offset": 49})).json()
    beyond = (await ada.get("/api/events", params={"offset": 50})).json()

    assert page["pagination"] == {"count": 1, "offset": 48, "limit": 1, "has_more": True}
    assert last["pagination"] == {"count": 1, "offset": 49, "limit": 100, "has_more": False}
    assert beyond["pagination"] == {"count": 0, "offset": 50, "limit": 100, "has_more": False}


async def test_a_tool_ends_its_pages_early_too(service: Service, ada: Client) -> None:
    result = (await agent(service, ada).call("list_events", limit=500))["structuredContent"]

    assert len(result["data"]) < 50
    assert result["pagination"]["has_more"] is True
