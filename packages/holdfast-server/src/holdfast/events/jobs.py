"""The background work of the events service: loops, jobs and periodic jobs."""

from holdfast.accounts import retention as accounts
from holdfast.accounts.identities import unifying
from holdfast.accounts.oauth import clients, grants, tokens, trusted_auth
from holdfast.events.draws import drawing
from holdfast.events.events import hand_over, recurrence
from holdfast.events.images import retention as images
from holdfast.events.images import sizes
from holdfast.events.keys import retention as keys
from holdfast.events.log import publishing, sealing
from holdfast.events.mails import announcements, sending
from holdfast.events.payments import background, ownership, processor_webhooks, reconciliation
from holdfast.events.pricing import changes
from holdfast.events.pricing import retention as prices
from holdfast.events.queues import release, release_tokens
from holdfast.events.queues import retention as queue_retention
from holdfast.events.queues.draws import QUEUE_DRAWS
from holdfast.events.registrations import placing, retention, settlement, substring_search
from holdfast.events.registrations.draws import EVENT_DRAWS
from holdfast.events.registrations.stored_answers import PEOPLE_IN_ANSWERS
from holdfast.events.resources import Database
from holdfast.kit.background.jobs import Job, PeriodicJob, in_batches, in_transaction
from holdfast.kit.mail import outbox
from holdfast.kit.running.idempotency import Idempotency

IDEMPOTENCY = Idempotency(people=PEOPLE_IN_ANSWERS)


async def draw(database: Database) -> None:
    """Draw queues and events whenever they are due, and place the entries of events, until cancelled."""
    await drawing.run(database, (QUEUE_DRAWS, EVENT_DRAWS), placing.place_due)


unify_addresses = unifying("users")

LEADER_LOOPS = (
    settlement.run,
    release.run,
    sealing.run,
    publishing.run,
    draw,
    recurrence.run,
    announcements.run,
    unify_addresses,
)
"""The loops that only the leader runs: one process at a time."""

LOOPS = (*LEADER_LOOPS, sending.run, sizes.run)
PAYMENT_LOOPS = (background.run,)
"""The loops that run only if there is a payment processor."""

SIGNING_KEYS = (release_tokens.KEYS, trusted_auth.KEYS)

JOBS = (Job(substring_search.INDEX, substring_search.index), Job(ownership.CANCEL, ownership.cancel_events))

PERIODIC = (
    PeriodicJob("* * * * *", in_transaction(changes.tick)),
    PeriodicJob("* * * * *", hand_over.file_anew),
    PeriodicJob("23 * * * *", images.clear_photos),
    PeriodicJob("29 * * * *", in_batches(IDEMPOTENCY.forget_answers)),
    PeriodicJob("17 3 * * *", in_batches(retention.forget_rejections)),
    PeriodicJob("37 3 * * *", retention.forget_registrants),
    PeriodicJob("47 3 * * *", in_batches(keys.forget_keys)),
    PeriodicJob("57 3 * * *", in_batches(prices.thin_histories)),
    PeriodicJob("7 4 * * *", in_batches(outbox.forget_mails)),
    PeriodicJob("11 * * * *", in_batches(accounts.forget_links)),
    PeriodicJob("21 4 * * *", in_batches(accounts.forget_known)),
    PeriodicJob("27 4 * * *", in_batches(accounts.forget_sessions)),
    PeriodicJob("13 * * * *", in_batches(grants.forget_grants)),
    PeriodicJob("19 * * * *", in_batches(tokens.forget_tokens)),
    PeriodicJob("43 * * * *", in_batches(clients.forget_clients)),
    PeriodicJob("*/10 * * * *", in_transaction(queue_retention.forget_visitors)),
    PeriodicJob("37 4 * * *", reconciliation.report),
    PeriodicJob("31 4 1 * *", in_transaction(release_tokens.rotate_queue_keys)),
    PeriodicJob("53 4 * * *", in_batches(processor_webhooks.forget)),
    PeriodicJob("41 4 1 * *", in_transaction(trusted_auth.rotate_trusted_auth_keys)),
)
