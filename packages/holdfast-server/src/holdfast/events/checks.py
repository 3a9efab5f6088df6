"""What `holdfast check` looks at in the events service alone."""

import asyncio
import secrets
from datetime import UTC, datetime
from typing import LiteralString

import structlog

from holdfast.accounts.checks import check_mailboxes
from holdfast.events.processor.processor import ProcessorRefusal, ProcessorUnreachable
from holdfast.events.resources import MissingPackage, Resources, build
from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import Problem
from holdfast.kit.environment.logs import first_line
from holdfast.kit.environment.settings import DEMO_PAYMENTS_FILE
from holdfast.kit.postgres.database import Reader
from holdfast.kit.process.checks import files, partners
from holdfast.kit.process.checks.common import FOUNDATION
from holdfast.kit.process.checks.inspection import (
    AnyCheck,
    Check,
    DatabaseCheck,
    Finding,
    Findings,
    Inspection,
    ok,
    skipped,
    warning,
    wrong,
)
from holdfast.kit.process.checks.work import overdue
from holdfast_verify.terminal import names_text

WEBHOOK_PATH = "/stripe/webhook"

SUMS_TIMEOUT_SECONDS = 30.0
"""Seconds to read all registrations."""

SAMPLED_PHOTOS = 10

EventsInspection = Inspection[Settings]


async def check_photo_store(inspection: EventsInspection) -> Findings:
    """Whether photos can be written and read, in the bucket or in the data directory."""
    settings = inspection.settings
    if not settings.s3_bucket:
        return await asyncio.to_thread(
            files.look_at_directory, inspection, settings.data_dir / "media", "HOLDFAST_DATA_DIR"
        )
    try:
        resources = _resources(inspection)
    except MissingPackage as error:
        return [wrong(str(error), "Install the wheel of this version with the extra s3: see docs/deploy.md")]
    if resources is None:
        return [skipped("there is no secret")]
    # A name of its own, which no photo and no upload has.
    name, content = f"uploads/check-{secrets.token_hex(16)}", b"holdfast check"
    place = f"the bucket {settings.s3_bucket}" + (f" at {settings.s3_endpoint_url}" if settings.s3_endpoint_url else "")
    try:
        with structlog.testing.capture_logs():
            await resources.photos.write(name, content, "text/plain")
            async with resources.photos.open(name) as opened:
                is_readable = opened is not None and await opened.read() == content
            await resources.photos.delete([name])
    except Problem as problem:
        return [
            wrong(
                f"Files cannot be written to and read from {place}: {first_line(problem.__cause__ or problem)}.",
                "Correct S3_BUCKET, S3_ENDPOINT_URL, S3_REGION, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY. The key "
                "needs the rights GetObject, PutObject and DeleteObject.",
            )
        ]
    if not is_readable:
        return [
            wrong(
                f"A file that was written to {place} cannot be read there.",
                "Give the key the right GetObject for this bucket.",
            )
        ]
    return [ok(f"Files can be written to and read from {place}.")]


async def check_photos(inspection: EventsInspection, reader: Reader[None]) -> Findings:
    """Whether the photos that the database names are in the store."""
    rows = await reader.tuples(
        "select key from photos where state = 'accepted' order by inserted_at desc, key limit %(most)s",
        {"most": SAMPLED_PHOTOS},
    )
    if not rows:
        return [ok("There are no photos yet.")]
    try:
        resources = _resources(inspection)
    except MissingPackage:
        resources = None
    if resources is None:
        return [skipped("the store of photos cannot be used")]
    missing = [key for (key,) in rows if not await _exists(resources, key)]
    if missing:
        return [
            wrong(
                f"{len(missing)} of the {len(rows)} newest photos are not in the store: {names_text(missing, 1)}.",
                "Restore the photos from the backup: the directory media, or the bucket. Or correct HOLDFAST_DATA_DIR "
                "or S3_BUCKET.",
            )
        ]
    return [ok("The newest photos are in the store." if len(rows) > 1 else "The newest photo is in the store.")]


async def _exists(resources: Resources, key: str) -> bool:
    async with resources.photos.open(key) as opened:
        return opened is not None


def _resources(inspection: EventsInspection) -> Resources | None:
    """The resources of the service; None if there is no secret, which would be made otherwise."""
    return build(inspection.settings) if inspection.secret() else None


async def check_processor(inspection: EventsInspection) -> Findings:
    """Whether the payment processor accepts the key, and whether its webhooks can be verified."""
    settings = inspection.settings
    if not settings.takes_payments:
        if _has_demo_payments(settings):
            return [ok("STRIPE_SECRET_KEY is not set: `holdfast up` takes demo payments, which move no money.")]
        return [ok("STRIPE_SECRET_KEY is not set: nothing is paid by card.")]
    from holdfast.events.processor.stripe_api import Stripe  # its library is slow to load

    place = settings.stripe_api or "Stripe"
    # Nothing is made there, so there are no idempotency keys with a namespace.
    processor = Stripe(settings.stripe_key, "", settings.stripe_api, seconds=partners.ANSWER_TIMEOUT_SECONDS)
    try:
        async for _ in processor.taken_since(datetime.now(UTC)):
            break
    except (ProcessorRefusal, ProcessorUnreachable) as error:
        # To the service a wrong key is a fault that may pass: it calls again.
        if isinstance(error, ProcessorRefusal) or getattr(error.__cause__, "http_status", None) == 401:
            return [
                wrong(
                    f"{place} refuses STRIPE_SECRET_KEY: {first_line(error)}",
                    "Set STRIPE_SECRET_KEY to the secret key of the platform's account (it begins with sk_).",
                )
            ]
        return [
            wrong(
                f"{place} cannot be reached: {first_line(error).partition('. ')[0]}.",
                "Let the firewall allow connections to api.stripe.com on port 443, or correct STRIPE_API_BASE.",
            )
        ]
    if not settings.stripe_webhook_secrets:
        return [
            warning(
                f"{place} accepts the key. STRIPE_WEBHOOK_SECRET is not set, so payments are noticed late.",
                f"Add the endpoint {settings.base_url}{WEBHOOK_PATH} at the processor, and set STRIPE_WEBHOOK_SECRET "
                "to its secret (it begins with whsec_).",
            )
        ]
    return [ok(f"{place} accepts the key.")]


async def check_processor_webhooks(inspection: EventsInspection) -> Findings:
    """Whether the address of the processor's webhooks leads to the service."""
    settings = inspection.settings
    if not settings.takes_payments or not settings.stripe_webhook_secrets:
        return [ok("No webhooks of a payment processor are expected.")]
    return await partners.check_webhook_address(inspection, WEBHOOK_PATH, settings.stripe_api or "Stripe")


def _has_demo_payments(settings: Settings) -> bool:
    """Whether the data directory is one of `holdfast up` with demo payments."""
    return not settings.database_url and (settings.data_dir / DEMO_PAYMENTS_FILE).exists()


async def check_payable_events(inspection: EventsInspection, reader: Reader[None]) -> Findings:
    """Whether events with a price can be paid."""
    settings = inspection.settings
    if not (settings.takes_payments or _has_demo_payments(settings)) and (
        event_id := await reader.value(
            """
            select id from events
             where pricing_mode <> 'free' and cancelled_at is null and published and datetime > now()
             order by datetime limit 1
            """
        )
    ):
        return [
            warning(
                f"Event {event_id} has a price, and nobody can pay it.",
                "Set STRIPE_SECRET_KEY, or tell the organizer to make the event free.",
            )
        ]
    return [ok("Events with a price can be paid, or there are none.")]


async def check_seats(_: EventsInspection, reader: Reader[None]) -> Findings:
    """Whether each event counts the seats and the waiting list that it has."""
    rows = await reader.tuples(SEATS)
    findings = [
        wrong(
            f"Event {id} counts {registered} seats taken and {waitlisted} waiting; it has {seats} and {waiting}.",
            "Look whether the triggers count_inserted, count_updated and count_deleted are enabled. Then stop the "
            f"service, and run in the database: {COUNT_AGAIN.format(id)}",
        )
        for id, registered, waitlisted, seats, waiting in rows
    ]
    return findings or [ok("Every event counts the seats that are taken.")]


COUNT_AGAIN = (
    "update events set (registered_count, waitlisted_count) = (select count(*) filter (where status in ('registered', "
    "'held')), count(*) filter (where status = 'waitlisted') from registrations where event_id = events.id) "
    "where id = {};"
)
"""What corrects the counts of an event. It counts by itself: what was found may be old when an operator reads it."""

SEATS: LiteralString = """
    with counted as (
        select event_id, count(*) filter (where status in ('registered', 'held')) as seats,
               count(*) filter (where status = 'waitlisted') as waiting
          from registrations group by event_id)
    select id, registered_count, waitlisted_count, coalesce(seats, 0), coalesce(waiting, 0)
      from events left join counted on event_id = id
     where (registered_count, waitlisted_count) <> (coalesce(seats, 0), coalesce(waiting, 0))
     order by id limit 10
"""


async def check_due_work(inspection: EventsInspection, reader: Reader[None]) -> Findings:
    """Whether work that is due waits for long."""
    rows = await reader.tuples(OVERDUE)
    findings = list[Finding]()
    for name, seconds in rows:
        if inspection.settings.takes_payments or name not in WORK_WITH_PAYMENTS:
            findings += overdue(inspection, name, seconds)
    return findings or [ok("No work is overdue.")]


WORK_WITH_PAYMENTS = {"A payment waits to be looked at", "A refund waits to be made"}

OVERDUE: LiteralString = """
    select name, extract(epoch from clock_timestamp() - due_at)::float8
      from (values ('A registration waits to be settled',
                    (select min(received_at) from registrations where status = 'pending')),
                   ('A payment waits to be looked at', (select min(due_at) from payments where due_at is not null)),
                   ('A refund waits to be made', (select min(due_at) from refunds where due_at is not null)),
                   ('An arrival or a change waits to be sealed into a public log',
                    (select min(at) from (select at from log_pending limit 10000) as pending)),
                   ('An announcement by mail waits', (select min(due_at) from mail_announcements)))
               as work (name, due_at)
"""

CHECKS: tuple[AnyCheck, ...] = (
    *FOUNDATION,
    DatabaseCheck("due work", check_due_work),
    DatabaseCheck("seats", check_seats, SUMS_TIMEOUT_SECONDS),
    Check("photo store", check_photo_store, SUMS_TIMEOUT_SECONDS),
    DatabaseCheck("photos", check_photos),
    Check("payments", check_processor),
    Check("payment webhooks", check_processor_webhooks),
    DatabaseCheck("prices", check_payable_events),
    DatabaseCheck("mailboxes", check_mailboxes("users")),
)
