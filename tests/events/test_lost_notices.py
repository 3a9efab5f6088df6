"""Work whose notification was lost is found by a poll, within the documented time."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

import psycopg
import pytest

from holdfast.events.mails import sending
from holdfast.events.pages.event import live
from holdfast.events.payments import part as payments
from holdfast.events.photos import sizes
from holdfast.events.resources import Database, Steps
from holdfast.events.seats import settlement
from holdfast.events.settings import Settings
from holdfast.kit.background import row_work, tasks
from holdfast.kit.mail import sender
from holdfast.kit.postgres import lookup_cache
from holdfast.kit.postgres.notifications import POLL_SECONDS
from tests.faults.lost_notifications import SLACK_SECONDS, cut_off_listener, mute_notifications
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Client, Service, eventually, running_events
from tests.helpers.exchange import read_stream
from tests.helpers.form_browser import Browser
from tests.helpers.payments import PaymentScene, open_payment_scene
from tests.helpers.photos import JPEG, stored_sizes, upload, with_photo
from tests.helpers.pictures import picture
from tests.helpers.smtp import MailServer, mail_server
from tests.kit.background.letters import POST_LETTER, Letter, run_letter_jobs
from tests.kit.mail.posting import run_senders, wait_until_all_ended

# Each test adds a schema to its database, and cuts off the sessions of a service.
pytestmark = pytest.mark.usefixtures("own_service")

ANN = "ann@example.com"

SCALED_SECONDS = 3.0
"""What making the sizes of a photo may take."""

# The sessions by which processes hear of jobs, and fetch them.
CUT_OFF_JOBS = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
 where application_name = 'events jobs' and datname = current_database()
"""
DEFER = """
select procrastinate_defer_jobs_v1(array[row('default', 'post_letter', 0, null, null, %s::jsonb, null)
                                         ::procrastinate_job_to_defer_v1])
"""
LETTER = '{"tenant": null, "arguments": {"to": "%s"}}'


@contextlib.asynccontextmanager
async def open_deaf_service(service: Service) -> AsyncGenerator[Service]:
    """The same service once more, and nobody hears its notices."""
    url = await asyncio.to_thread(mute_notifications, service.database.url)
    async with running_events(service.database.resources.settings.model_copy(update={"database_url": url})) as other:
        yield other


def client_at(other: Service, client: Client) -> Client:
    """A client who asks another instance of the service."""
    return Client(other.http, client.key, client.id, client.slug)


@contextlib.asynccontextmanager
async def open_mailing_service(settings: Settings) -> AsyncGenerator[tuple[Service, MailServer]]:
    """The service, and the mail server that it sends by."""
    with mail_server() as server:
        async with running_events(settings.model_copy(update=server.settings)) as service:
            yield service, server


async def test_a_mail_whose_notice_was_lost_is_sent_by_a_poll(settings: Settings) -> None:
    async with (
        open_mailing_service(settings) as (service, server),
        open_deaf_service(service) as other,
        run_senders(service),
    ):
        await Browser(service).ask("first@example.com")
        await wait_until_all_ended(service)
        asking = Browser(other)
        sent = await asking.send("/sign-in", email=ANN, return_to="")
        assert sent.status_code == 303, sent.text
        await wait_until_all_ended(service, sender.POLL_SECONDS + SLACK_SECONDS)

    assert server.recipients() == ["first@example.com", ANN]


async def test_mails_are_sent_while_the_listening_connection_is_cut_off(settings: Settings) -> None:
    async with (
        open_mailing_service(settings) as (service, server),
        run_senders(service),
        cut_off_listener(service.database.url),
    ):
        await Browser(service).ask(ANN)
        await wait_until_all_ended(service, sender.POLL_SECONDS + SLACK_SECONDS)

    assert server.recipients() == [ANN]


async def test_a_seat_whose_notice_was_lost_is_streamed_after_a_poll(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2)
    address = f"http://events.test/events/{event['id']}/stream"
    async with open_deaf_service(service) as other, read_stream(service.app, address) as reader:
        await reader.next()
        await client_at(other, ada).register(event["id"], email=ANN)
        await settlement.settle(other.database)
        async with asyncio.timeout(live.POLL_SECONDS + SLACK_SECONDS):
            message = await reader.next()

    assert message["data"]["left"] == 1


async def test_an_announcement_whose_notice_was_lost_becomes_mails_by_a_poll(service: Service) -> None:
    ada = await service.organizer()
    first, second = [(await ada.create_event())["id"] for _ in range(2)]
    for event_id in (first, second):
        await ada.register(event_id, email=ANN)
    await service.settle()

    async def is_mailed(count: int) -> bool:
        return len(await service.run_sql("select id from mails where kind = 'event_cancelled'")) == count

    async with open_deaf_service(service) as other, run_in_background(sending.ANNOUNCEMENTS.run(service.database)):
        await ada.delete(f"/api/events/{first}")
        await eventually(lambda: is_mailed(1))
        await client_at(other, ada).delete(f"/api/events/{second}")
        await eventually(lambda: is_mailed(2), POLL_SECONDS + SLACK_SECONDS)


async def test_announcements_become_mails_while_the_listening_connection_is_cut_off(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email=ANN)
    await service.settle()

    async with run_in_background(sending.ANNOUNCEMENTS.run(service.database)), cut_off_listener(service.database.url):
        await ada.delete(f"/api/events/{event['id']}")
        await eventually(
            lambda: service.run_sql("select id from mails where kind = 'event_cancelled'"),
            POLL_SECONDS + SLACK_SECONDS,
        )


async def has_paid_seats(scene: PaymentScene, event_id: int, count: int) -> bool:
    """Whether `count` people have a seat that is paid for."""
    return (await scene.counts(event_id)).get("registered") == count


def calls(database: Database) -> list[Coroutine[Any, Any, None]]:
    """All work with the payment processor."""
    return [row_work.run(database, work) for work in payments.rows(database)]


async def test_a_payment_whose_notice_was_lost_is_handled_by_a_poll(settings: Settings) -> None:
    async with open_payment_scene(settings) as scene, open_deaf_service(scene.service) as other:
        event_id = await scene.event(await scene.organizer(), capacity=2)
        first, second = [await scene.register(event_id, email) for email in (ANN, "ben@example.com")]
        async with run_in_background(*calls(scene.service.database)):
            await first.pay()
            await scene.deliver_messages()
            await eventually(lambda: has_paid_seats(scene, event_id, 1))

            scene.service.http, usual = other.http, scene.service.http
            await second.pay()
            await scene.deliver_messages()
            scene.service.http = usual
            await eventually(lambda: has_paid_seats(scene, event_id, 2), row_work.POLL_SECONDS + SLACK_SECONDS)


async def test_payments_are_handled_while_the_listening_connection_is_cut_off(settings: Settings) -> None:
    async with open_payment_scene(settings) as scene:
        event_id = await scene.event(await scene.organizer())
        ann = await scene.register(event_id, ANN)
        async with run_in_background(*calls(scene.service.database)), cut_off_listener(scene.service.database.url):
            await ann.pay()
            await scene.deliver_messages()
            await eventually(lambda: has_paid_seats(scene, event_id, 1), row_work.POLL_SECONDS + SLACK_SECONDS)


async def test_a_photo_whose_notice_was_lost_gets_its_sizes_by_a_poll(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada, picture(JPEG, 1000, 10))

    async with (
        open_deaf_service(service) as other,
        run_in_background(row_work.run(service.database, sizes.SizesWork(service.database))),
    ):
        _, heard_of = await with_photo(ada, service)
        await eventually(lambda: stored_sizes(service, heard_of))
        await client_at(other, ada).create_event(image_keys=[key])
        await eventually(lambda: stored_sizes(service, key), row_work.POLL_SECONDS + SCALED_SECONDS)


async def test_photos_get_their_sizes_while_the_listening_connection_is_cut_off(service: Service) -> None:
    ada = await service.organizer()

    async with (
        run_in_background(row_work.run(service.database, sizes.SizesWork(service.database))),
        cut_off_listener(service.database.url),
    ):
        _, key = await with_photo(ada, service)
        await eventually(lambda: stored_sizes(service, key), row_work.POLL_SECONDS + SCALED_SECONDS)


async def test_a_revoked_key_is_refused_after_a_second_without_its_notice(service: Service) -> None:
    ada = await service.organizer()
    made = (await ada.post("/api/keys", {"api_key": {"name": "Second"}})).json()["data"]
    second = Client(service.http, made["key"])

    async def is_refused() -> bool:
        return (await second.get("/api/events")).status_code == 401

    async with open_deaf_service(service) as other:
        assert not await is_refused()
        assert (await client_at(other, ada).delete(f"/api/keys/{made['id']}")).status_code == 204
        await eventually(is_refused, lookup_cache.TTL_SECONDS + SLACK_SECONDS)


async def test_an_ended_session_is_over_after_a_second_without_its_notice(service: Service) -> None:
    here = Browser(service)
    await here.sign_in(ANN)

    async def signed_out() -> bool:
        return not await here.is_signed_in()

    async with open_deaf_service(service) as other:
        other_browser = Browser(other)
        other_browser.http.cookies.update(here.http.cookies)
        assert not await signed_out()
        await other_browser.send("/account", session="all")
        await eventually(signed_out, lookup_cache.TTL_SECONDS + SLACK_SECONDS)


async def test_sessions_end_while_the_listening_connection_is_cut_off(settings: Settings, service: Service) -> None:
    async with running_events(settings) as other:
        here, other_browser = Browser(service), Browser(other)
        await here.sign_in(ANN)
        other_browser.http.cookies.update(here.http.cookies)

        async def signed_out() -> bool:
            return not await here.is_signed_in()

        assert not await signed_out()
        async with cut_off_listener(service.database.url):
            await other_browser.send("/account", session="all")
            await eventually(signed_out, lookup_cache.TTL_SECONDS + SLACK_SECONDS)


async def test_a_page_shows_a_change_after_a_second_without_its_notice(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    async def has_change() -> bool:
        return "Watercolours" in (await service.http.get(event["public_url"])).text

    async with open_deaf_service(service) as other:
        assert not await has_change()
        await client_at(other, ada).patch(f"/api/events/{event['id']}", {"event": {"title": "Watercolours"}})
        await eventually(has_change, lookup_cache.TTL_SECONDS + SLACK_SECONDS)


async def test_a_job_is_done_although_the_listening_connection_was_cut_off_when_it_was_stored(service: Service) -> None:
    posted: asyncio.Queue[str] = asyncio.Queue()

    async def post(_: Steps, letter: Letter) -> None:
        posted.put_nowait(letter.to)

    async with (
        run_letter_jobs(service.database, post),
        await psycopg.AsyncConnection.connect(service.database.url, autocommit=True) as connection,
        asyncio.timeout(60),
    ):
        await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ann")))
        assert await posted.get() == "ann"
        for to in ("ben", "cal"):
            await connection.execute(CUT_OFF_JOBS)
            await connection.execute(DEFER, [LETTER % to])
            async with asyncio.timeout(tasks.POLL_SECONDS + SLACK_SECONDS):
                assert await posted.get() == to


async def test_a_delayed_job_whose_notice_was_lost_is_done_by_a_poll(service: Service) -> None:
    posted: asyncio.Queue[str] = asyncio.Queue()

    async def post(_: Steps, letter: Letter) -> None:
        posted.put_nowait(letter.to)

    async def enqueue(by: Service, to: str, delay: float) -> None:
        await by.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter(to), delay=delay))

    async with open_deaf_service(service) as other, run_letter_jobs(service.database, post):
        async with asyncio.timeout(20):
            await enqueue(service, "ann", 0)
            assert await posted.get() == "ann"
        await enqueue(other, "ben", 0.5)
        async with asyncio.timeout(0.5 + tasks.POLL_SECONDS + SLACK_SECONDS):
            assert await posted.get() == "ben"
