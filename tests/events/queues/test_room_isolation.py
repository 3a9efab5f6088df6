"""The waiting-room page keeps its cookie to itself, is framed only where it may be, and runs no foreign code."""

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape

from holdfast.events.settings import Settings
from holdfast.kit.pages.layout import CONSOLE_STYLE
from tests.events.queues.browser import RoomBrowser, room_state
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service, running_events


async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"base_url": "https://events.test"})) as service:
        queue = await open_queue(service)
        page = await service.http.get(f"/queues/{queue.id}")
        framed = await service.http.get(f"/queues/{queue.id}/embed")

    name, *attributes = page.headers["set-cookie"].split("; ")
    assert name.startswith(f"__Host-waiting_room_{queue.id}=")
    assert attributes == ["Path=/", "Max-Age=2592000", "HttpOnly", "Secure", "SameSite=Lax"]
    name, *attributes = framed.headers["set-cookie"].split("; ")
    assert name.startswith(f"__Host-framed_waiting_room_{queue.id}=")
    assert attributes == ["Path=/", "Max-Age=2592000", "HttpOnly", "Secure", "SameSite=None", "Partitioned"]


async def test_only_the_page_made_for_it_may_be_framed_and_none_runs_foreign_code(queue: QueueScene) -> None:
    page = await queue.service.http.get(f"/queues/{queue.id}")
    framed = await queue.service.http.get(f"/queues/{queue.id}/embed")

    for response, ancestors in ((page, "'none'"), (framed, "*")):
        policy = dict(
            directive.strip().split(" ", 1) for directive in response.headers["content-security-policy"].split(";")
        )
        assert policy["frame-ancestors"] == ancestors
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        [style] = re.findall(r"<style>(.*?)</style>", response.text, re.DOTALL)
        hashes = [b64encode(sha256(css.encode()).digest()).decode() for css in (style, CONSOLE_STYLE)]
        assert policy["style-src"] == f"'self' 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'"
        assert not re.search(r"<script(?! src)|style=|\son\w+=|https?://(?!www\.w3\.org)", response.text)
    assert page.headers["x-frame-options"] == "DENY"
    assert "x-frame-options" not in framed.headers


async def test_the_way_in_is_a_link_out_of_the_frame(queue: QueueScene) -> None:
    browser = RoomBrowser(queue, f"/queues/{queue.id}/embed")
    await browser.line_up()
    await queue.tick()

    page = await browser.look()

    assert (page.status_code, room_state(page)) == (200, "released")
    link = re.search(r'<a [^>]*href="(https://shop\.example/sale\?queue_token=([^"]+))" target="_top"', page.text)
    assert link
    assert (await queue.verify(link[2])).json()["valid"] is True
    assert 'data-origin="https://shop.example"' in page.text


async def test_texts_of_an_organizer_are_escaped_on_the_waiting_room_page(service: Service) -> None:
    queue = await open_queue(service, title="<b>Sale</b>", description='<script>alert("1")</script> & more')

    page = await RoomBrowser(queue).line_up()

    assert "<b>" not in page.text
    assert "<script>alert" not in page.text
    assert '<script>alert("1")</script> & more' in unescape(page.text)
