"""What `holdfast check` looks at in the events service alone."""

import asyncio
import secrets
from datetime import UTC, datetime
from functools import partial

from holdfast.accounts.checks import check_mailboxes
from holdfast.events.processor.processor import ProcessorRefusal, ProcessorUnreachable
from holdfast.events.resources import MissingPackage, photo_store
from holdfast.events.settings import Settings
from holdfast.events.storage.store import Store
from holdfast.kit.contract.problems import Problem
from holdfast.kit.environment.logs import first_line
from holdfast.kit.environment.settings import DEMO_PAYMENTS_FILE
from holdfast.kit.process.checks import files, partners
from holdfast.kit.process.checks.check_list import CheckList, Fault, overdue
from holdfast.kit.process.checks.common import FOUNDATION
from holdfast.kit.process.checks.inspection import Inspection
from holdfast_verify.terminal import names_text

CHECKS = CheckList(FOUNDATION)

WEBHOOK_PATH = "/stripe/webhook"

EventsInspection = Inspection[Settings]

CHECKS.query(
    "due work",
    """
    select work, clock_timestamp() - due_at as age
      from (values ('A registration waits to be settled',
                    (select min(received_at) from registrations where status = 'pending')),
                   ('A payment waits to be looked at',
                    (select min(due_at) from payments where due_at is not null and %(takes_payments)s)),
                   ('A refund waits to be made',
                    (select min(due_at) from refunds where due_at is not null and %(takes_payments)s)),
                   ('An arrival or a change waits to be sealed into a public log',
                    (select min(at) from (select at from log_pending limit 10000) as pending)),
                   ('An announcement by mail waits', (select min(due_at) from mail_announcements)))
               as work (work, due_at)
    """,
    *overdue("{work}"),
    ok="No work is overdue.",
)

# The remedy counts again when it is run: what was found may be old when an operator reads it.
CHECKS.query(
    "seats",
    """
    with present as (
        select event_id as id, count(*) filter (where status in ('registered', 'held')) as seats,
               count(*) filter (where status = 'waitlisted') as waiting
          from registrations group by event_id)
    select id, registered_count as counted, waitlisted_count,
           coalesce(seats, 0) as seats, coalesce(waiting, 0) as waiting
      from events left join present using (id)
     where (registered_count, waitlisted_count) <> (coalesce(seats, 0), coalesce(waiting, 0))
     order by id limit 10
    """,
    Fault(
        "true",
        "Event {id} counts {counted} seats taken and {waitlisted_count} waiting; it has {seats} and {waiting}.",
        "Look whether the triggers count_inserted, count_updated and count_deleted are enabled. Then stop the service, "
        "and run in the database: update events set (registered_count, waitlisted_count) = (select count(*) filter "
        "(where status in ('registered', 'held')), count(*) filter (where status = 'waitlisted') from registrations "
        "where event_id = events.id) where id = {id};",
    ),
    ok="Every event counts the seats that are taken.",
    seconds=30,
)


@CHECKS.point("photo store", seconds=30)
async def check_photo_store(inspection: EventsInspection) -> None:
    """Whether photos can be written and read, in the bucket or in the data directory."""
    settings = inspection.settings
    if not settings.s3_bucket:
        await asyncio.to_thread(files.check_directory, inspection, settings.data_dir / "media")
        return
    photos = _open_photo_store(inspection)
    if photos is None:
        return
    # A name of its own, which no photo and no upload has.
    name, content = f"uploads/check-{secrets.token_hex(16)}", b"holdfast check"
    location = f"the bucket {settings.s3_bucket}" + (
        f" at {settings.s3_endpoint_url}" if settings.s3_endpoint_url else ""
    )
    try:
        await photos.write(name, content, "text/plain")
        async with photos.open(name) as photo:
            is_readable = photo is not None and await photo.read() == content
        await photos.delete([name])
    except Problem as problem:
        inspection.wrong(
            f"Files cannot be written to and read from {location}: {first_line(problem.__cause__ or problem)}.",
            "Correct S3_BUCKET, S3_ENDPOINT_URL, S3_REGION, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY. The key "
            "needs the rights GetObject, PutObject and DeleteObject.",
        )
        return
    if not is_readable:
        inspection.wrong(
            f"A file that was written to {location} cannot be read there.",
            "Give the key the right GetObject for this bucket.",
        )
    inspection.ok(f"Files can be written to and read from {location}.")


@CHECKS.point("photos")
async def check_photos(inspection: EventsInspection) -> None:
    keys = await inspection.database.tuples(
        "select key from photos where state = 'accepted' order by inserted_at desc, key limit 10"
    )
    if not keys:
        inspection.ok("There are no photos yet.")
        return
    photos = _open_photo_store(inspection)
    if photos is None:
        return
    lost_keys = [key for (key,) in keys if not await _has_photo(photos, key)]
    if lost_keys:
        inspection.wrong(
            f"{len(lost_keys)} of the {len(keys)} newest photos are not in the store: {names_text(lost_keys, 1)}.",
            "Restore the photos from the backup: the directory media, or the bucket. Or correct HOLDFAST_DATA_DIR "
            "or S3_BUCKET.",
        )
    inspection.ok("The newest photos are in the store." if len(keys) > 1 else "The newest photo is in the store.")


async def _has_photo(photos: Store, key: str) -> bool:
    async with photos.open(key) as photo:
        return photo is not None


def _open_photo_store(inspection: EventsInspection) -> Store | None:
    """The store of photos; None if it cannot be used, which is told. No secret is made."""
    try:
        if secret := inspection.secret():
            return photo_store(inspection.settings, secret)
        inspection.skipped("there is no secret")
    except MissingPackage as error:
        inspection.wrong(str(error), "Install the wheel of this version with the extra s3: see docs/deploy.md")
    return None


@CHECKS.point("payments")
async def check_processor(inspection: EventsInspection) -> None:
    """Whether the payment processor accepts the key, and whether its webhooks can be verified."""
    settings = inspection.settings
    if not settings.takes_payments:
        payments = "`holdfast up` takes demo payments, which move no money"
        inspection.ok(
            f"STRIPE_SECRET_KEY is not set: {payments if _has_demo_payments(settings) else 'nothing is paid by card'}."
        )
        return
    from holdfast.events.processor.stripe_api import Stripe  # its library is slow to load

    location = settings.stripe_api or "Stripe"
    # Nothing is created there, so there are no idempotency keys with a namespace.
    processor = Stripe(settings.stripe_key, "", settings.stripe_api, seconds=partners.ANSWER_TIMEOUT_SECONDS)
    try:
        async for _ in processor.payments_since(datetime.now(UTC)):
            break
    except (ProcessorRefusal, ProcessorUnreachable) as error:
        # The service takes a wrong key for a fault that may pass: it calls again.
        if isinstance(error, ProcessorRefusal) or getattr(error.__cause__, "http_status", None) == 401:
            inspection.wrong(
                f"{location} refuses STRIPE_SECRET_KEY: {first_line(error)}",
                "Set STRIPE_SECRET_KEY to the secret key of the platform's account (it begins with sk_).",
            )
        else:
            inspection.wrong(
                f"{location} cannot be reached: {first_line(error).partition('. ')[0]}.",
                "Let the firewall allow connections to api.stripe.com on port 443, or correct STRIPE_API_BASE.",
            )
        return
    if not settings.stripe_webhook_secrets:
        inspection.warning(
            f"{location} accepts the key. STRIPE_WEBHOOK_SECRET is not set, so payments are noticed late.",
            f"Add the endpoint {settings.base_url}{WEBHOOK_PATH} at the processor, and set STRIPE_WEBHOOK_SECRET "
            "to its secret (it begins with whsec_).",
        )
    inspection.ok(f"{location} accepts the key.")


@CHECKS.point("payment webhooks")
async def check_processor_webhooks(inspection: EventsInspection) -> None:
    settings = inspection.settings
    if settings.takes_payments and settings.stripe_webhook_secrets:
        await partners.check_webhooks(inspection, WEBHOOK_PATH, settings.stripe_api or "Stripe")
    else:
        inspection.ok("No webhooks of a payment processor are expected.")


def _has_demo_payments(settings: Settings) -> bool:
    """Whether the data directory is one of `holdfast up` with demo payments."""
    return not settings.database_url and (settings.data_dir / DEMO_PAYMENTS_FILE).exists()


@CHECKS.point("prices")
async def check_payable_events(inspection: EventsInspection) -> None:
    event_id = await inspection.database.value(
        """
        select id from events
         where pricing_mode <> 'free' and cancelled_at is null and published and datetime > now()
         order by datetime limit 1
        """
    )
    if event_id and not (inspection.settings.takes_payments or _has_demo_payments(inspection.settings)):
        inspection.warning(
            f"Event {event_id} has a price, and nobody can pay it.",
            "Set STRIPE_SECRET_KEY, or tell the organizer to make the event free.",
        )
    inspection.ok("Events with a price can be paid, or there are none.")


CHECKS.point("mailboxes")(partial(check_mailboxes, "users"))
