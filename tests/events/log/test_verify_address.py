"""`holdfast verify` reads the log of a running service from its address alone."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Generator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from holdfast.events.settings import Settings
from holdfast_verify.check import catching_up
from tests.events.log.log_scene import open_log, seal_logs
from tests.events.log.verification import rules, verify
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import running_events
from tests.helpers.serving import bind_port, running_already, serve_app, serve_events
from tests.verify.audit.honest_event import HonestEvent, checkpoint_of, write_head_proof, write_log, write_texts


async def test_a_log_is_verified_over_http_and_again_when_it_has_grown(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "TIMEOUT_SECONDS", 0)
    monkeypatch.setattr(catching_up, "PAUSE_SECONDS", 0)
    async with (
        serve_events(settings) as service,
    ):
        log = await open_log(service, seal=True)
        address, head = f"{service.base_url}{log.path}", tmp_path / "head"
        code, report = await asyncio.to_thread(verify, f"{address}/checkpoint", "--head", head)
        assert (code, report["findings"], report["subject"]) == (0, [], f"Log {address}")
        assert report["checked"]["head log"] == "has this head, entry 0 of 1"

        await log.arrive(600)
        await log.seal()
        _, report = await asyncio.to_thread(verify, address, "--head", head, "--head-log")
        of_heads, heads = await asyncio.to_thread(verify, f"{service.base_url}/log/heads")
        missing, error = await asyncio.to_thread(verify, f"{service.base_url}/log/events/999999")

    # The rows of the scene are from another day, and seat more people than there are seats; the hashes are right. And
    # nobody of them is registered.
    assert {"late", "outcome", "counts"} == rules(report)
    [message] = [finding["message"] for finding in report["findings"] if finding["rule"] == "counts"]
    assert message == (
        "The page shows 100 free seats and 0 on the waiting list. "
        "The log leads to 0 free seats and 0 on the waiting list."
    )
    assert report["figures"]["arrivals"] == {"registered": 600}
    assert head.read_text().splitlines()[1] == "603"
    assert report["checked"]["head log"] == "has this head, entry 1 of 2"
    assert report["checked"]["heads"].startswith("2 of this log are in the head log")
    assert (of_heads, heads["figures"]) == (0, {"logs": 1, "heads": 2})
    assert (missing, "is answered with 404" in error["error"]) == (2, True)


async def test_counts_that_the_log_does_not_have_yet_are_no_difference(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "PAUSE_SECONDS", 0)
    port = bind_port()
    url = port.url
    were_counts_read = asyncio.Event()
    async with running_events(settings.model_copy(update={"base_url": url})) as service:

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            await service.app(scope, receive, send)
            if scope.get("path", "").endswith("/stream"):
                were_counts_read.set()

        async with serve_app(running_already(watched), port):
            ada = await service.organizer()
            event = await ada.create_event(capacity=5)
            await seal_logs(service)
            await Visitor(service).register(event["id"], "ann@example.com")
            await service.settle()
            checked = asyncio.create_task(asyncio.to_thread(verify, f"{url}/log/events/{event['id']}"))
            await were_counts_read.wait()
            await seal_logs(service)
            code, report = await checked

    assert (code, report["findings"]) == (0, [])
    assert report["checked"]["page"] == "4 free seats and 0 on the waiting list, and so says the log"
    assert report["checked"]["head"].startswith("2 entries")


async def test_counts_of_an_event_whose_log_is_always_a_little_behind_are_no_difference(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(catching_up, "TIMEOUT_SECONDS", 5)
    port = bind_port()
    url = port.url
    people = 0
    async with running_events(settings.model_copy(update={"base_url": url})) as service:
        ada = await service.organizer()
        event = await ada.create_event(capacity=1_000)
        await seal_logs(service)

        async def crowded(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal people
            if scope.get("path", "").endswith("/stream"):
                await seal_logs(service)
                people += 1
                await ada.register(event["id"], email=f"n{people}@example.com")
                await service.settle()
            await service.app(scope, receive, send)

        async with serve_app(running_already(crowded), port):
            code, report = await asyncio.to_thread(verify, f"{url}/log/events/{event['id']}")

    assert (code, report["findings"]) == (0, [])
    assert report["checked"]["page"] == "999 free seats and 0 on the waiting list, and so says the log"


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves the files of a directory, and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serve_directory(directory: Path) -> Generator[str]:
    """The host and port at which the files of a directory are served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=directory))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_receipt_is_looked_up_in_earlier_logs_too(tmp_path: Path) -> None:
    first, later = HonestEvent(), HonestEvent()
    for event in (first, later):
        event.arrive()
        event.seal()
    first.entries.append({**first.entries[-1], "kind": "close", "reason": "switched_off"})
    first.seal()
    later.entries[0]["first_number"] = later.entries[1]["number"] = 2
    later.entries[1]["person"] = "p" * 43
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(first.receipts[1]))
    (tmp_path / "event.html").write_text('<a href="/log/events/7">The order</a>')

    with serve_directory(tmp_path) as host:
        for event, origin, folder in ((first, f"{host}/log/events/7", "7/1"), (later, f"{host}/log/events/7/2", "7")):
            event.entries[0]["origin"] = origin
            write_log(tmp_path / "log/events" / folder, event.entries, origin=origin)
        by_page, page_report = verify(f"http://{host}/event.html")
        code, report = verify(file, "--log", f"http://{host}/log/events/7")

    assert page_report["origin"] == f"{host}/log/events/7/2"
    assert report["checked"]["log"] == "number 1, got a seat at 2026-11-26 13:00:00 UTC, entry 1"
    assert (by_page, rules(page_report), code, rules(report)) == (1, {"gap"}, 1, {"gap"})


def test_a_log_that_another_person_was_shown_is_found_in_the_head_log(tmp_path: Path) -> None:
    event, forked = HonestEvent(), HonestEvent()
    for version in (event, forked):
        for _ in range(3):
            version.arrive()
            version.seal()
    forked.entries[1]["person"] = "p" * 43

    with serve_directory(tmp_path) as host:
        origin = f"{host}/log/events/7"
        for version in (event, forked):
            version.entries[0]["origin"] = origin
        write_log(tmp_path / "log/events/7", event.entries, origin=origin)
        # Sizes only rise, so the head log alone tells nothing.
        listed = [checkpoint_of(forked, 5, origin), checkpoint_of(event, 7, origin)]
        write_texts(tmp_path / "log/heads", listed, origin=f"{host}/log/heads")
        write_head_proof(tmp_path / "log/events/7", listed, origin=f"{host}/log/heads")
        of_heads, _ = verify(f"http://{host}/log/heads")
        without, _ = verify(f"http://{host}/log/events/7")
        code, report = verify(f"http://{host}/log/events/7", "--head-log")

    assert (of_heads, without, code, rules(report)) == (0, 0, 1, {"consistency"})
    assert "not the ones of entry 0 of" in report["findings"][0]["message"]
