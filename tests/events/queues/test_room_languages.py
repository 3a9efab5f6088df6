"""The waiting-room page speaks the language of its visitor, and goes on in the one that was chosen."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.events.queues.browser import RoomBrowser, room_state
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service, running_events

GERMAN = "de-AT,de;q=0.9,en;q=0.5"


def german(queue: QueueScene) -> RoomBrowser:
    """A browser that prefers German."""
    browser = RoomBrowser(queue)
    browser.http.headers["Accept-Language"] = GERMAN
    return browser


def page_text(page: httpx2.Response) -> str:
    """The words of the page, without its markup and its style."""
    body = re.sub(r"<style>.*?</style>", " ", page.text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", body)))


@pytest.mark.parametrize(
    ("language", "position", "words", "progress", "lost", "behind"),
    [
        ("en", "1,234", "You are number 1,234 in line.", "How much of the wait", "No connection", "7,000"),
        ("de", "1.234", "Sie sind Nummer 1.234 in der Reihe.", "So viel der Wartezeit", "Zurzeit keine", "7.000"),
    ],
)
async def test_a_place_in_the_queue_is_shown_in_the_language_of_the_visitor(
    queue: QueueScene, language: str, position: str, words: str, progress: str, lost: str, behind: str
) -> None:
    await queue.service.run_sql("update queues set tickets = 1233")
    browser = RoomBrowser(queue)
    browser.http.headers["Accept-Language"] = language
    await browser.line_up()
    await queue.service.run_sql("update queues set tickets = tickets + 7000")

    page = await browser.look()

    assert f'<html lang="{language}">' in page.text
    assert page.headers["content-language"] == language
    assert f"<title>{position} · Spring sale</title>" in page.text
    assert f'<p class="unseen" role="status">{words}</p>' in page.text
    assert f'aria-label="{progress}' in page.text
    assert f'data-lost="{lost}' in page.text
    assert f'<strong id="position">{position}</strong>' in page.text
    assert f"<dd>{behind}</dd>" in page.text


async def test_a_wait_is_shown_in_words_of_the_language(queue: QueueScene) -> None:
    await queue.service.run_sql("update queues set tickets = 3900")

    page = await german(queue).line_up()

    assert "Sie sind in höchstens einer Stunde und 10 Minuten an der Reihe." in page_text(page)


async def test_moments_are_written_as_in_the_language(service: Service) -> None:
    queue = await open_queue(service, starts_at="2099-03-01T17:30:00Z")
    english, in_german = await RoomBrowser(queue).line_up(), await german(queue).line_up()

    moment = 'datetime="2099-03-01T17:30:00Z"'
    assert re.search(rf"people are let in on <time {moment}>March 1, 2099, 5:30\sPM\sUTC</time>\.", english.text)
    assert f"Der Einlass beginnt am <time {moment}>1. März 2099, 17:30\u00a0UTC</time>." in in_german.text
    assert re.search(r"Last updated</dt><dd><time [^>]*>\d+:\d\d:\d\d\s[AP]M\sUTC</time>", english.text)
    assert re.search(r"Aktualisiert</dt><dd><time [^>]*>\d\d:\d\d:\d\d\sUTC</time>", in_german.text)


async def test_the_chosen_language_is_kept_when_a_place_is_taken_again(queue: QueueScene) -> None:
    browser = german(queue)
    browser.path += "?lang=en"
    await browser.line_up()
    await queue.join("ann")
    await queue.tick()
    await queue.pass_time(11 * 60)

    missed = await browser.look()
    again = await browser.look("POST")

    assert (room_state(missed), '<html lang="en">' in missed.text) == ("missed", True)
    assert (again.status_code, again.headers["location"]) == (303, f"/queues/{queue.id}?lang=en")
    assert "You are number 2 in line." in page_text(await browser.look())


async def test_the_other_language_is_a_link_on_the_page_itself_and_in_a_frame(queue: QueueScene) -> None:
    for path in (f"/queues/{queue.id}", f"/queues/{queue.id}/embed"):
        page = await queue.service.http.get(path, headers={"Accept-Language": GERMAN})
        assert '<a href="?lang=en" hreflang="en" lang="en">English</a>' in page.text
        queue.service.http.cookies.clear()
        page = await queue.service.http.get(f"{path}?lang=en", headers={"Accept-Language": GERMAN})
        queue.service.http.cookies.clear()
        assert '<a href="?lang=de" hreflang="de" lang="de">Deutsch</a>' in page.text
        assert "One moment: you are getting your place in line." in page.text


async def test_a_german_visitor_is_sent_to_the_target_without_a_language_parameter(queue: QueueScene) -> None:
    browser = german(queue)
    browser.path += "?lang=de"
    await browser.line_up()
    await queue.tick()

    sent = await browser.look()

    assert sent.status_code == 303
    assert sent.headers["location"].startswith("https://shop.example/sale?queue_token=")
    assert "lang=" not in sent.headers["location"]


async def test_a_visitor_without_a_place_reads_the_reason_in_german(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"room_joins_per_minute": 3})) as service:
        queue = await open_queue(service)
        browser = german(queue)
        arriving = await browser.look()
        waiting = await browser.look()
        await queue.change(max_queue_size=1)
        full = await german(queue).line_up()
        await queue.change(active=False)
        paused = await browser.look()
        closed = await german(queue).line_up()
        crowded = await german(queue).line_up()
        ended_at = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
        await queue.change(active=True, ends_at=ended_at)
        ended = await browser.look()
        await queue.ada.delete(queue.path)
        gone = await browser.look()
        await service.database.pool.close()
        busy = await browser.look()

    answers = (arriving, waiting, full, paused, closed, crowded, ended, gone, busy)
    pages = {room_state(page): page_text(page) for page in answers}
    texts = {
        "arriving": "Einen Moment: Sie bekommen Ihren Platz in der Reihe.",
        "waiting": "Sie sind gleich an der Reihe.",
        "full": "Der Warteraum ist voll.",
        "crowded": "Aus Ihrem Netz kommen gerade viele Leute.",
        "paused": "Der Veranstalter hat den Warteraum am ",
        "closed": "Sobald es weitergeht, bekommen Sie einen Platz.",
        "ended": "Dieser Warteraum ist beendet.",
        "gone": "Diesen Warteraum gibt es nicht.",
        "busy": "Hier ist gerade sehr viel los.",
    }
    assert {state: words in pages.get(state, "") for state, words in texts.items()} == dict.fromkeys(texts, True)
    assert re.search(r"Sie versucht es in \d+ Sekunden? noch einmal\.", pages["crowded"])
    assert "Warteraum" in pages["gone"]


async def test_the_way_in_from_a_frame_is_in_german_too(queue: QueueScene) -> None:
    browser = german(queue)
    browser.path += "/embed"
    await browser.line_up()
    await queue.tick()

    page = await browser.look()

    assert room_state(page) == "released"
    assert re.search(r'<a class="button" id="enter" [^>]*>Eintreten</a>', page.text)
    assert re.search(r"Sie können bis \d+\. \w+ \d{4}, \d\d:\d\d UTC eintreten\.", page_text(page))


async def test_texts_of_an_organizer_cannot_change_the_direction_of_the_text_around_them(service: Service) -> None:
    title, description = "\u202eelas\u2066 </bdi>", "\u2067\u202e\u0041"
    queue = await open_queue(service, title=title, description=description)

    page = await german(queue).line_up()

    assert "<h1><bdi>\u202eelas\u2066 &lt;/bdi&gt;</bdi></h1>" in page.text
    assert f'<p class="description"><bdi>{description}</bdi></p>' in page.text
