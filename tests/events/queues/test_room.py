"""The waiting-room page gives a place to a browser with its cookie, not to a caller who knows a name."""

from urllib.parse import parse_qs, urlsplit

from holdfast.events.queues import room
from holdfast.events.settings import Settings
from tests.events.queues.browser import RoomBrowser, room_position, room_state
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service, running_events


async def test_a_browser_lines_up_by_looking_and_watches_its_position_fall(queue: QueueScene) -> None:
    await queue.join("ann", "ben")
    browser = RoomBrowser(queue)

    first = await browser.line_up()
    assert (room_state(first), room_position(first), await queue.length()) == ("waiting", 3, 3)
    await queue.tick()
    assert room_position(await browser.look()) == 2
    assert await queue.length() == 2


async def test_a_browser_that_reloads_or_comes_back_keeps_its_place(queue: QueueScene) -> None:
    browser, other = RoomBrowser(queue), RoomBrowser(queue)
    await browser.line_up()
    await other.line_up()

    assert [room_position(await browser.look()) for _ in range(5)] == [1] * 5
    assert room_position(await other.look()) == 2


async def test_a_client_that_keeps_no_cookie_takes_no_place(queue: QueueScene) -> None:
    for _ in range(5):
        page = await queue.service.http.get(f"/queues/{queue.id}")
        assert (page.status_code, room_state(page)) == (200, "arriving")
        queue.service.http.cookies.clear()

    assert await queue.length() == 0


async def test_a_head_request_takes_no_place(queue: QueueScene) -> None:
    browser = RoomBrowser(queue)
    await browser.look()

    assert (await browser.look("HEAD")).status_code == 200
    assert await queue.length() == 0


async def test_a_visitor_whose_turn_it_is_is_sent_on_with_a_token(service: Service) -> None:
    queue = await open_queue(service, target_url="https://shop.example/sale?a=1#top")
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.tick()

    sent = await browser.look()

    assert sent.status_code == 303
    target = urlsplit(sent.headers["location"])
    assert (target.netloc, target.path, target.fragment) == ("shop.example", "/sale", "top")
    assert sent.headers["referrer-policy"] == "same-origin"
    assert sent.headers["cache-control"] == "no-store"
    [token] = parse_qs(target.query)["queue_token"]
    data = (await queue.verify(token)).json()["data"]
    assert data["visitor_id"] == room.visitor_of(browser.cookie[1])
    assert (await browser.look()).headers["location"] == sent.headers["location"]


async def test_a_request_with_the_name_of_another_visitor_is_not_accepted(queue: QueueScene) -> None:
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.join("ann")
    name, secret = browser.cookie
    visitor = room.visitor_of(secret)
    await queue.tick(times=2)
    assert (await queue.status(visitor))["reason"] == "released"

    for query in (f"?visitor_id={visitor}", "?visitor_id=ann", f"?{name}={secret}"):
        page = await queue.service.http.get(f"/queues/{queue.id}{query}")
        assert (page.status_code, room_state(page)) == (200, "arriving")
        queue.service.http.cookies.clear()
    for cookie in (visitor, "ann", f"{secret}x", secret[:-1], "", '"' + secret + '"x', "../ann", secret[::-1]):
        page = await queue.service.http.get(f"/queues/{queue.id}", headers={"Cookie": f"{name}={cookie}"})
        assert page.status_code == 200
        assert room_state(page) in {"arriving", "waiting"}
        assert "queue_token" not in page.text
        queue.service.http.cookies.clear()


async def test_the_name_of_a_visitor_does_not_reveal_the_secret_of_the_cookie(queue: QueueScene) -> None:
    browser = RoomBrowser(queue)
    await browser.line_up()

    _, secret = browser.cookie
    assert secret not in room.visitor_of(secret)
    ((stored,),) = await queue.service.run_sql("select visitor_id from queue_visitors")
    assert stored == room.visitor_of(secret)


async def test_a_cookie_of_one_queue_is_ignored_by_another(queue: QueueScene, service: Service) -> None:
    other = await open_queue(service, queue.ada)
    browser = RoomBrowser(queue)
    await browser.line_up()
    browser.path = f"/queues/{other.id}"

    assert await browser.state() == "arriving"


async def test_a_visitor_who_missed_the_turn_takes_a_new_place_with_a_button(queue: QueueScene) -> None:
    browser = RoomBrowser(queue)
    await browser.line_up()
    await queue.join("ann")
    await queue.tick()
    await queue.pass_time(11 * 60)

    assert [await browser.state() for _ in range(2)] == ["missed"] * 2
    again = await browser.look("POST")
    assert (again.status_code, again.headers["location"]) == (303, browser.path)
    assert room_position(await browser.look()) == 2


async def test_an_address_gets_a_limited_number_of_places_a_minute(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"room_joins_per_minute": 3})) as service:
        queue = await open_queue(service)
        browsers = [RoomBrowser(queue) for _ in range(4)]
        pages = [await browser.line_up() for browser in browsers]

        assert [room_state(page) for page in pages] == ["waiting"] * 3 + ["crowded"]
        assert pages[-1].status_code == 429
        assert await browsers[0].state() == "waiting"
        assert await queue.length() == 3
