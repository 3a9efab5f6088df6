"""The background work of the inventory service."""

from holdfast.accounts import retention as accounts
from holdfast.inventory.agents.tokens import KEYS
from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog.model import IMPORT
from holdfast.inventory.idempotency import IDEMPOTENCY
from holdfast.inventory.installs import subscriptions, uninstalling
from holdfast.inventory.installs.model import REDACT, SUBSCRIBE
from holdfast.inventory.mails import sending
from holdfast.inventory.resources import Database
from holdfast.inventory.stock import expiry, retention
from holdfast.inventory.sync import loop as sync
from holdfast.inventory.topics import HANDLERS, subscribe
from holdfast.inventory.webhooks import inbox
from holdfast.inventory.webhooks.inbox import Handling
from holdfast.kit import outbox
from holdfast.kit.jobs import Job, Periodic, in_portions, in_transaction


async def handle_webhooks(database: Database) -> None:
    """Handle what the storefront platform tells, until cancelled."""
    await Handling(database, HANDLERS).run()


LED = (expiry.run,)
"""One process at a time runs these."""

LOOPS = (*LED, handle_webhooks, sync.run, sending.run)

JOBS = (
    Job(REDACT, uninstalling.delete),
    Job(SUBSCRIBE, subscribe),
    Job(IMPORT, importing.bring_forward),
)

PERIODIC = (
    Periodic("11 * * * *", in_portions(accounts.forget_links)),
    Periodic("27 4 * * *", in_portions(accounts.forget_sessions)),
    Periodic("7 4 * * *", in_portions(outbox.forget_mails)),
    Periodic("23 3 * * *", in_portions(IDEMPOTENCY.forget_answers)),
    Periodic("53 3 * * *", in_portions(retention.forget_holds)),
    Periodic("33 4 * * *", in_portions(uninstalling.redact_forgotten)),
    Periodic("7 * * * *", subscriptions.subscribe_all),
    Periodic("23 2 * * *", importing.import_all),
    Periodic("13 4 * * *", in_portions(inbox.forget)),
    Periodic("17 * * * *", in_portions(sync.forget_lags)),
    Periodic("41 4 * * 1", in_transaction(KEYS.rotate)),
)
