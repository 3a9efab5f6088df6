"""The statements of the events service read what they touch, when an organizer has much of everything."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from holdfast.events import service
from holdfast.events.registrations import search, substring_search
from holdfast.events.service import EVENTS
from tests.databases import scratch_database
from tests.events.payments.scene import paying
from tests.plans.events_rows import fill
from tests.plans.events_work import Work, furnish
from tests.plans.filling import filling
from tests.plans.judging import findings_of
from tests.plans.recording import Recorder
from tests.plans.running import analyze, filled, not_filled, wrong
from tests.support import unlimited

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOOR = "counts or lists those of one event at its entrance"
QUOTA = "counts what an organizer has, which a quota bounds"
DAY = "links are kept for a day"

EXCEPTIONS = {
    "accounts/sessions.py forget_sessions": "once a day; an index for it would be written with every request",
    "accounts/signin/links.py forget": DAY,
    "accounts/signin/links.py list_requested": DAY,
    "events/check_in/no_shows.py COUNTS": DOOR,
    "events/check_in/sql.py SCANS": DOOR,
    "events/check_in/sql.py people_of_event": "an index on arrivals would be written with every registration",
    "events/check_in/sql.py count_people": DOOR,
    "events/check_in/sql.py version_of_list": DOOR,
    "events/console/events/event_operations.py _PEOPLE": "counts those of one event on its page",
    "events/events/sql.py COUNT_OPEN": QUOTA,
    "events/events/sql.py TEXT": QUOTA,
    "events/photos/sql.py COUNT": QUOTA,
    "events/payments/operations.py list_for_event": "adds up the payments for an event on its page",
    "events/ownership.py get_unproved_account": "once for an account, before its owner comes",
    "events/payments/reconciliation.py SELECT_PAYMENTS": "once a day; compares the newest payments",
    "events/pricing/policy.py _RATIO_PRICE": "once a minute; reckons each price that moves",
    "events/queues/release.py PACE": "one row for each queue; an index on who waits would be written with every join",
    "events/queues/release.py forget_visitors": "one row for each queue, every ten minutes",
    "events/queues/sql.py COUNT": QUOTA,
    "kit/mail/outbox.py update_gauges": "counts up to 100,000 mails that wait, every five seconds, in one process",
    "events/registrations/sql.py delete_old_rejections": "once a day",
}
"""Functions whose statements may read more than they touch, and why."""

UNTIL_ANALYZED = {
    "accounts/sessions.py list_open": "a page of somebody's account",
    "events/photos/sql.py insert_photo": QUOTA,
    "kit/postgres/pagination.py page_of_long_items": "one row for each queue",
}
"""Those that may do so until statistics have caught up with a load, which takes a minute or two."""

SMALL = {
    "event_hand_overs": "they go when everything of the event is filed anew",
    "log_keys": "one key",
    "log_pending": "they go when they are sealed",
    "mail_announcements": "they go when everybody has been told",
    "mail_releases": "they go when the mails of the organizer are released",
    "queue_signing_keys": "a few keys",
}
"""Tables of this service without many rows, and why."""


@pytest.fixture(scope="module")
def url(template_url: str) -> Iterator[str]:
    with scratch_database(template_url, "plans") as url:
        yield url


@pytest.fixture(scope="module")
def few_first() -> Iterator[None]:
    """Before an index finds a part of a name, and for a part with a filter, few registrations are looked at."""
    with pytest.MonkeyPatch.context() as constants:
        constants.setattr(substring_search, "MAX_SCANNED_ROWS", "20")
        constants.setattr(search, "MAX_FILTERED_ROWS", 20)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def work(url: str, few_first: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    """The service in a database that was filled after everything had run once, while there was little in it."""
    recorder = Recorder()
    async with paying(unlimited(url, tmp_path_factory.mktemp("data"))) as scene:
        ada, browser = await furnish(scene)
        [(arrival, issued)] = await scene.service.run_sql(
            """
            select arrival, (extract(epoch from data_link_at) * 1000000)::bigint
              from registrations join users on users.id = user_id where event_id = 1
            """
        )
        database = recorder.attend(EVENTS.database(scene.service.database.resources.settings))
        app = EVENTS.build(database).app(background=False)
        work = Work(recorder, app, database, ada, browser.http.cookies, {"arrival": arrival, "issued": issued})
        async with filled(app, work, url, fill):
            yield work


async def test_every_table_has_thousands_of_rows(work: Work, url: str) -> None:
    assert not_filled(url, SMALL) == ""


async def test_every_statement_reads_what_it_touches_right_after_a_load(work: Work) -> None:
    assert await wrong(work, EXCEPTIONS | UNTIL_ANALYZED) == ""


async def test_every_statement_reads_what_it_touches(work: Work, url: str) -> None:
    await asyncio.to_thread(analyze, url)  # loops go on meanwhile

    assert await wrong(work, EXCEPTIONS) == ""


async def test_an_index_that_is_missing_is_found(work: Work, url: str) -> None:
    [listing] = (operation for operation in service.EVERY if operation.name == "search_registrations")
    with filling(url) as connection:
        connection.execute("drop index registrations_of_event")
    work.recorder.forget()

    await work.operation(listing)

    reported = findings_of(work.recorder.plans, EXCEPTIONS)
    assert reported.startswith("events/registrations/search.py PLACED_FROM_THE_END (search_registrations; planned for")
    assert "of registrations" in reported
