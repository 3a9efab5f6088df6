"""An agent moves a published event into the past only if it says that this ends registration."""

from typing import Any

from tests.events.agents.samples import agent
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Client, Service

LAST_YEAR = "2020-06-01T18:00:00Z"


async def move(service: Service, client: Client, event: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What `update_event` answers to a change of the date."""
    return await agent(service, client).call("update_event", event_id=event["id"], datetime=LAST_YEAR, **changes)


async def status(client: Client, event: dict[str, Any]) -> str:
    return (await client.get(f"/api/events/{event['id']}")).json()["data"]["status"]


async def test_a_tool_does_not_end_an_event_by_a_date_in_the_past(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    answer = await move(service, ada, event)

    problem = problem_of(answer)
    assert problem["code"] == "validation_failed"
    assert problem["errors"] == {
        "datetime": [
            "is in the past, so the event would be over at once; if that is meant, send ends_registration as true"
        ]
    }
    assert await status(ada, event) == "active"


async def test_a_tool_ends_an_event_by_a_date_in_the_past_if_it_says_so(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    answer = await move(service, ada, event, ends_registration=True)

    assert not answer.get("isError")
    assert await status(ada, event) == "expired"


async def test_a_tool_moves_a_draft_and_a_past_event_within_the_past(service: Service) -> None:
    ada = await service.organizer()
    draft = await ada.create_event(published=False)
    past = await ada.create_event(datetime="2021-01-01T18:00:00Z")

    for event in (draft, past):
        assert not (await move(service, ada, event)).get("isError")


async def test_rest_may_move_an_event_into_the_past(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    answer = await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": LAST_YEAR}})

    assert (answer.status_code, answer.json()["data"]["status"]) == (200, "expired")
