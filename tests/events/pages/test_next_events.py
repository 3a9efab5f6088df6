"""The page of an event that is cancelled or over shows what the same organizer has next."""

import re
from typing import Any

import pytest

from tests.events.pages.reading import readable_text
from tests.helpers.events_service import Client, Service

END = {
    "cancelled": "update events set cancelled_at = now() where id = %(id)s",
    "over": "update events set datetime = now() - interval '2 days' where id = %(id)s",
}


async def cards(service: Service, event: dict[str, Any]) -> list[str]:
    """The titles of the cards on the page of an event."""
    page = (await service.http.get(event["public_url"])).text
    return re.findall(r'<h3 dir="auto"><a href="[^"]*">(.*?)</a></h3>', page)


async def with_others(ada: Client) -> dict[str, Any]:
    """An event of an organizer with five later ones, of which one is a draft."""
    event = await ada.create_event(title="This one")
    for day in (5, 4, 3, 2):
        await ada.create_event(title=f"In June {day}", datetime=f"2031-06-0{day}T18:00:00Z")
    await ada.create_event(title="Draft", datetime="2031-06-01T18:00:00Z", published=False)
    return event


@pytest.mark.parametrize("end", END)
async def test_a_cancelled_or_past_event_shows_the_next_three_events_of_its_organizer(
    service: Service, end: str
) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event = await with_others(ada)
    await ben.create_event(title="Of another organizer")
    assert await cards(service, event) == []

    await service.run_sql(END[end], id=event["id"])
    await service.wait_for_notices()

    assert await cards(service, event) == ["In June 2", "In June 3", "In June 4"]
    page = await service.http.get(event["public_url"])
    assert "The next events" in readable_text(page)
    assert f'href="/organizers/{ada.slug}"' in page.text


async def test_next_events_without_a_free_place_come_last(service: Service) -> None:
    ada = await service.organizer()
    event = await with_others(ada)
    full = await ada.create_event(title="Full", datetime="2031-06-01T12:00:00Z", capacity=1)
    await ada.register(full["id"], email="ann@example.com")
    await service.settle()

    await ada.delete(f"/api/events/{event['id']}")
    await service.wait_for_notices()

    assert await cards(service, event) == ["In June 2", "In June 3", "In June 4"]


async def test_a_next_event_that_is_cancelled_too_is_shown_no_more(service: Service) -> None:
    ada = await service.organizer()
    event, other = await ada.create_event(title="This one"), await ada.create_event(title="The other one")
    await ada.delete(f"/api/events/{event['id']}")
    await service.wait_for_notices()
    assert await cards(service, event) == ["The other one"]

    await ada.delete(f"/api/events/{other['id']}")
    await service.wait_for_notices()

    assert await cards(service, event) == []
    assert "The next events" not in readable_text(await service.http.get(event["public_url"]))
