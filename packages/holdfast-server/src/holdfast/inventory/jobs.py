"""The background work of the inventory service."""

from holdfast.accounts import retention as sessions
from holdfast.accounts.identities import unifying
from holdfast.inventory.agents.tokens import KEYS
from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog.model import IMPORT
from holdfast.inventory.idempotency import IDEMPOTENCY
from holdfast.inventory.installs import subscriptions, uninstalling
from holdfast.inventory.installs.model import REDACT, SUBSCRIBE
from holdfast.inventory.mails import sending
from holdfast.inventory.resources import Database
from holdfast.inventory.stock import expiry, retention
from holdfast.inventory.sync import sync_work
from holdfast.inventory.topics import HANDLERS, subscribe
from holdfast.inventory.webhooks import inbox
from holdfast.inventory.webhooks.inbox import WebhookWork
from holdfast.kit.background import due_work
from holdfast.kit.background.jobs import Job, PeriodicJob, in_batches, in_transaction
from holdfast.kit.mail import outbox


async def handle_webhooks(database: Database) -> None:
    """Handle the storefront platform's webhooks, until cancelled."""
    await due_work.run(database, WebhookWork(database, HANDLERS))


LED = (expiry.run, unifying("merchants"))
"""One process at a time runs these."""

LOOPS = (*LED, handle_webhooks, sync_work.run, sending.run)

SIGNING_KEYS = (KEYS,)

JOBS = (
    Job(REDACT, uninstalling.delete),
    Job(SUBSCRIBE, subscribe),
    Job(IMPORT, importing.advance_import),
)

PERIODIC = (
    PeriodicJob("11 * * * *", in_batches(sessions.forget_links)),
    PeriodicJob("21 4 * * *", in_batches(sessions.forget_known)),
    PeriodicJob("27 4 * * *", in_batches(sessions.forget_sessions)),
    PeriodicJob("7 4 * * *", in_batches(outbox.forget_mails)),
    PeriodicJob("23 3 * * *", in_batches(IDEMPOTENCY.forget_answers)),
    PeriodicJob("53 3 * * *", in_batches(retention.forget_holds)),
    PeriodicJob("3 4 * * *", in_batches(retention.forget_drawn)),
    PeriodicJob("33 4 * * *", uninstalling.redact_forgotten),
    PeriodicJob("7 * * * *", subscriptions.subscribe_all),
    PeriodicJob("23 2 * * *", importing.import_all),
    PeriodicJob("13 4 * * *", in_batches(inbox.forget)),
    PeriodicJob("17 * * * *", in_batches(sync_work.forget_lags)),
    PeriodicJob("37 * * * *", in_batches(sync_work.forget_changes)),
    PeriodicJob("41 4 * * 1", in_transaction(KEYS.rotate)),
)
