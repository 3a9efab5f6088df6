"""`MCP_RATE_LIMIT` is the number of messages that a key may send in a second."""

from holdfast.events.settings import Settings
from tests.events.agents.samples import agent, prepare_organizer
from tests.helpers.events_service import running_events
from tests.helpers.stored_rows import read_all_rows


async def test_more_messages_in_a_second_than_are_set_are_refused(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"messages_per_second": 2})) as service:
        ada = await prepare_organizer(service)
        asking = agent(service, ada, "2025-03-26")
        create = {"name": "create_api_key", "arguments": {"name": "Door"}}
        before = await read_all_rows(service.run_sql)

        response = await asking.post([asking.request("tools/call", create) for _ in range(3)])

        assert (response.status_code, response.json()["code"]) == (429, "rate_limited")
        assert response.json()["error"] == "At most 2 requests per second are allowed here."
        assert int(response.headers["retry-after"]) == 1
        assert await read_all_rows(service.run_sql) == before


async def test_requests_over_rest_are_not_messages(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"messages_per_second": 1})) as service:
        ada = await service.organizer()

        assert [(await ada.get("/api/events")).status_code for _ in range(5)] == [200] * 5
