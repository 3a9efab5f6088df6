"""The progress of a queue is one answer for all visitors, without a cookie, which caches may store."""

import re

import httpx2

from holdfast.kit.http.answers import BRIEF, LIVE
from tests.events.queues.browser import RoomBrowser, room_state
from tests.events.queues.queue_scene import QueueScene


def number(answer: httpx2.Response, name: str) -> str:
    match = re.search(rf' data-{name}="([^"]*)"', answer.text)
    assert match, answer.text
    return match[1]


async def test_a_waiting_page_has_its_ticket_and_polls_a_shared_answer(queue: QueueScene) -> None:
    await queue.join("ann", "ben")
    page = await RoomBrowser(queue).line_up()

    async def shared(language: str = "en") -> httpx2.Response:
        answer = await queue.service.http.get(number(page, "shared"), headers={"Accept-Language": language})
        assert (answer.headers["cache-control"].encode(), "set-cookie" in answer.headers) == (LIVE[1], False)
        return answer

    assert "<dt>You came as number</dt><dd>3 of 3</dd>" in page.text
    assert f'href="/verify#/log{queue.path.removeprefix("/api")}/proofs/3"' in page.text
    before = await shared()
    assert "<dt>You came as number</dt><dd>{number} of 3</dd>" in before.text
    assert f'href="/verify#/log{queue.path.removeprefix("/api")}/proofs/{{ticket}}"' in before.text
    assert (number(page, "ticket"), number(before, "serving"), number(before, "tickets")) == ("3", "0", "3")
    assert (room_state(before), number(before, "pace")) == ("waiting", "1.0")
    assert "<title>{position} · " in before.text
    assert "Your turn comes within {wait}." in before.text
    assert "Sie sind in höchstens {wait} an der Reihe." in (await shared("de")).text
    # It is a part of a page, without the style.
    assert len(before.content) < 2_500

    await queue.change(public_log=False)
    assert "/log/" not in (await shared()).text
    await queue.change(active=False)
    assert room_state(await shared()) == "paused"
    await queue.change(active=True, ends_at="2000-01-01T00:00:00Z")
    assert room_state(await shared()) == "ended"
    await queue.ada.delete(queue.path)
    gone = await queue.service.http.get(number(page, "shared"))
    assert (gone.status_code, room_state(gone), gone.headers["cache-control"].encode()) == (404, "gone", BRIEF[1])
