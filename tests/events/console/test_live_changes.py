"""The streams of the console report changes of the organizer's own data, until the session ends."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from holdfast.accounts import sessions
from holdfast.events.queues.release import release_due
from holdfast.events.settings import Settings
from tests.events.check_in.check_in_scene import Entrance
from tests.events.console.organizing import sign_in_organizer
from tests.events.console.paid_scene import give_back, pay_for_seat
from tests.helpers.events_service import Service, running_events
from tests.helpers.exchange import Stream, read_stream
from tests.helpers.form_browser import Browser
from tests.helpers.payments import PaymentScene, open_dispute
from tests.helpers.people import sign_up

STREAM = "http://events.test/console/stream"


@asynccontextmanager
async def watch_changes(service: Service, browser: Browser, url: str = STREAM) -> AsyncGenerator[Stream]:
    """The stream of the organizer who is signed in in a browser."""
    cookie = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
    async with read_stream(service.app, url, cookie=cookie) as reader:
        yield reader


async def next_changes(reader: Stream) -> list[str] | None:
    """The names of what has changed; None: everything may have."""
    event = await reader.next()
    assert event["event"] == "changed", event
    return event["data"].get("changed")


async def test_a_stream_of_the_console_reports_new_and_changed_events(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    async with watch_changes(service, browser) as reader:
        event = await ada.create_event(capacity=1)
        new = await next_changes(reader)
        await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Watercolours"}})
        edited = await next_changes(reader)
        await sign_up(service, event, "ann")
        registered = await next_changes(reader)
        await ada.delete(f"/api/events/{event['id']}")
        cancelled = await next_changes(reader)

    assert [new, edited, registered, cancelled] == [[f"event {event['id']}"]] * 4


async def test_a_stream_of_the_console_reports_a_person_who_comes_in(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1)
    await sign_up(service, event, "ann")
    async with watch_changes(service, browser) as reader:
        await Entrance(service, ada, event).scan("ann")

        assert await next_changes(reader) == [f"event {event['id']}"]


async def test_a_stream_of_the_console_reports_payments_refunds_and_disputes(payment_scene: PaymentScene) -> None:
    browser, ann, page = await pay_for_seat(payment_scene)
    await give_back(browser, page, "4,50")
    await payment_scene.work()
    await open_dispute(payment_scene)
    await payment_scene.deliver()
    for statement in (
        "update payments set error = 'x'",
        "update refunds set error = 'x'",
        "update disputes set error = 'x'",
        "insert into disputes (dispute_id, intent_id) select 'another', intent_id from payments",
        "update registrations set amount_paid = 7",
    ):
        async with watch_changes(payment_scene.service, browser) as reader:
            await payment_scene.service.run_sql(statement)

            assert await next_changes(reader) == [f"event {ann.event_id}"], statement


async def test_a_stream_of_the_console_does_not_report_events_of_others(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    ben = await service.organizer()
    event, other = await ada.create_event(), await ben.create_event()
    async with watch_changes(service, browser) as reader:
        await sign_up(service, other, "bob")
        await sign_up(service, event, "ann")

        assert await next_changes(reader) == [f"event {event['id']}"]


async def test_a_stream_of_the_console_reports_queues_as_visitors_join_and_are_released(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    queue = await ada.create_queue()
    async with watch_changes(service, browser, f"{STREAM}/queues") as reader:
        assert (await reader.next())["data"] == {}
        await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": "ann"})
        joined = await next_changes(reader)
        await service.run_sql("update queues set paced_at = now() - interval '1 minute'")
        await release_due(service.database)
        released = await next_changes(reader)
        other = await ada.create_queue()
        made = await next_changes(reader)
        await ada.delete(f"/api/queues/{other['id']}")
        deleted = await next_changes(reader)

    assert [joined, released] == [[f"queue {queue['id']}"]] * 2
    assert [made, deleted] == [[f"queue {other['id']}"]] * 2


async def test_a_stream_ends_as_soon_as_its_session_does(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    async with watch_changes(service, browser) as reader:
        await service.database.transact(lambda tx: sessions.end(tx, ada.id))

        assert (await reader.next())["event"] == "signed_out"
        await reader.wait_until_closed()


async def test_a_stream_of_the_console_leads_to_sign_in_without_a_session(service: Service) -> None:
    browser = Browser(service)

    answer = await browser.get("/console/stream")

    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/sign-in")


async def test_one_organizer_has_a_bounded_number_of_streams(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"streams_per_organizer": 2})) as service:
        _, browser = await sign_in_organizer(service)
        _, other = await sign_in_organizer(service, "ben")
        async with (
            watch_changes(service, browser),
            watch_changes(service, browser, f"{STREAM}/queues"),
            watch_changes(service, browser) as refusal,
            watch_changes(service, other) as admitted,
        ):
            assert (refusal.status, admitted.status) == (429, 200)
            assert int(refusal.headers["retry-after"]) > 0
