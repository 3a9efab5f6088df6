"""A waiting room before an event lets in those whom it has released, and each of them registers one person."""

import asyncio
import re

import pytest

from holdfast.events.queues.event_releases import ReleaseTokenReader
from tests.events.queues.guarded import GuestBrowser, guard, page_text
from tests.events.queues.queue_scene import open_queue
from tests.helpers.event_visitor import page_state
from tests.helpers.events_service import Service


async def test_a_visitor_waits_is_let_in_and_registers(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)

    page = await guest.look()
    assert page_state(page) == "queue"
    assert "so that everyone gets a fair turn. Nobody is waiting now." in page_text(page)
    assert 'name="email"' not in page.text

    page = await guest.go_in()
    assert (page.status_code, page_state(page)) == (200, "open")
    assert "It is your turn. You can register one person until" in page_text(page)
    assert page.headers["cache-control"] == "no-store"

    answer = await guest.send(page, "ann@example.com")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/registrations/")
    assert await guarded.registered_addresses() == {"ann@example.com"}


async def test_a_frame_leads_through_the_room_in_the_same_frame(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded, framed=True)

    assert page_state(await guest.look()) == "queue"
    page = await guest.go_in()
    assert page_state(page) == "open"
    assert (await guest.send(page, "ann@example.com")).status_code == 303
    assert await guarded.registered_addresses() == {"ann@example.com"}


@pytest.mark.parametrize("framed", [False, True])
async def test_a_form_without_a_release_stores_nothing(service: Service, framed: bool) -> None:
    guarded = await guard(service)
    released, stranger = GuestBrowser(guarded, framed=framed), GuestBrowser(guarded, framed=framed)
    page = await released.go_in()

    answer = await stranger.send(page, "eve@example.com")

    assert (answer.status_code, page_state(answer)) == (403, "queue")
    assert "please go to the waiting room first" in page_text(answer)
    assert await guarded.registered_addresses() == set()


async def test_one_release_registers_one_person(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)
    page = await guest.go_in()
    cookies = dict(guest.http.cookies)
    assert (await guest.send(page, "ann@example.com")).status_code == 303

    guest.http.cookies.update(cookies)
    answer = await guest.send(page, "ben@example.com")

    assert (answer.status_code, page_state(answer)) == (403, "queue")
    assert "your turn is over, or was used" in page_text(answer)
    assert await guarded.registered_addresses() == {"ann@example.com"}


async def test_a_form_that_is_sent_twice_registers_once_and_says_so_twice(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)
    page = await guest.go_in()
    cookies = dict(guest.http.cookies)
    secret = {"form_secret": "0123456789abcdef" * 2}

    first = await guest.send(page, "ann@example.com", **secret)
    guest.http.cookies.update(cookies)
    second = await guest.send(page, "ann@example.com", **secret)

    assert first.headers["location"] == second.headers["location"]
    assert await guarded.registered_addresses() == {"ann@example.com"}


async def test_forms_sent_at_once_with_one_release_register_one_person(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)
    page = await guest.go_in()

    answers = await asyncio.gather(*(guest.send(page, f"guest{number}@example.com") for number in range(20)))

    assert sorted(answer.status_code for answer in answers) == [303, *[403] * 19]
    assert len(await guarded.registered_addresses()) == 1


async def test_a_form_with_a_mistake_does_not_use_the_release_up(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)
    page = await guest.go_in()

    refusal = await guest.send(page, "no address")
    assert (refusal.status_code, page_state(refusal)) == (422, "open")
    assert (await guest.send(refusal, "ann@example.com")).status_code == 303


async def test_a_visitor_who_has_registered_takes_a_new_place_for_the_next_person(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)
    await guest.send(await guest.go_in(), "ann@example.com")

    assert (await guest.look(guest.released_path)).headers["location"] == guarded.path
    room = await guest.look(guest.room_path)
    assert "take a new place" in page_text(room)
    await guest.http.post(guest.room_path)
    await guarded.queue.tick()
    assert (await guest.send(await guest.enter(), "ben@example.com")).status_code == 303
    assert await guarded.registered_addresses() == {"ann@example.com", "ben@example.com"}


async def test_a_release_from_another_room_is_refused(service: Service) -> None:
    guarded = await guard(service)
    other = await guard(service, guarded.ada)
    guest, stranger = GuestBrowser(guarded), GuestBrowser(other)
    page = await stranger.go_in()
    [(name, token)] = [pair for pair in dict(stranger.http.cookies).items() if pair[0].endswith("event_release")]

    guest.http.cookies.set(name, token)
    assert (await guest.look(f"{guest.released_path}?queue_token={token}")).headers["location"] == guarded.path
    assert (await guest.send(page, "eve@example.com")).status_code == 403
    assert await guarded.registered_addresses() == set()


async def test_a_release_that_has_expired_is_refused(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)
    page = await guest.go_in()
    await service.run_sql("update queue_visitors set expires_at = now() where token_id is not null")

    assert (await guest.send(page, "ann@example.com")).status_code == 403
    assert await guarded.registered_addresses() == set()


async def test_a_release_token_is_read_only_with_its_signature_and_for_its_own_room(service: Service) -> None:
    guarded = await guard(service)
    await guarded.queue.join("ann")
    await guarded.queue.tick()
    token = await guarded.queue.token("ann")
    reader = ReleaseTokenReader(service.database)

    claims = await reader.read(token, guarded.queue.id)
    assert claims
    assert claims.sub == "ann"
    assert await reader.read(token, guarded.queue.id + 1) is None
    assert await reader.read(token[:-2] + "AA", guarded.queue.id) is None
    assert await reader.read("", guarded.queue.id) is None


async def test_cached_pages_of_a_guarded_event_are_the_same_for_all_visitors(service: Service) -> None:
    guarded = await guard(service)
    guest, stranger = GuestBrowser(guarded), GuestBrowser(guarded)
    await guest.go_in()

    mine, others = await guest.look(), await stranger.look()
    assert "public" in mine.headers["cache-control"]
    assert mine.content == others.content


async def test_a_full_or_cancelled_event_does_not_redirect_to_its_room(service: Service) -> None:
    guarded = await guard(service, capacity=1)
    await guarded.ada.register(guarded.id, email="ann@example.com")
    await service.settle()
    guest = GuestBrowser(guarded)
    assert page_state(await guest.look()) == "full"

    await guarded.ada.delete(f"/api/events/{guarded.id}")
    assert "to_waiting_room" not in (await guest.look()).text


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"active": False}, "The waiting room is paused at the moment."),
        ({"starts_at": "2030-01-01T00:00:00Z"}, "Registration begins on"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "Registration has ended."),
    ],
)
async def test_the_page_of_an_event_says_what_its_waiting_room_does(
    service: Service, fields: dict[str, object], says: str
) -> None:
    guarded = await guard(service)
    await guarded.queue.change(**fields)

    page = await GuestBrowser(guarded).look()

    assert page_state(page) == "queue"
    assert says in page_text(page)


async def test_the_page_of_an_event_whose_room_has_ended_counts_no_seats(service: Service) -> None:
    guarded = await guard(service)
    assert "seats left" in page_text(await GuestBrowser(guarded).look())

    await guarded.queue.change(ends_at="2020-01-01T00:00:00Z")
    await service.drop_caches()

    assert "seats left" not in page_text(await GuestBrowser(guarded).look())


async def test_an_event_without_its_room_is_open_again(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)
    assert (await guarded.event())["waiting_room_url"] == f"http://events.test/queues/{guarded.queue.id}"

    assert (await guarded.ada.delete(guarded.queue.path)).status_code == 204

    assert (await guarded.event())["waiting_room_url"] is None
    page = await guest.look()
    assert page_state(page) == "open"
    assert (await guest.send(page, "ann@example.com")).status_code == 303


async def test_the_number_of_waiting_visitors_is_on_the_page(service: Service) -> None:
    guarded = await guard(service)
    await guarded.queue.join("ann", "ben")
    await service.drop_caches()

    text = page_text(await GuestBrowser(guarded).look())

    assert re.search(r"2 people are waiting\.", text)
    assert "It would be your turn almost at once." in text


async def test_a_room_without_an_event_leads_to_its_own_site(service: Service) -> None:
    queue = await open_queue(service)
    fields = (await queue.ada.get(queue.path)).json()["data"]
    assert (fields["event_id"], fields["target_url"]) == (None, "https://shop.example/sale")
