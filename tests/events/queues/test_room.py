"""The waiting-room page: a place for a browser, and for nobody who merely knows a name."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from holdfast.events.queues import room
from holdfast.events.settings import Settings
from tests.events.queues.scene import Line, open_line
from tests.support import Service, running


class Browser:
    """Somebody who looks at a page and keeps its cookies."""

    def __init__(self, line: Line, path: str | None = None) -> None:
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(line.service.app), base_url="http://events.test")
        self.path = path or f"/queues/{line.id}"

    async def look(self, method: str = "GET") -> httpx2.Response:
        return await self.http.request(method, self.path)

    async def state(self) -> str:
        return state(await self.look())

    async def line_up(self) -> httpx2.Response:
        """Come, and look again once there is a cookie."""
        assert await self.state() == "arriving"
        return await self.look()

    @property
    def cookie(self) -> tuple[str, str]:
        [(name, value)] = dict(self.http.cookies).items()
        return name, value


def state(page: httpx2.Response) -> str:
    found = re.search(r'<main[^>]* data-state="(\w+)"', page.text)
    assert found, page.text
    return found[1]


def position(page: httpx2.Response) -> int:
    found = re.search(r'id="position"[^>]*>([\d,]+)<', page.text)
    assert found, page.text
    return int(found[1].replace(",", ""))


async def test_a_browser_lines_up_by_looking_and_watches_its_position_fall(line: Line) -> None:
    await line.join("ann", "ben")
    browser = Browser(line)

    first = await browser.line_up()
    assert (state(first), position(first), await line.length()) == ("waiting", 3, 3)
    await line.tick()
    assert position(await browser.look()) == 2
    assert await line.length() == 2


async def test_refreshing_or_coming_back_changes_nothing(line: Line) -> None:
    browser, other = Browser(line), Browser(line)
    await browser.line_up()
    await other.line_up()

    assert [position(await browser.look()) for _ in range(5)] == [1] * 5
    assert position(await other.look()) == 2


async def test_what_keeps_no_cookie_takes_no_place(line: Line) -> None:
    for _ in range(5):
        page = await line.service.http.get(f"/queues/{line.id}")
        assert (page.status_code, state(page)) == (200, "arriving")
        line.service.http.cookies.clear()

    assert await line.length() == 0


async def test_asking_for_the_headers_alone_takes_no_place(line: Line) -> None:
    browser = Browser(line)
    await browser.look()

    assert (await browser.look("HEAD")).status_code == 200
    assert await line.length() == 0


async def test_whose_turn_it_is_is_sent_on_with_a_token(service: Service) -> None:
    line = await open_line(service, target_url="https://shop.example/sale?a=1#top")
    browser = Browser(line)
    await browser.line_up()
    await line.tick()

    sent = await browser.look()

    assert sent.status_code == 303
    target = urlsplit(sent.headers["location"])
    assert (target.netloc, target.path, target.fragment) == ("shop.example", "/sale", "top")
    assert sent.headers["referrer-policy"] == "no-referrer"
    assert sent.headers["cache-control"] == "no-store"
    [token] = parse_qs(target.query)["queue_token"]
    data = (await line.verify(token)).json()["data"]
    assert data["visitor_id"] == room.visitor_of(browser.cookie[1])
    assert (await browser.look()).headers["location"] == sent.headers["location"]


async def test_a_request_that_names_somebody_else_is_not_believed(line: Line) -> None:
    browser = Browser(line)
    await browser.line_up()
    await line.join("ann")
    name, secret = browser.cookie
    visitor = room.visitor_of(secret)
    await line.tick(times=2)
    assert (await line.status(visitor))["reason"] == "released"

    for query in (f"?visitor_id={visitor}", "?visitor_id=ann", f"?{name}={secret}"):
        page = await line.service.http.get(f"/queues/{line.id}{query}")
        assert (page.status_code, state(page)) == (200, "arriving")
        line.service.http.cookies.clear()
    for cookie in (visitor, "ann", f"{secret}x", secret[:-1], "", '"' + secret + '"x', "../ann", secret[::-1]):
        page = await line.service.http.get(f"/queues/{line.id}", headers={"Cookie": f"{name}={cookie}"})
        assert page.status_code == 200
        assert state(page) in {"arriving", "waiting"}
        assert "queue_token" not in page.text
        line.service.http.cookies.clear()


async def test_the_name_of_a_visitor_does_not_give_the_secret_away(line: Line) -> None:
    browser = Browser(line)
    await browser.line_up()

    _, secret = browser.cookie
    assert secret not in room.visitor_of(secret)
    ((stored,),) = await line.service.run_sql("select visitor_id from queue_visitors")
    assert stored == room.visitor_of(secret)


async def test_a_cookie_of_one_queue_is_none_of_another(line: Line, service: Service) -> None:
    other = await open_line(service, line.ada)
    browser = Browser(line)
    await browser.line_up()
    browser.path = f"/queues/{other.id}"

    assert await browser.state() == "arriving"


async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(settings: Settings) -> None:
    async with running(settings.model_copy(update={"base_url": "https://events.test"})) as service:
        line = await open_line(service)
        page = await service.http.get(f"/queues/{line.id}")
        framed = await service.http.get(f"/queues/{line.id}/embed")

    name, *attributes = page.headers["set-cookie"].split("; ")
    assert name.startswith(f"__Host-waiting_room_{line.id}=")
    assert attributes == ["Path=/", "Max-Age=2592000", "HttpOnly", "Secure", "SameSite=Lax"]
    name, *attributes = framed.headers["set-cookie"].split("; ")
    assert name.startswith(f"__Host-framed_waiting_room_{line.id}=")
    assert attributes == ["Path=/", "Max-Age=2592000", "HttpOnly", "Secure", "SameSite=None", "Partitioned"]


async def test_only_the_page_made_for_it_may_be_framed_and_none_runs_foreign_code(line: Line) -> None:
    page = await line.service.http.get(f"/queues/{line.id}")
    framed = await line.service.http.get(f"/queues/{line.id}/embed")

    for response, ancestors in ((page, "'none'"), (framed, "*")):
        policy = dict(each.strip().split(" ", 1) for each in response.headers["content-security-policy"].split(";"))
        assert policy["frame-ancestors"] == ancestors
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert not re.search(r"<style|<script(?! src)|style=|\son\w+=|https?://(?!www\.w3\.org)", response.text)
    assert page.headers["x-frame-options"] == "DENY"
    assert "x-frame-options" not in framed.headers


async def test_in_a_frame_the_way_in_is_a_link_out_of_the_frame(line: Line) -> None:
    browser = Browser(line, f"/queues/{line.id}/embed")
    await browser.line_up()
    await line.tick()

    page = await browser.look()

    assert (page.status_code, state(page)) == (200, "released")
    link = re.search(r'<a [^>]*href="(https://shop\.example/sale\?queue_token=([^"]+))" target="_top"', page.text)
    assert link
    assert (await line.verify(link[2])).json()["valid"] is True
    assert 'data-origin="https://shop.example"' in page.text


async def test_a_page_looks_again_by_itself_without_scripts(line: Line) -> None:
    await line.join(*(f"visitor{number}" for number in range(3)))
    browser = Browser(line)

    for page in (await browser.look(), await browser.look()):
        again = re.search(r'<noscript><meta http-equiv="refresh" content="(\d+)"></noscript>', page.text)
        assert again
        assert 1 <= int(again[1]) <= 5


@pytest.mark.parametrize(("wait", "least", "most"), [(1, 2, 2), (4, 4, 4), (30, 4, 6), (100, 12, 18), (4000, 51, 69)])
def test_the_longer_the_wait_the_longer_a_page_rests(wait: int, least: int, most: int) -> None:
    rests = {room.seconds_to_look_again(wait) for _ in range(200)}

    assert least <= min(rests)
    assert max(rests) <= most


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "a minute"),
        (60, "a minute"),
        (61, "2 minutes"),
        (3540, "59 minutes"),
        (3541, "an hour"),
        (3901, "an hour and 10 minutes"),
        (7200, "2 hours"),
        (90_000, "25 hours"),
    ],
)
def test_a_wait_is_said_rounded_up(seconds: int, words: str) -> None:
    assert room.in_words(seconds) == words


async def test_a_paused_queue_says_so_and_keeps_the_place(line: Line) -> None:
    browser, newcomer = Browser(line), Browser(line)
    await browser.line_up()
    await line.change(active=False)

    page = await browser.look()
    assert (state(page), position(page)) == ("paused", 1)
    assert "paused it at" in page.text
    refused = await newcomer.line_up()
    assert (refused.status_code, state(refused)) == (503, "closed")
    await line.change(active=True)
    assert position(await newcomer.look()) == 2


async def test_a_full_queue_says_so_until_there_is_a_place(service: Service) -> None:
    line = await open_line(service, max_queue_size=1)
    await line.join("ann")
    browser = Browser(line)

    page = await browser.line_up()
    assert (page.status_code, state(page)) == (503, "full")
    await line.tick()
    assert await browser.state() == "waiting"


async def test_before_the_beginning_the_page_says_when_it_is(service: Service) -> None:
    starts_at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    line = await open_line(service, starts_at=starts_at.isoformat())

    page = await Browser(line).line_up()

    assert (state(page), position(page)) == ("before", 1)
    assert f'datetime="{starts_at:%Y-%m-%dT%H:%M:%SZ}"' in page.text


async def test_a_page_says_so_when_the_end_will_come_before_the_turn(service: Service) -> None:
    ends_at = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    line = await open_line(service, release_rate=1, ends_at=ends_at)
    early, late = Browser(line), Browser(line)
    first = await early.line_up()
    await line.join(*(f"visitor{number}" for number in range(30)))

    assert "before your turn" not in first.text
    assert "before your turn" in (await late.line_up()).text


async def test_an_ended_queue_says_so_to_everybody(line: Line) -> None:
    browser = Browser(line)
    await browser.line_up()
    await line.change(ends_at=(datetime.now(UTC) - timedelta(seconds=1)).isoformat())

    assert await browser.state() == "ended"
    assert state(await Browser(line).line_up()) == "ended"


async def test_who_missed_the_turn_takes_a_new_place_by_asking_for_it(line: Line) -> None:
    browser = Browser(line)
    await browser.line_up()
    await line.join("ann")
    await line.tick()
    await line.pass_time(11 * 60)

    assert [await browser.state() for _ in range(2)] == ["missed"] * 2
    again = await browser.look("POST")
    assert (again.status_code, again.headers["location"]) == (303, browser.path)
    assert position(await browser.look()) == 2


async def test_a_deleted_or_unknown_queue_has_no_page(line: Line) -> None:
    browser = Browser(line)
    await browser.line_up()
    await line.ada.delete(line.path)

    for path in (browser.path, "/queues/4711", "/queues/x", "/queues/0", "/queues/-1", f"/queues/{'9' * 40}"):
        for end in ("", "/embed"):
            page = await line.service.http.get(f"{path}{end}")
            assert (page.status_code, state(page)) == (404, "gone")
    assert (await browser.look()).status_code == 404


async def test_what_an_organizer_wrote_is_shown_as_text(service: Service) -> None:
    line = await open_line(service, title="<b>Sale</b>", description='<script>alert("1")</script> & more')

    page = await Browser(line).line_up()

    assert "<b>" not in page.text
    assert "<script>alert" not in page.text
    assert '<script>alert("1")</script> & more' in unescape(page.text)


async def test_an_address_gets_so_many_places_a_minute(settings: Settings) -> None:
    async with running(settings.model_copy(update={"room_joins_per_minute": 3})) as service:
        line = await open_line(service)
        browsers = [Browser(line) for _ in range(4)]
        pages = [await browser.line_up() for browser in browsers]

        assert [state(page) for page in pages] == ["waiting"] * 3 + ["crowded"]
        assert pages[-1].status_code == 429
        assert await browsers[0].state() == "waiting"
        assert await line.length() == 3


async def test_without_its_database_the_page_asks_for_patience(line: Line) -> None:
    browser = Browser(line)
    await browser.look()
    await line.service.database.pool.close()

    page = await browser.look()

    assert (page.status_code, state(page)) == (503, "busy")
    assert "Traceback" not in page.text


async def test_what_pages_need_is_kept_for_good_under_an_address_that_changes_with_it(line: Line) -> None:
    page = (await line.service.http.get(f"/queues/{line.id}")).text
    addresses = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page)

    assert len(addresses) == 3
    for address in addresses:
        response = await line.service.http.get(address)
        assert response.status_code == 200
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["content-type"].split(";")[0] in {"text/css", "text/javascript", "image/svg+xml"}
