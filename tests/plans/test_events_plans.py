"""Statements of the events service read few rows, even when an organizer has much of everything."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from holdfast.events import api, ownership, service
from holdfast.events.agents.approval_facts import approval_gate
from holdfast.events.console.account.start_pages import PROVE
from holdfast.events.console.mails.mails_page import LIST as LIST_MAILS
from holdfast.events.console.people.registrations_pages import SEARCH
from holdfast.events.keys.operations import KEY_LIMITS
from holdfast.events.log import head_log, sealing
from holdfast.events.ownership import CancelEventsArguments
from holdfast.events.pages.event.page import previews
from holdfast.events.pages.part import READ_ORGANIZER
from holdfast.events.push.encryption import sender_keys
from holdfast.events.registrations import search, substring_search
from holdfast.events.registrations.substring_search import IndexArguments
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import api_key, person, system
from holdfast.kit.operations.operation import Operation
from holdfast.kit.operations.steps import Steps
from tests.events.agents.samples import ANN, ARGUMENTS, PHOTOS
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import Client, eventually, unlimited
from tests.helpers.form_browser import Browser
from tests.helpers.payments import PaymentScene, open_payment_scene
from tests.helpers.photos import accept_photos
from tests.plans import running
from tests.plans.events_arguments import OTHER_ARGUMENTS, SCAN
from tests.plans.events_rows import STRANGERS, fill
from tests.plans.filling import filling_database
from tests.plans.judging import findings_of
from tests.plans.running import analyze, attempt, not_filled

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOOR = "counts or lists those of one event at its entrance"
QUOTA = "counts what an organizer has, which a quota bounds"
DAY = "links are kept for a day"
OLD_QUEUES = "one row for each queue, every ten minutes"

EXCEPTIONS = {
    "accounts/sessions.py forget_sessions": "once a day; an index for it would be written with every request",
    "accounts/signin/links.py forget": DAY,
    "accounts/signin/links.py list_requested": DAY,
    "events/check_in/seat_handover.py COUNTS": DOOR,
    "events/check_in/sql.py SCANS": DOOR,
    "events/check_in/sql.py people_of_event": "an index on arrivals would be written with every registration",
    "events/check_in/sql.py count_people": DOOR,
    "events/check_in/sql.py version_of_list": DOOR,
    "events/events/sql.py COUNT_OPEN": QUOTA,
    "events/events/sql.py TEXT": QUOTA,
    "events/events/overview.py _PEOPLE": "counts those of one event on its page",
    "events/photos/sql.py COUNT": QUOTA,
    "events/payments/operations.py list_for_event": "adds up the payments for an event on its page",
    "events/ownership.py get_unproved_account": "once for an account, before its owner comes",
    "events/payments/reconciliation.py SELECT_PAYMENTS": "once a day; compares the newest payments",
    "events/pricing/model.py _RATIO_PRICE": "once a minute; reckons each price that moves",
    "events/queues/release.py RELEASING_QUEUES": "one row for each queue; every join would write an index on who waits",
    "events/queues/visitor_retention.py _delete_visitors": OLD_QUEUES,
    "events/queues/visitor_retention.py _delete_releases": OLD_QUEUES,
    "events/queues/visitor_retention.py _delete_queues": OLD_QUEUES,
    "events/queues/sql.py COUNT": QUOTA,
    "kit/mail/mail_gauges.py update_gauges": "counts up to 100,000 mails that wait, every five seconds, in one process",
    "events/registrations/sql.py delete_old_rejections": "once a day",
}
"""Functions whose statements may read more than they touch, and why."""

UNTIL_ANALYZED = {
    "kit/webhooks/delivery_leases.py LEASE": "one row for each endpoint",
    "accounts/sessions.py list_open": "a page of the account of a person",
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


STORED = """
    with refunded as (
        insert into refunds (payment_id, amount, reason) select id, 1, 'by_organizer' from payments),
    named as (update users set public_id = 'beabeabe' where email = 'bea@example.com'),
    linked as (update users set data_link_at = now() where email = 'ann@example.com'),
    scanned as (
        insert into check_in_scans (event_id, id, user_id, device, told_at, is_entry, changed)
        select 1, %(scan)s, id, 'Door', now(), true, 1 from users where email = 'ann@example.com'),
    logged as (insert into logs (event_id) values (1) on conflict do nothing),
    limited as (
        insert into agent_limits (tenant_id, key_id, daily_limit, allowed) values (1, 1, 1000000, 1000000)),
    client as (
        insert into oauth_clients (id, name, redirect_uris) values ('app', 'App', '{https://app.example/}')
        returning id)
    insert into oauth_grants (account_id, tenant_id, client_id, scopes, expires_at)
    select 1, 1, id, '{read_events}', now() + interval '30 days' from client
"""
"""What else is stored before everything runs once."""

PENDING = """
    insert into log_pending (log_id, kind, first_number, received_at, user_ids, nonces, outcomes)
    select id, 'arrivals', 1 + coalesce((select arrivals from log_heads where log_id = logs.id), 0), array[now()],
           array[10007], array[gen_random_uuid()], '{registered}'
      from logs where event_id = 1 and closed_at is null
"""
"""What is to be sealed into the log of event 1."""

LOG = ("checkpoint", "key", "proofs/1", "head-proof", "tile/0/000.p/1", "tile/entries/000.p/1")
"""Addresses of the log of event 1."""

OF_JOBS: dict[str, Any] = {
    substring_search.INDEX.name: IndexArguments(1),
    ownership.CANCEL.name: CancelEventsArguments(149),
}
"""Arguments of the jobs."""

IN_PATHS = {
    "event_id": "1",
    "queue_id": "1",
    "id": "1",
    "user_id": ANN,
    "mail_id": "7",
    "link": "no-link",
    "slug": "other-7",
    "version": "none",
    "name": "none",
    "number": "1",
    "generation": "1",
    "endpoint_id": "1",
    "message_id": "msg_1",
}


async def prepare_scene(scene: PaymentScene) -> tuple[Client, Browser]:
    """An organizer who is signed in: event 1 has photos, the price of 2 moves, 3 is paid for, 4 opens with a draw;
    queue 1, and Ann."""
    service = scene.service
    ada, browser = await sign_in_organizer(service)
    link = (await ada.post("/api/stripe/onboarding_link")).json()["data"]
    scene.processor.finish(link["stripe_account_id"])
    await service.run_sql("update payout_accounts set due_at = now()")
    await scene.work()
    await service.wait_for_notices()
    await ada.create_queue()
    await ada.post("/api/webhook_endpoints", {"webhook_endpoint": {"url": "https://shop.example/hooks"}})
    await accept_photos(service, *PHOTOS)
    await ada.create_event(image_keys=PHOTOS[:2], timezone="Europe/Berlin", cancellation_hours=24)
    await ada.create_event(pricing_mode="dynamic", price=1500, min_price=1000, max_price=2000)
    await scene.event(ada, capacity=5)
    await ada.create_event(opens_at="2040-01-01T00:00:00Z", datetime="2040-02-01T00:00:00Z")
    await ada.post("/api/keys", {"api_key": {"name": "Box office"}})
    await ada.register(1, email="ann@example.com")
    await service.settle()
    await service.run_sql("update users set public_id = %(ann)s where email = 'ann@example.com'", ann=ANN)
    buyer = await scene.register(3, "bea@example.com")
    await buyer.pay()
    await scene.deliver()
    await service.run_sql(STORED, scan=SCAN)
    await scene.work()
    return ada, browser


class EventsWork(running.PlanWork):
    """The service, and an organizer who has its pages open.

    ann    the numbers in the links that Ann has
    """

    def __init__(self, settings: Settings, ada: Client, cookies: httpx2.Cookies, ann: dict[str, int]) -> None:
        super().__init__(service.EVENTS, service.PARTS, settings, cookies)
        self.ada = ada
        self.ann = ann
        self.strangers = iter(STRANGERS)
        self.entries = itertools.count()
        self.capacities = itertools.count(100)

    async def run_all(self) -> None:
        for operation in service.ALL_OPERATIONS:
            await self.operation(operation)
        for job in (task for part in self.parts for task in part.tasks):
            self.recorder.doing = f"the job {job.task.name}"
            await job.run(Steps(self.database), OF_JOBS[job.task.name])
        await self.operation(PROVE, account_id=next(self.strangers), session_id=0, keep=False)
        await self.operation(SEARCH, text="person7")
        for status in ("unpaid", "absent"):
            await self.operation(SEARCH, status=status)
        await self.operation(LIST_MAILS, recipient="ann@example.com")
        await self.operation(READ_ORGANIZER, after=None)
        await self.operation(READ_ORGANIZER, after=None, before=["2040-01-01T00:00:00Z", 1])
        [update] = (operation for operation in api.OPERATIONS if operation.name == "update_event")
        gate = approval_gate(self.database.resources.settings.base_url)
        change = {"event_id": 1, "capacity": next(self.capacities)}
        await self.ask_first(gate, update, api_key(1, self.ada.id), change)
        await self.pages()
        await self.get("/api/events", headers={"X-API-Key": self.ada.key or ""})
        await self.for_admins()
        await self.database.transact(lambda tx: tx.run(PENDING))
        await self.enter()
        await self.background()
        await eventually(self.head_is_published)
        for path in ("/log/keys", *(f"/log/events/1/{path}" for path in LOG)):
            await self.get(path)
        await self.timed()

    async def operation(self, operation: Operation, **overrides: Any) -> None:
        """Run an operation with its arguments, or with those that are given."""
        self.recorder.doing = operation.name
        known = {**ARGUMENTS, **OTHER_ARGUMENTS}
        arguments = {**known[operation.name], **overrides}
        fields = operation.command.__struct_fields__
        arguments |= {name: value for name, value in self.ann.items() if name in fields}
        if "sender_key" in fields:
            arguments |= {"sender_key": sender_keys(self.database.resources.secret)[0].public_key}
        caller = person(1, self.ada.id) if operation in KEY_LIMITS.operations else api_key(1, self.ada.id)
        await attempt(self.database, operation, caller, arguments)

    async def page(self, path: str) -> None:
        signature = previews(self.database.resources.secret).sign(IN_PATHS["event_id"])
        await self.get(path.format(**IN_PATHS, signature=signature), range(200, 500))

    async def enter(self) -> None:
        """Register a guest for event 4, which opens with a draw."""
        self.recorder.doing = "an entry"
        registration = {"event_id": 4, "email": f"entry{next(self.entries)}@example.com"}
        key = {"X-API-Key": self.ada.key or ""}
        answer = await self.browser.post("/api/registrations", json={"registration": registration}, headers=key)
        assert answer.status_code == 202, answer.text

    async def head_is_published(self) -> bool:
        """Seal and publish once more. Returns whether the head of event 1's log is in a published head log."""
        for loop in (sealing.LOOP, head_log.LOOP):
            await self.turn(loop.name, loop.run(self.database))
        return (await self.browser.get("/log/events/1/head-proof")).status_code == 200

    async def for_admins(self) -> None:
        """Read each list for an admin, who may see everything."""
        for operation in api.OPERATIONS:
            if operation.name.startswith("list_"):
                self.recorder.doing = f"{operation.name} of an admin"
                arguments = {**OTHER_ARGUMENTS, **ARGUMENTS}.get(operation.name, {})
                await attempt(self.database, operation, system(), arguments)


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
async def work(url: str, few_first: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EventsWork]:
    """The service in a database that was filled after everything had run once, while there was little in it."""
    async with open_payment_scene(unlimited(url, tmp_path_factory.mktemp("data"))) as scene:
        ada, browser = await prepare_scene(scene)
        [(arrival, issued)] = await scene.service.run_sql(
            """
            select arrival, (extract(epoch from data_link_at) * 1000000)::bigint
              from registrations join users on users.id = user_id where event_id = 1
            """
        )
        settings, ann = scene.service.database.resources.settings, {"arrival": arrival, "issued": issued}
        async with EventsWork(settings, ada, browser.http.cookies, ann).filled(fill) as work:
            yield work


async def test_every_table_of_the_plans_has_thousands_of_rows(work: EventsWork, url: str) -> None:
    assert not_filled(url, SMALL) == ""


async def test_every_statement_reads_few_rows_right_after_a_load(work: EventsWork) -> None:
    assert await work.wrong(EXCEPTIONS | UNTIL_ANALYZED) == ""


async def test_every_statement_reads_few_rows(work: EventsWork, url: str) -> None:
    await asyncio.to_thread(analyze, url)  # loops go on meanwhile

    assert await work.wrong(EXCEPTIONS) == ""


async def test_a_missing_index_is_found_by_the_plans(work: EventsWork, url: str) -> None:
    [listing] = (operation for operation in service.ALL_OPERATIONS if operation.name == "search_registrations")
    with filling_database(url) as connection:
        connection.execute("drop index registrations_of_event")
    work.recorder.begin()

    await work.operation(listing)

    reported = findings_of(work.recorder.plans, EXCEPTIONS)
    assert reported.startswith("events/registrations/search.py WITH_POSITIONS_FROM_THE_END (search_registrations)")
    assert "of registrations" in reported
