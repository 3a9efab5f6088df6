"""The waiting-room page gives a place to a browser with its cookie, not to a caller who knows a name."""

from urllib.parse import parse_qs, urlsplit

from holdfast.events.queues import room
from holdfast.events.settings import Settings
from tests.events.queues.browser import Browser, room_position, room_state
from tests.events.queues.scene import QueueScene, open_line
from tests.support import Service, running


async def test_a_browser_lines_up_by_looking_and_watches_its_position_fall(line: QueueScene) -> None:
    await line.join("ann", "ben")
    browser = Browser(line)

    first = await browser.line_up()
    assert (room_state(first), room_position(first), await line.length()) == ("waiting", 3, 3)
    await line.tick()
    assert room_position(await browser.look()) == 2
    assert await line.length() == 2


async def test_a_browser_that_reloads_or_comes_back_keeps_its_place(line: QueueScene) -> None:
    browser, other = Browser(line), Browser(line)
    await browser.line_up()
    await other.line_up()

    assert [room_position(await browser.look()) for _ in range(5)] == [1] * 5
    assert room_position(await other.look()) == 2


async def test_a_client_that_keeps_no_cookie_takes_no_place(line: QueueScene) -> None:
    for _ in range(5):
        page = await line.service.http.get(f"/queues/{line.id}")
        assert (page.status_code, room_state(page)) == (200, "arriving")
        line.service.http.cookies.clear()

    assert await line.length() == 0


async def test_a_head_request_takes_no_place(line: QueueScene) -> None:
    browser = Browser(line)
    await browser.look()

    assert (await browser.look("HEAD")).status_code == 200
    assert await line.length() == 0


async def test_a_visitor_whose_turn_it_is_is_sent_on_with_a_token(service: Service) -> None:
    line = await open_line(service, target_url="https://shop.example/sale?a=1#top")
    browser = Browser(line)
    await browser.line_up()
    await line.tick()

    sent = await browser.look()

    assert sent.status_code == 303
    target = urlsplit(sent.headers["location"])
    assert (target.netloc, target.path, target.fragment) == ("shop.example", "/sale", "top")
    assert sent.headers["referrer-policy"] == "same-origin"
    assert sent.headers["cache-control"] == "no-store"
    [token] = parse_qs(target.query)["queue_token"]
    data = (await line.verify(token)).json()["data"]
    assert data["visitor_id"] == room.visitor_of(browser.cookie[1])
    assert (await browser.look()).headers["location"] == sent.headers["location"]


async def test_a_request_with_the_name_of_another_visitor_is_not_accepted(line: QueueScene) -> None:
    browser = Browser(line)
    await browser.line_up()
    await line.join("ann")
    name, secret = browser.cookie
    visitor = room.visitor_of(secret)
    await line.tick(times=2)
    assert (await line.status(visitor))["reason"] == "released"

    for query in (f"?visitor_id={visitor}", "?visitor_id=ann", f"?{name}={secret}"):
        page = await line.service.http.get(f"/queues/{line.id}{query}")
        assert (page.status_code, room_state(page)) == (200, "arriving")
        line.service.http.cookies.clear()
    for cookie in (visitor, "ann", f"{secret}x", secret[:-1], "", '"' + secret + '"x', "../ann", secret[::-1]):
        page = await line.service.http.get(f"/queues/{line.id}", headers={"Cookie": f"{name}={cookie}"})
        assert page.status_code == 200
        assert room_state(page) in {"arriving", "waiting"}
        assert "queue_token" not in page.text
        line.service.http.cookies.clear()


async def test_the_name_of_a_visitor_does_not_reveal_the_secret_of_the_cookie(line: QueueScene) -> None:
    browser = Browser(line)
    await browser.line_up()

    _, secret = browser.cookie
    assert secret not in room.visitor_of(secret)
    ((stored,),) = await line.service.run_sql("select visitor_id from queue_visitors")
    assert stored == room.visitor_of(secret)


async def test_a_cookie_of_one_queue_is_ignored_by_another(line: QueueScene, service: Service) -> None:
    other = await open_line(service, line.ada)
    browser = Browser(line)
    await browser.line_up()
    browser.path = f"/queues/{other.id}"

    assert await browser.state() == "arriving"


async def test_a_visitor_who_missed_the_turn_takes_a_new_place_with_a_button(line: QueueScene) -> None:
    browser = Browser(line)
    await browser.line_up()
    await line.join("ann")
    await line.tick()
    await line.pass_time(11 * 60)

    assert [await browser.state() for _ in range(2)] == ["missed"] * 2
    again = await browser.look("POST")
    assert (again.status_code, again.headers["location"]) == (303, browser.path)
    assert room_position(await browser.look()) == 2


async def test_an_address_gets_a_limited_number_of_places_a_minute(settings: Settings) -> None:
    async with running(settings.model_copy(update={"room_joins_per_minute": 3})) as service:
        line = await open_line(service)
        browsers = [Browser(line) for _ in range(4)]
        pages = [await browser.line_up() for browser in browsers]

        assert [room_state(page) for page in pages] == ["waiting"] * 3 + ["crowded"]
        assert pages[-1].status_code == 429
        assert await browsers[0].state() == "waiting"
        assert await line.length() == 3
