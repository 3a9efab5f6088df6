"""Long texts of events are rendered once, in a subprocess, within a bound, and do not delay other pages."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from httpx2 import Response

from tests.helpers.events_service import Service, event_fields

# Texts that take too long leave a service with new processes, for which others wait.
pytestmark = pytest.mark.usefixtures("own_service")


async def answer_in_time(send: Callable[[], Awaitable[Response]]) -> Response:
    """The answer to a request that is sent again while a busy machine has no time for its text."""
    for _ in range(6):
        if (answer := await send()).status_code != 503:
            return answer
    pytest.fail("a text was not laid out in a minute")


async def test_hostile_texts_stored_before_do_not_delay_pages_of_other_organizers(service: Service) -> None:
    eve, ada = await service.organizer(), await service.organizer()
    events = [await eve.create_event(body=f"Number {number}.") for number in range(10)]
    await service.run_sql(
        "update events set body = repeat('[', 100000 - 3) || id where organizer_id = %(id)s", id=eve.id
    )
    innocent = await ada.create_event(body="Bring a *pencil*.")

    began = time.process_time()
    hostile = [asyncio.create_task(service.http.get(event["public_url"])) for event in events]
    page = await service.http.get(innocent["public_url"])
    others_were_faster = not any(task.done() for task in hostile)
    answers = {response.status_code for response in await asyncio.gather(*hostile)}
    spent = time.process_time() - began

    assert "Bring a <em>pencil</em>." in page.text
    assert others_were_faster
    assert answers <= {200, 503}
    # The other process renders them; this one only sends texts to it, and shows pages.
    assert spent < 2


async def test_a_text_stored_before_is_rendered_once_for_all_processes(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(body="Bring a *pencil*.")
    await service.run_sql("delete from event_texts")

    first = await service.http.get(event["public_url"])
    await service.run_sql("update event_texts set html = '<p>Stored.</p>'")
    await service.run_sql("update events set location_name = 'Studio 5'")
    second = await service.http.get(event["public_url"])

    assert "Bring a <em>pencil</em>." in first.text
    assert "<p>Stored.</p>" in second.text


async def test_html_of_an_older_renderer_or_text_is_not_shown(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(body="Bring a *pencil*.")

    await service.run_sql("update event_texts set version = version - 1, html = 'Of another renderer.'")
    of_version = await service.http.get(event["public_url"])
    # As a process does that knows of no stored HTML.
    await service.run_sql("update events set body = 'Bring a *brush*.'")
    of_text = await service.http.get(event["public_url"])

    assert "Bring a <em>pencil</em>." in of_version.text
    assert "Bring a <em>brush</em>." in of_text.text


async def test_a_text_is_rendered_when_it_is_written(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(body="One.\n\n" * 1_000)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"body": "Two."}})

    assert await service.run_sql("select html, summary from event_texts") == [("<p>Two.</p>\n", "Two.")]


async def test_a_text_that_is_too_much_is_refused_with_its_reason_and_changes_nothing(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(body="One.")
    many = f"[a]: https://example.com/{'x' * 30_000}\n\n{'[a] ' * 16_000}"

    for answer in (
        await answer_in_time(lambda: ada.post("/api/events", {"event": event_fields(body=many)})),
        await answer_in_time(lambda: ada.patch(f"/api/events/{event['id']}", {"event": {"body": many}})),
    ):
        assert answer.status_code == 422
        assert "to be laid out as Markdown" in answer.json()["errors"]["body"][0]
    assert await service.run_sql("select body from events") == [("One.",)]


async def test_a_text_stored_before_that_takes_too_long_is_shown_unrendered(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(body="One.")
    await service.run_sql("update events set body = %(body)s", body=f"[a]: /{'x' * 30_000}\n\n{'[a] ' * 40_000}")

    page = await answer_in_time(lambda: service.http.get(event["public_url"]))

    assert page.status_code == 200
    assert '<p class="plain">[a]: /xxx' in page.text


async def test_an_organizer_with_many_long_texts_delays_only_its_own(service: Service) -> None:
    eve, ada = await service.organizer(), await service.organizer()
    body = "[" * 60_000
    hostile = [asyncio.create_task(eve.post("/api/events", {"event": event_fields(body=body)})) for _ in range(5)]
    await asyncio.sleep(0)
    await ada.create_event(body="*Long*, but usual. " * 300)

    assert not all(task.done() for task in hostile)
    assert {response.status_code for response in await asyncio.gather(*hostile)} <= {201, 422, 503}
