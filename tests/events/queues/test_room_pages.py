"""The texts of the waiting-room page: the length of the wait, and what it says when there is none."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.events.queues import room
from holdfast.kit.pages.language import ENGLISH, GERMAN
from tests.events.queues.browser import RoomBrowser, room_position, room_state
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service

PAST = "2000-01-01T00:00:00Z"


async def test_a_page_looks_again_by_itself_without_scripts(queue: QueueScene) -> None:
    await queue.join(*(f"visitor{number}" for number in range(3)))
    browser = RoomBrowser(queue)

    for page in (await browser.look(), await browser.look()):
        again = re.search(r'<noscript><meta http-equiv="refresh" content="(\d+)"></noscript>', page.text)
        assert again
        assert 1 <= int(again[1]) <= 5


@pytest.mark.parametrize(("wait", "least", "most"), [(1, 2, 2), (4, 4, 4), (30, 4, 6), (100, 12, 18), (4000, 51, 69)])
def test_the_longer_the_wait_the_longer_a_page_rests(wait: int, least: int, most: int) -> None:
    rests = {room.refresh_seconds(wait) for _ in range(200)}

    assert least <= min(rests)
    assert max(rests) <= most


@pytest.mark.parametrize(
    ("seconds", "words", "german"),
    [
        (0, "a minute", "einer Minute"),
        (60, "a minute", "einer Minute"),
        (61, "2 minutes", "2 Minuten"),
        (3540, "59 minutes", "59 Minuten"),
        (3541, "an hour", "einer Stunde"),
        (3901, "an hour and 10 minutes", "einer Stunde und 10 Minuten"),
        (7200, "2 hours", "2 Stunden"),
        (86_200, "a day", "einem Tag"),
        (86_400, "a day", "einem Tag"),
        (86_401, "a day and an hour", "einem Tag und einer Stunde"),
        (90_000, "a day and an hour", "einem Tag und einer Stunde"),
        (200_000, "2 days and 8 hours", "2 Tagen und 8 Stunden"),
        (259_200, "3 days", "3 Tagen"),
        (86_400_000, "1,000 days", "1.000 Tagen"),
    ],
)
def test_a_wait_is_rounded_up_in_words(seconds: int, words: str, german: str) -> None:
    assert (room.wait_in_words(seconds, ENGLISH), room.wait_in_words(seconds, GERMAN)) == (words, german)


async def test_a_paused_queue_says_so_and_keeps_the_place(queue: QueueScene) -> None:
    browser, newcomer = RoomBrowser(queue), RoomBrowser(queue)
    await browser.line_up()
    await queue.change(active=False)

    page = await browser.look()
    assert (room_state(page), room_position(page)) == ("paused", 1)
    assert re.search(r"paused the waiting room on <time [^>]*>\w+ \d+, \d{4}, \d+:\d\d\s[AP]M\sUTC</time>", page.text)
    assert "progressbar" not in page.text
    assert "Your turn comes" not in page.text
    refusal = await newcomer.line_up()
    assert (refusal.status_code, room_state(refusal)) == (503, "closed")
    await queue.change(active=True)
    assert room_position(await newcomer.look()) == 2


async def test_a_full_queue_says_so_until_there_is_a_place(service: Service) -> None:
    queue = await open_queue(service, max_queue_size=1)
    await queue.join("ann")
    browser = RoomBrowser(queue)

    page = await browser.line_up()
    assert (page.status_code, room_state(page)) == (503, "full")
    await queue.tick()
    assert await browser.state() == "waiting"


async def test_before_the_beginning_the_page_says_when_it_is(service: Service) -> None:
    starts_at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    queue = await open_queue(service, starts_at=starts_at.isoformat())

    page = await RoomBrowser(queue).line_up()

    assert (room_state(page), room_position(page)) == ("before", 1)
    assert f'datetime="{starts_at:%Y-%m-%dT%H:%M:%SZ}"' in page.text


async def test_a_paused_queue_promises_no_wait_before_the_beginning_either(service: Service) -> None:
    queue = await open_queue(service, starts_at=(datetime.now(UTC) + timedelta(days=3)).isoformat())
    browser = RoomBrowser(queue)
    before = await browser.line_up()
    await queue.change(active=False)

    assert "Your turn comes within 3 days" in before.text
    assert "Your turn comes" not in (await browser.look()).text


async def test_a_page_says_so_when_the_end_will_come_before_the_turn(service: Service) -> None:
    ends_at = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    queue = await open_queue(service, release_rate=1, ends_at=ends_at)
    early, late = RoomBrowser(queue), RoomBrowser(queue)
    first = await early.line_up()
    await queue.join(*(f"visitor{number}" for number in range(30)))

    assert "before your turn" not in first.text
    assert "before your turn" in (await late.line_up()).text


async def test_the_page_of_an_ended_queue_says_that_it_has_ended(queue: QueueScene) -> None:
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.change(ends_at=(datetime.now(UTC) - timedelta(seconds=1)).isoformat())

    assert await browser.state() == "ended"
    assert room_state(await RoomBrowser(queue).line_up()) == "ended"


async def test_the_page_of_an_ended_queue_leads_to_its_site_and_to_the_organizer(service: Service) -> None:
    ada = await service.organizer()
    queue = await open_queue(service, ada, target_url="https://shop.example.com/drop?id=1", ends_at=PAST)

    page = await RoomBrowser(queue).line_up()

    assert re.findall(r'<a class="button[^"]*" href="([^"]*)"', page.text) == [
        "https://shop.example.com",
        f"/organizers/{ada.slug}",
    ]
    assert 'Look on <strong dir="ltr">shop.example.com</strong> for what comes next.' in page.text


async def test_the_page_of_an_ended_queue_before_an_event_says_what_is_left_and_leads_on(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    queue = await open_queue(service, ada, target_url=None, event_id=event["id"], ends_at=PAST)

    page = await RoomBrowser(queue).line_up()

    assert re.findall(r'<a class="button[^"]*" href="([^"]*)"', page.text) == [
        f"/events/{event['id']}",
        f"/organizers/{ada.slug}",
    ]
    assert (
        f"{event['capacity']} seats are left. If the organizer gives them out, the page of the event shows it."
        in page.text
    )


async def test_the_page_of_an_ended_queue_names_no_site_of_an_unconfirmed_organizer(service: Service) -> None:
    stranger = await service.organizer("Victim Bank", is_proved=False)
    queue = await open_queue(service, stranger, target_url="https://bank.example.com", ends_at=PAST)

    page = await RoomBrowser(queue).line_up()

    assert room_state(page) == "ended"
    assert "bank.example.com" not in page.text
    assert "Victim Bank" not in page.text
    assert "Please ask the organizer what happens next." in page.text


async def test_a_deleted_or_unknown_queue_has_no_page(queue: QueueScene) -> None:
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.ada.delete(queue.path)

    for path in (browser.path, "/queues/4711", "/queues/x", "/queues/0", "/queues/-1", f"/queues/{'9' * 40}"):
        for end in ("", "/embed"):
            page = await queue.service.http.get(f"{path}{end}")
            assert (page.status_code, room_state(page)) == (404, "gone")
    for method in ("GET", "POST"):
        page = await browser.look(method)
        assert (page.status_code, room_state(page)) == (404, "gone")


@pytest.mark.usefixtures("own_service")
async def test_without_its_database_the_page_asks_for_patience(queue: QueueScene) -> None:
    browser = RoomBrowser(queue)
    await browser.look()
    await queue.service.database.pool.close()

    page = await browser.look()

    assert (page.status_code, room_state(page)) == (503, "busy")
    assert "Traceback" not in page.text


async def test_assets_of_the_waiting_room_are_immutable_under_versioned_addresses(queue: QueueScene) -> None:
    page = (await queue.service.http.get(f"/queues/{queue.id}")).text
    addresses = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page)

    assert len(addresses) == 2
    for address in addresses:
        response = await queue.service.http.get(address)
        assert response.status_code == 200
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["content-type"].split(";")[0] in {"text/css", "text/javascript", "image/svg+xml"}
