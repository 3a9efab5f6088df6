"""People who register, or wait in a waiting room, can save their receipt at any time; others cannot."""

import asyncio
import re
from pathlib import Path

import httpx2

from holdfast.events.log.keys import signing_key
from holdfast_verify.formats.signed_note import Signer
from tests.events.log.verification import verify
from tests.events.pages.own_registration import register_and_settle
from tests.events.queues.browser import RoomBrowser
from tests.events.queues.queue_scene import open_queue
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Service


def receipt_link(page: httpx2.Response) -> str:
    [link] = re.findall(r'href="([^"]*\?receipt)"', page.text)
    return str(httpx2.URL(str(page.url)).join(link))


async def findings(service: Service, saved: httpx2.Response, tmp_path: Path) -> list[str]:
    """What `holdfast verify` says of a saved file with the key of the service."""
    vkey = Signer("events.test/log/promises", await service.database.transact(signing_key)).vkey
    (tmp_path / "receipt.json").write_bytes(saved.content)
    code, report = await asyncio.to_thread(verify, tmp_path / "receipt.json", "--offline", "--key", vkey)
    assert code == (1 if report["findings"] else 0)
    return [report["checked"]["person"], *(finding["message"] for finding in report["findings"])]


async def test_a_form_and_a_mail_lead_to_the_receipt_as_long_as_the_registration_exists(
    service: Service, tmp_path: Path
) -> None:
    ada = await service.organizer()
    event, unlogged = await ada.create_event(), await ada.create_event(public_log=False)
    visitor = Visitor(service)
    outcome = await visitor.register(event["id"], "ann@example.com")
    # Even before the page offers it.
    unsettled = await visitor.http.get(f"{outcome}?receipt")
    ann, ben = await register_and_settle(service, ada, event, "ann", "ben", visitor=visitor)
    person = ann.rpartition("/")[2].split("-")[1]

    files = [await visitor.http.get(receipt_link(await visitor.http.get(path))) for path in (ann, outcome)]

    assert files[0].content == files[1].content
    assert unsettled.json()["status"] == "pending"
    assert files[0].json() == {**unsettled.json(), "number": 1, "status": "registered"}
    assert files[0].headers["content-disposition"] == f'attachment; filename="receipt-event-{event["id"]}.json"'
    assert files[0].headers["cache-control"] == "no-store"
    assert await findings(service, files[0], tmp_path) == [f"the receipt was made for the id {person}"]
    assert (await visitor.http.get(f"{ben}?receipt")).json()["receipt"] != files[0].json()["receipt"]
    assert (await visitor.http.get(f"{ann[:-1]}{'1' if ann[-1] == '0' else '0'}?receipt")).status_code == 404

    await ada.delete(f"/api/registrations/{event['id']}/{person}")
    assert (await visitor.http.get(f"{ann}?receipt")).status_code == 404
    [without] = await register_and_settle(service, ada, unlogged, "ann")
    assert "?receipt" not in (await visitor.http.get(without)).text
    assert (await visitor.http.get(f"{without}?receipt")).status_code == 404


async def test_a_waiting_room_gives_the_receipt_to_the_browser_with_the_cookie(
    service: Service, tmp_path: Path
) -> None:
    queue = await open_queue(service)
    path = f"/queues/{queue.id}"
    for browser in (RoomBrowser(queue), RoomBrowser(queue, f"{path}/embed")):
        saved = await browser.http.get(receipt_link(await browser.line_up()))
        assert saved.headers["content-disposition"] == f'attachment; filename="receipt-queue-{queue.id}.json"'
        [opened] = await findings(service, saved, tmp_path)
        assert opened.startswith("the receipt was made for the id room_")
    # What pages poll is the same for all who wait, in the frame too.
    assert 'href="?receipt"' in (await service.http.get(f"{path}/progress")).text

    stranger = await RoomBrowser(queue).http.get(f"{path}?receipt")
    assert (stranger.headers["content-type"], "nonce" in stranger.text) == ("text/html; charset=utf-8", False)


async def test_a_visitor_without_a_receipt_comes_back_to_the_waiting_room(service: Service) -> None:
    queue = await open_queue(service, public_log=False)
    browser = RoomBrowser(queue)
    waiting = await browser.line_up()
    answer = await browser.http.get(f"/queues/{queue.id}?receipt", follow_redirects=False)
    assert "?receipt" not in waiting.text
    assert (answer.status_code, answer.headers["location"]) == (303, f"/queues/{queue.id}")
