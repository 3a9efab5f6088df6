"""The stream of an event sends its numbers at once, and then each change, from any process."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.events.settings import Settings
from holdfast.kit.http import event_streams
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Service, eventually, running_events
from tests.helpers.exchange import Event, Stream, parse_event, read_stream
from tests.helpers.people import sign_up
from tests.helpers.processes import running_processes

PRICED: dict[str, Any] = {"pricing_mode": "fixed", "price": 1250, "currency": "EUR"}


def stream(event: dict[str, Any], query: str = "") -> str:
    return f"http://events.test/events/{event['id']}/stream{query}"


def numbers(event: Event) -> dict[str, Any]:
    """The numbers of an event of the stream, without the parts of the page and its version."""
    return {name: value for name, value in event["data"].items() if name not in ("html", "version")}


async def next_numbers(reader: Stream) -> Event:
    """The next event with numbers. A page that was published just before may still be told that it has changed."""
    event = await reader.next()
    return event if event["event"] == "numbers" else await reader.next()


async def test_the_stream_of_an_event_begins_with_the_present_numbers_and_parts(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=3, waitinglist_capacity=2)
    await sign_up(service, event, "ann")

    async with read_stream(service.app, stream(event)) as reader:
        first = await reader.next()

    assert first["event"] == "numbers"
    assert numbers(first) == {
        "status": "active",
        "left": 2,
        "room": 2,
        "waiting": 0,
        "price": None,
        "currency": None,
    }
    assert "2 seats left" in first["data"]["html"]
    assert 'id="form_part"' in first["data"]["html"]
    # A page that a cache had kept has another version, and fetches itself.
    version = f'data-version="{first["data"]["version"]}"'
    assert version in (await service.http.get(event["public_url"])).text
    await ada.patch(f"/api/events/{event['id']}", {"event": {"location_name": "Studio 2"}})
    assert version not in (await service.http.get(event["public_url"])).text
    assert re.match(r"retry: \d{4}\n\n", reader.sent)


async def test_the_stream_sends_a_price_as_number_and_currency_and_as_formatted_text(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**PRICED)

    async with read_stream(service.app, stream(event, "?lang=de")) as reader:
        before = await reader.next()
        await ada.patch(f"/api/events/{event['id']}", {"event": {"price": 900}})
        after = await reader.next()

    assert (before["data"]["price"], before["data"]["currency"]) == (1250, "EUR")
    assert "12,50\xa0€" in before["data"]["html"]
    assert (after["data"]["price"], after["data"]["currency"]) == (900, "EUR")
    assert "9,00\xa0€" in after["data"]["html"]


async def test_the_stream_of_an_event_is_neither_buffered_nor_stored(service: Service) -> None:
    event = await (await service.organizer()).create_event()

    async with read_stream(service.app, stream(event), accept_encoding="gzip") as reader:
        pass

    assert reader.status == 200
    assert reader.headers["content-type"] == "text/event-stream"
    assert reader.headers["x-accel-buffering"] == "no"
    assert reader.headers["cache-control"] == "no-store"
    assert "content-encoding" not in reader.headers
    assert "set-cookie" not in reader.headers


async def test_a_silent_stream_sends_comments(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "HEARTBEAT_SECONDS", 0.01)
    event = await (await service.organizer()).create_event()

    async with read_stream(service.app, stream(event)) as reader:
        await eventually(lambda: reader.sent.endswith(":\n\n:\n\n"))


async def test_a_change_of_an_event_is_streamed_with_the_parts_it_changes(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=2)

    async with read_stream(service.app, stream(event, "?lang=de")) as reader:
        await reader.next()
        await sign_up(service, event, "ann")
        one_left = await reader.next()
        await sign_up(service, event, "bob")
        none_left = await reader.next()
        await sign_up(service, event, "cleo")
        waiting = await reader.next()

    assert numbers(one_left)["left"] == 1
    assert "1 Platz frei" in one_left["data"]["html"]
    # The form is as it was, and so is the bar that leads to it on a phone.
    assert "form_part" not in one_left["data"]["html"]
    assert "register_bar" not in one_left["data"]["html"]
    assert 'id="register_bar"' in none_left["data"]["html"]
    assert (numbers(none_left)["left"], numbers(none_left)["status"]) == (0, "full")
    assert 'data-state="waiting_list"' in none_left["data"]["html"]
    assert (numbers(waiting)["waiting"], numbers(waiting)["room"]) == (1, 1)


async def test_the_last_of_many_streamed_changes_is_the_present_state(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=40)
    left: list[int] = []

    async with read_stream(service.app, stream(event)) as reader:
        await asyncio.gather(*(sign_up(service, event, f"p{number}") for number in range(20)))
        while not left or left[-1] != 20:
            left.append(numbers(await reader.next())["left"])

    assert left == sorted(left, reverse=True)
    assert len(left) < 15


async def test_a_change_without_new_numbers_is_streamed_without_numbers(service: Service) -> None:
    ada = await service.organizer()
    event, other = await ada.create_event(), await ada.create_event()

    async with read_stream(service.app, stream(event)) as reader:
        await reader.next()
        await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Watercolours"}})
        renamed = await reader.next()
        await ada.patch(f"/api/events/{event['id']}", {"event": {"body": "Bring *water*."}})
        rewritten = await reader.next()
        await sign_up(service, other, "ann")
        await sign_up(service, event, "bob")
        after = await reader.next()

    assert [(event["event"], event["data"].keys()) for event in (renamed, rewritten)] == [("changed", {"at"})] * 2
    # A page names it in its address when it fetches itself, so that caches do not answer with the older page.
    assert renamed["data"]["at"] < rewritten["data"]["at"]
    assert numbers(after)["left"] == 9


async def test_readers_of_a_stream_get_different_times_to_fetch_a_changed_page(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "MAX_FETCHES_PER_SECOND", 1)
    ada = await service.organizer()
    event = await ada.create_event()
    organizer = f"http://events.test/organizers/{ada.slug}/stream"

    async with (
        read_stream(service.app, stream(event)) as reader,
        read_stream(service.app, stream(event)) as another,
        read_stream(service.app, organizer),
        read_stream(service.app, organizer) as of_organizer,
    ):
        alone, _ = await reader.next(), await another.next()
        await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Watercolours"}})
        messages = [await reader.next(), await of_organizer.next()]
        await sign_up(service, event, "ann")
        after = await reader.next()

    assert "spread" not in alone["data"]
    assert [(message["event"], message["data"]["spread"]) for message in messages] == [("changed", 2.0)] * 2
    assert after["data"]["spread"] == 2.0


async def test_the_stream_of_a_framed_form_sends_its_card_and_form_only(service: Service) -> None:
    event = await (await service.organizer()).create_event()

    async with read_stream(service.app, stream(event).replace("/stream", "/embed/stream")) as reader:
        first = await reader.next()

    assert f'action="/events/{event["id"]}/embed"' in first["data"]["html"]
    assert 'id="places"' in first["data"]["html"]
    assert 'id="register_bar"' not in first["data"]["html"]
    assert f'href="/events/{event["id"]}#order" target="_top"' in first["data"]["html"]


async def test_a_form_received_by_a_stream_can_be_submitted(service: Service) -> None:
    event = await (await service.organizer()).create_event()
    async with read_stream(service.app, stream(event)) as reader:
        html = (await reader.next())["data"]["html"]

    visitor = Visitor(service, framed=False)
    form_token = html.partition('name="token" value="')[2].partition('"')[0]
    answer = await visitor.post(event["id"], token=form_token, email="ann@example.com", name="")

    assert answer.status_code == 303, answer.text


async def test_the_stream_of_an_event_that_is_cancelled_ends(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    async with read_stream(service.app, stream(event)) as reader:
        await reader.next()
        await ada.delete(f"/api/events/{event['id']}")
        last, end = await next_numbers(reader), await reader.next()
        await reader.wait_until_closed()

    assert (last["data"]["status"], end["event"]) == ("cancelled", "end")
    assert "This event is cancelled." in last["data"]["html"]


async def test_the_stream_of_an_event_ends_when_it_begins(service: Service) -> None:
    event = await (await service.organizer()).create_event()

    async with read_stream(service.app, stream(event)) as reader:
        await reader.next()
        await service.run_sql("update events set datetime = now() + interval '1 second'")
        assert (await reader.next())["event"] == "changed"
        last = await reader.next()
        end = await reader.next()
        await reader.wait_until_closed()

    assert (last["data"]["status"], end["event"]) == ("expired", "end")


async def test_an_event_that_does_not_exist_has_no_stream(service: Service) -> None:
    for path in ("/events/4711/stream", "/events/none/stream", "/events/4711/embed/stream"):
        answer = await service.http.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT"])
async def test_the_stream_of_an_event_allows_get_only(service: Service, method: str) -> None:
    event = await (await service.organizer()).create_event()

    response = await service.http.request(method, stream(event))

    assert (response.status_code, response.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    ("limit", "status", "message"),
    [
        ({"streams_per_address": 2}, 429, "At most 2 streams from one address may be open."),
        ({"max_streams": 2}, 503, "Too many streams are open."),
    ],
)
async def test_more_streams_than_may_be_open_are_refused_until_one_ends(
    settings: Settings, limit: dict[str, int], status: int, message: str
) -> None:
    async with running_events(settings.model_copy(update=limit)) as service:
        event = await (await service.organizer()).create_event()
        async with read_stream(service.app, stream(event)):
            async with read_stream(service.app, stream(event)), read_stream(service.app, stream(event)) as refusal:
                assert refusal.status == status
                assert int(refusal.headers["retry-after"]) > 0
                assert message in refusal.sent
                assert (await service.http.get(event["public_url"])).status_code == 200
            async with read_stream(service.app, stream(event)) as again:
                assert again.status == 200


async def test_an_address_with_many_streams_gives_room_to_others(settings: Settings) -> None:
    async with (
        running_events(settings.model_copy(update={"max_streams": 4})) as service,
        contextlib.AsyncExitStack() as stack,
    ):
        event = await (await service.organizer()).create_event()

        async def opened(client: str) -> Stream:
            return await stack.enter_async_context(read_stream(service.app, stream(event), client=client))

        crowd = [await opened("203.0.113.1") for _ in range(4)]
        others = [await opened(f"198.51.100.{number}") for number in range(3)]

        assert [reader.status for reader in others] == [200] * 3
        for reader in crowd[1:]:
            await reader.wait_until_closed()
        assert (await opened("203.0.113.1")).status == 503
        assert (await opened("198.51.100.9")).status == 503


async def next_event(lines: AsyncIterator[str]) -> Event:
    """The next event of a stream over HTTP."""
    text: list[str] = []
    async for line in lines:
        if line:
            text.append(line)
        elif (event := parse_event("\n".join(text))) and "data" in event:
            return event
        else:
            text = []
    raise AssertionError("the stream has ended")


async def test_a_registration_in_one_process_is_streamed_by_another_until_that_stops(
    own_service: Service, tmp_path: Path
) -> None:
    ada = await own_service.organizer()
    event = await ada.create_event(capacity=2)
    async with httpx2.AsyncClient(timeout=15) as http:
        with running_processes(own_service.database.url, tmp_path, 2) as (one, two):
            async with http.stream("GET", f"{one.url}/events/{event['id']}/stream") as opened:
                lines = opened.aiter_lines()
                assert numbers(await next_event(lines))["left"] == 2
                body = {"registration": {"event_id": event["id"], "email": "ann@example.com"}}
                await http.post(f"{two.url}/api/registrations", json=body, headers={"X-API-Key": ada.key or ""})
                assert numbers(await next_event(lines))["left"] == 1

                began = time.monotonic()
                assert await asyncio.to_thread(one.stop) == 143
                assert time.monotonic() - began < 2
                assert [line async for line in lines if line.startswith("data:")] == []
