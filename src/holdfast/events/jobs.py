"""The background work of the events service: loops, jobs and periodic jobs."""

from holdfast.accounts import retention as accounts
from holdfast.accounts.oauth import clients, grants, tokens, trusted_auth
from holdfast.events.events import recurrence
from holdfast.events.images import retention as images
from holdfast.events.images import sizes
from holdfast.events.keys import retention as keys
from holdfast.events.mails import announcements, sending
from holdfast.events.payments import messages, reconciliation, work
from holdfast.events.pricing import changes
from holdfast.events.pricing import retention as prices
from holdfast.events.queues import release, release_tokens
from holdfast.events.queues import retention as queue_retention
from holdfast.events.registrations import containing, retention, settlement
from holdfast.kit import outbox
from holdfast.kit.idempotency import Idempotency
from holdfast.kit.jobs import Job, Periodic, in_portions, in_transaction

IDEMPOTENCY = Idempotency()

LED = (settlement.run, release.run, recurrence.run, announcements.run)
"""One process at a time runs these."""

LOOPS = (*LED, sending.run, sizes.run)
PAYING = (work.run,)
"""Only with a payment processor."""

JOBS = (Job(containing.INDEX, containing.index),)

PERIODIC = (
    Periodic("* * * * *", in_transaction(changes.tick)),
    Periodic("23 * * * *", images.clear_photos),
    Periodic("29 * * * *", in_portions(IDEMPOTENCY.forget_answers)),
    Periodic("17 3 * * *", in_portions(retention.forget_rejections)),
    Periodic("37 3 * * *", retention.forget_registrants),
    Periodic("47 3 * * *", in_portions(keys.forget_keys)),
    Periodic("57 3 * * *", in_portions(prices.thin_histories)),
    Periodic("7 4 * * *", in_portions(outbox.forget_mails)),
    Periodic("11 * * * *", in_portions(accounts.forget_links)),
    Periodic("27 4 * * *", in_portions(accounts.forget_sessions)),
    Periodic("13 * * * *", in_portions(grants.forget_grants)),
    Periodic("19 * * * *", in_portions(tokens.forget_tokens)),
    Periodic("43 * * * *", in_portions(clients.forget_clients)),
    Periodic("*/10 * * * *", in_transaction(queue_retention.forget_visitors)),
    Periodic("37 4 * * *", reconciliation.report),
    Periodic("31 4 1 * *", in_transaction(release_tokens.rotate_queue_keys)),
    Periodic("53 4 * * *", in_portions(messages.forget)),
    Periodic("41 4 1 * *", in_transaction(trusted_auth.rotate_trusted_auth_keys)),
)
