"""The page `/verify` shows the history of a number, in logs of an honest service and of one that cheats."""

import json
import re
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Route, expect

from holdfast_verify.formats.entries import timestamp
from holdfast_verify.formats.proof_file import ProofFile
from holdfast_verify.formats.signed_note import Checkpoint, Signer
from holdfast_verify.formats.tree import append, inclusion_proof, leaf_hash
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.helpers.events_service import Service
from tests.verify.audit.honest_event import HOST, KEY, ORIGIN, START, Entry, HonestEvent, compact_json, write_texts

LOG = "/log/events/7"


class LogSite:
    """A service at events.example.com, whose event 7 has these logs: a list of entries for each generation."""

    def __init__(self, service: Service, folder: Path, *logs: Sequence[Entry]) -> None:
        self.service, self.folder, self.logs = service, folder, logs
        self.proof_origin: str | None = None
        self.proofs = logs
        for generation in range(1, len(logs) + 1):
            self._write(generation)

    def _write(self, generation: int) -> None:
        texts = [compact_json(entry) for entry in self.logs[generation - 1]]
        write_texts(self.folder / str(generation), texts, origin=self.origin(generation))

    def origin(self, generation: int) -> str:
        return ORIGIN + (f"/{generation}" if generation > 1 else "")

    def proof(self, number: int) -> str | None:
        """The proof of a number, in the newest log that began before it."""
        for generation, entries in reversed([*enumerate(self.proofs, start=1)]):
            if entries[0]["first_number"] <= number:
                index = next((at for at, entry in enumerate(entries) if is_arrival(entry, number)), None)
                return None if index is None else self._proof_at(generation, entries, index)
        return None

    def _proof_at(self, generation: int, entries: Sequence[Entry], index: int) -> str:
        texts = [compact_json(entry) for entry in entries]
        tree = append(0, {}, [leaf_hash(text) for text in texts])
        origin = self.proof_origin or self.origin(generation)
        checkpoint = Signer(origin, KEY).sign(Checkpoint(origin, tree.size, tree.root).text)
        return ProofFile(index, inclusion_proof(index, tree.size, tree.tiles), checkpoint, texts[index]).text

    async def answer(self, route: Route) -> None:
        path = route.request.url.removeprefix(f"https://{HOST}")
        if not path.startswith(LOG):
            languages = route.request.headers.get("accept-language", "en")
            answer = await self.service.http.get(path, headers={"accept-language": languages})
            media_type = answer.headers.get("content-type", "")
            await route.fulfill(status=answer.status_code, body=answer.content, content_type=media_type)
            return
        match = re.fullmatch(r"/log/events/7(?:/(\d+))?/(proofs/(\d+)|key|checkpoint|tile/.*)", path)
        assert match, path
        if match[3]:
            proof = self.proof(int(match[3]))
            await route.fulfill(status=200 if proof else 404, body=proof or "")
            return
        file = self.folder / (match[1] or str(len(self.logs))) / match[2]
        await route.fulfill(status=200 if file.exists() else 404, body=file.read_bytes() if file.exists() else b"")


def is_arrival(entry: Entry, number: int) -> bool:
    return entry["kind"] == "arrival" and entry["number"] == number


@pytest.fixture
async def context(chromium: Browser) -> AsyncGenerator[BrowserContext]:
    context = await chromium.new_context(locale="en-US")
    yield context
    await context.close()


async def open_page(context: BrowserContext, site: LogSite, link: str = "") -> Page:
    page = await context.new_page()
    await page.route(f"https://{HOST}/**", site.answer)
    await page.goto(f"https://{HOST}/verify{link}")
    return page


async def choose(page: Page, answer: dict[str, Any] | str) -> str:
    """Choose a file, and read what the page says of it."""
    content = answer if isinstance(answer, str) else json.dumps(answer)
    await page.locator("#result").evaluate("(result) => { delete result.dataset.state }")
    await page.locator("#file").set_input_files({"name": "file", "mimeType": "text/plain", "buffer": content.encode()})
    return await read_result(page)


async def read_result(page: Page) -> str:
    states = re.compile("right|partly|attention|wrong")
    await expect(page.locator("#result")).to_have_attribute("data-state", states, timeout=60_000)
    await page.locator("#result details").evaluate_all("parts => parts.forEach((part) => { part.open = true })")
    return await page.locator("#result").inner_text()


async def state(page: Page) -> str | None:
    return await page.locator("#result").get_attribute("data-state")


def event_of_four(**fields: Any) -> HonestEvent:
    """An event with two seats: numbers 1 and 2 have them, and 3 and 4 wait."""
    event = HonestEvent(**fields)
    for _ in range(4):
        event.arrive()
    event.seal()
    return event


def saved_later(event: HonestEvent, number: int) -> dict[str, Any]:
    """The receipt as a file, which says the number."""
    return {**event.receipts[number], "number": number}


async def test_a_green_tick_says_the_present_outcome_of_the_number_and_what_was_not_checked(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    page = await open_page(context, LogSite(service, tmp_path, event.entries), f"#{LOG}/proofs/1?shown=registered")
    linked = await read_result(page)
    assert await state(page) == "partly", "whose number it is was not checked"
    assert "Number 1 of event 7 at events.example.com is in the log." in linked
    assert "Whether this number is yours" in linked
    assert await page.locator("#result .mark.registered").count() == 0

    text = await choose(page, saved_later(event, 1))

    assert await state(page) == "right"
    await expect(page.locator("#result .mark.registered")).to_be_visible()
    assert "You have number 1 of event 7 at events.example.com." in text
    assert "The log says what number 1 has now: a seat." in text
    assert "The page that linked here shows the same: a seat." in text
    checked, _, unchecked = text.partition("What was not checked")
    assert "others" not in checked
    assert "Whether all others got what the rules give them" in unchecked
    assert "Whether everybody is shown this log" in unchecked


async def test_a_person_who_moved_up_reads_that_they_have_a_seat_and_who_changed_it(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    event.remove(1)
    event.seal()
    page = await open_page(context, LogSite(service, tmp_path, event.entries))
    text = await choose(page, saved_later(event, 3))
    assert await state(page) == "right"
    assert "The log says what number 3 has now: a seat." in text
    assert "Before: a place on the waiting list. After: a seat." in text
    assert "by the service, by its rules" in text


async def test_a_person_moved_by_the_organizer_reads_that_the_organizer_did_it(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    event.put_aside(1)
    event.seal()
    page = await open_page(context, LogSite(service, tmp_path, event.entries))
    text = await choose(page, saved_later(event, 1))
    assert "by the organizer. Before: a seat. After: a place on the waiting list." in text
    assert "The log says what number 1 has now: a place on the waiting list." in text


async def test_a_forged_cancellation_gets_a_warning_instead_of_a_green_tick(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    event.remove(1)
    event.seal()
    page = await open_page(context, LogSite(service, tmp_path, event.entries))
    text = await choose(page, saved_later(event, 1))
    assert await state(page) == "attention"
    assert "The log says that you cancelled on November 26, 2026" in text
    assert "If you did not, this receipt is the evidence" in text
    assert "Your number was 1 of event 7" in text
    assert "a seat." not in text
    assert await page.locator("#result .mark.registered").count() == 0


async def test_an_arrival_dropped_before_settlement_is_shown_as_a_cancellation(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    arrival = event.entries.pop(2)
    removal = {"kind": "change", "at": timestamp(START + timedelta(seconds=1)), "person": arrival["person"]}
    removal |= {"received_at": arrival["at"], "from": "pending", "to": "removed", "by": "person"}
    event.entries.insert(-1, removal)
    page = await open_page(context, LogSite(service, tmp_path, event.entries))
    text = await choose(page, event.receipts[2])
    assert await state(page) == "attention"
    assert "The log says that you cancelled on November 26, 2026" in text
    assert "You have number" not in text


async def test_an_outcome_that_differs_from_the_log_is_shown_as_a_difference(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    page = await open_page(context, LogSite(service, tmp_path, event.entries), f"#{LOG}/proofs/1?shown=waitlisted")
    await read_result(page)
    text = await choose(page, saved_later(event, 1))
    assert await state(page) == "attention"
    assert "The page: a place on the waiting list. The log: a seat." in text


async def test_a_proof_of_another_log_of_the_service_is_refused(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    site = LogSite(service, tmp_path, event.entries)
    page = await open_page(context, site)
    for origin in (f"{HOST}/log/events/8", f"{HOST}/log/events/71", f"{HOST}/log/queues/7", f"other.{ORIGIN}"):
        site.proof_origin = origin
        text = await choose(page, saved_later(event, 1))
        assert f"The proof is of another log, {origin}." in text
    site.proof_origin = f"{HOST}/log/events/8"
    linked = await open_page(context, site, f"#{LOG}/proofs/1")
    assert "The proof is of another log" in await read_result(linked)
    assert await state(linked) == "wrong"


async def test_unsigned_entries_of_a_log_are_refused(service: Service, context: BrowserContext, tmp_path: Path) -> None:
    event = event_of_four()
    site = LogSite(service, tmp_path, event.entries)
    event.remove(1)
    event.seal()
    site.proofs = (event.entries,)
    altered = [*event.entries]
    altered[6] = {**altered[6], "number": 2}
    write_texts(tmp_path / "1", [compact_json(entry) for entry in altered])
    page = await open_page(context, site)
    assert "The log shows other entries than those that it has signed." in await choose(page, saved_later(event, 1))


async def test_an_old_proof_is_compared_with_the_present_log(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    old = LogSite(service, tmp_path / "old", event.entries).proof(1) or ""
    event.remove(1)
    event.seal()
    page = await open_page(context, LogSite(service, tmp_path / "new", event.entries))
    text = await choose(page, old)
    assert "The log says that the person with this number cancelled on November 26, 2026" in text

    rewritten = [*event.entries]
    rewritten[4], rewritten[3] = rewritten[3], rewritten[4]
    page = await open_page(context, LogSite(service, tmp_path / "rewritten", rewritten))
    assert "does not begin as it did when this proof was made" in await choose(page, old)

    page = await open_page(context, LogSite(service, tmp_path / "shorter", event.entries[:4]))
    assert "The log has 4 entries, and had 6 when this proof was made." in await choose(page, old)


async def test_a_receipt_is_looked_up_in_the_log_without_its_number(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = HonestEvent(capacity=600)
    for _ in range(600):
        event.arrive()
    event.seal()
    page = await open_page(context, LogSite(service, tmp_path, event.entries))
    text = await choose(page, event.receipts[300])
    assert await state(page) == "right"
    assert "You have number 300 of event 7 at events.example.com." in text

    del event.entries[300]
    page = await open_page(context, LogSite(service, tmp_path / "dropped", event.entries))
    text = await choose(page, event.receipts[300])
    assert await state(page) == "wrong"
    assert "The log does not have this registration. The promise is broken" in text


async def test_a_receipt_without_a_person_gets_no_green_tick(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    page = await open_page(context, LogSite(service, tmp_path, event.entries))
    text = await choose(page, {"receipt": event.receipts[1]["receipt"], "number": 1})
    assert await state(page) == "partly"
    assert "You have number" not in text
    assert "Whose receipt it is: it names nobody." in text


def drawn_event() -> HonestEvent:
    """Two people enter the draw of one seat; number 2 gets it."""
    event = HonestEvent(capacity=1, waiting_places=1)
    for _ in range(2):
        event.arrive()
    for entry in event.entries:
        entry.pop("outcome", None)
    later = timestamp(START + timedelta(hours=1))
    event.entries += [
        {"kind": "draw", "at": later, "round": 1, "signature": "", "seed": "", "order": ""},
        {"kind": "place", "at": later, "number": 2, "outcome": "registered"},
        {"kind": "place", "at": later, "number": 1, "outcome": "waitlisted"},
        {"kind": "seal", "at": later},
    ]
    return event


async def test_a_winner_of_a_draw_has_a_seat_and_no_ticket(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = drawn_event()
    page = await open_page(context, LogSite(service, tmp_path, event.entries), f"#{LOG}/proofs/2")
    text = await read_result(page)
    assert "The log says what number 2 has now: a seat." in text
    assert "by the draw. Before: an entry in the draw. After: a seat." in text
    assert "ticket" not in text


def next_log(entries: Sequence[Entry], *, after: Entry | None = None) -> list[Entry]:
    """A further log of the event, which begins with number 5."""
    opening = {**entries[0], "at": timestamp(START + timedelta(hours=2)), "origin": f"{ORIGIN}/2", "first_number": 5}
    return [{**opening, **({"after": after} if after else {})}]


def change(number: int, before: str, after: str) -> Entry:
    at = timestamp(START + timedelta(hours=3))
    return {"kind": "change", "at": at, "number": number, "from": before, "to": after, "by": "organizer"}


async def test_later_logs_are_read_too_and_a_gap_between_them_is_named(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    closed = {"kind": "close", "at": timestamp(START + timedelta(hours=1)), "reason": "switched_off"}
    first = [*event.entries, closed]
    page = await open_page(context, LogSite(service, tmp_path / "closed", first))
    text = await choose(page, saved_later(event, 3))
    assert "It says what number 3 had then: a place on the waiting list." in text
    assert "the log was closed then." in text

    second = [*next_log(first), change(3, "waitlisted", "registered")]
    page = await open_page(context, LogSite(service, tmp_path / "on again", first, second))
    text = await choose(page, saved_later(event, 3))
    assert "The log says what number 3 has now: a seat." in text
    assert "the log was switched off." in text


async def test_a_person_missing_in_a_restored_backup_reads_that_and_nothing_false(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    event = event_of_four()
    event.remove(1)
    event.seal()
    named = {"origin": ORIGIN, "size": 6, "root": ""}
    site = LogSite(service, tmp_path / "change", event.entries, next_log(event.entries, after=named))
    page = await open_page(context, site)
    # The cancellation came after the backup.
    assert "The log says what number 1 has now: a seat." in await choose(page, saved_later(event, 1))

    opening = {**next_log(event.entries, after={**named, "size": 4})[0], "first_number": 4}
    page = await open_page(context, LogSite(service, tmp_path / "arrival", event.entries, [opening]))
    text = await choose(page, event.receipts[4])
    assert await state(page) == "attention"
    assert "restored from a backup that does not have this registration" in text
    # Also if the number is that of another person since, or of none.
    stranger = {**event.entries[1], "number": 4, "person": 43 * "A"}
    for later in ([], [stranger]):
        page = await open_page(
            context, LogSite(service, tmp_path / f"{len(later)} later", event.entries, [opening, *later])
        )
        text = await choose(page, saved_later(event, 4))
        assert await state(page) == "attention"
        assert "restored from a backup that does not have this registration" in text


@parametrize_looks
async def test_the_results_of_a_history_check_are_accessible_and_fit_small_screens(
    service: Service, chromium: Browser, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    event = event_of_four()
    event.remove(1)
    event.seal()
    context = await open_context(chromium, scheme, width, language)
    page = await open_page(context, LogSite(service, tmp_path, event.entries))
    for number, expected in ((1, "attention"), (3, "right")):
        await choose(page, saved_later(event, number))
        assert await state(page) == expected
        assert await violations(page) == []
        assert await too_wide(page) == []
    await choose(page, {"receipt": event.receipts[3]["receipt"]})
    assert await state(page) == "partly"
    assert await violations(page) == []
    await context.close()
