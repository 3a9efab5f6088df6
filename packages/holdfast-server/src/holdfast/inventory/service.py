"""What the inventory service is put together of: its routes, its background work, what handles each topic of the
platform's webhooks, and the process that runs it.
"""

from pathlib import Path

from holdfast import accounts
from holdfast.accounts import sessions
from holdfast.accounts.identities import unifying
from holdfast.accounts.sessions import CHANNEL as SESSION_CHANNEL
from holdfast.accounts.sessions import Sessions
from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.accounts.signin.pages import SignInPages
from holdfast.accounts.stopped_mails.pages import StoppedMailsPages
from holdfast.inventory import discovery, resources
from holdfast.inventory.agents import routes as agent_routes
from holdfast.inventory.agents.credentials import Credentials
from holdfast.inventory.agents.tokens import KEYS, TokenSigner
from holdfast.inventory.api import (
    ACROSS,
    ALL_OPERATIONS,
    DESCRIPTION,
    INSTRUCTIONS,
    OPERATIONS,
    SIGN_IN,
    SIGNED,
    TEMPLATES,
    TITLE,
    VERSION,
    entries,
)
from holdfast.inventory.availability.cache import AvailabilityCache
from holdfast.inventory.availability.storefront import Storefront
from holdfast.inventory.bounds import STREAMS
from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog import webhooks as catalog
from holdfast.inventory.catalog.model import IMPORT
from holdfast.inventory.console import routes as console_routes
from holdfast.inventory.console.embedded import EmbeddedSessionGate
from holdfast.inventory.console.frame import HINT, HOME, MORE, places
from holdfast.inventory.installs import routes as installs
from holdfast.inventory.installs import subscriptions, uninstalling
from holdfast.inventory.installs.model import REDACT, SUBSCRIBE, ShopTask
from holdfast.inventory.installs.operations import InstallHooks, ShopConnector
from holdfast.inventory.mails import sending
from holdfast.inventory.merchants.operations import MerchantDirectory
from holdfast.inventory.orders import catching_up
from holdfast.inventory.orders import handling as orders
from holdfast.inventory.pages import home
from holdfast.inventory.problems import error_body
from holdfast.inventory.resources import IDEMPOTENCY, Database, Steps
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.site import SITE
from holdfast.inventory.stock import expiry, operations
from holdfast.inventory.sync import cart_check, shop_sync
from holdfast.inventory.webhooks import inbox
from holdfast.inventory.webhooks import routes as webhooks
from holdfast.inventory.webhooks.inbox import WebhookWork
from holdfast.inventory.webhooks.model import BatchHandler, Handlers
from holdfast.kit import mcp
from holdfast.kit.background import row_work
from holdfast.kit.background.tasks import Job, PeriodicJob, in_batches, in_transaction
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.mail import outbox
from holdfast.kit.process.discovery import reverse_dns
from holdfast.kit.process.service import Service
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.runner import Runner
from holdfast.kit.security import api_keys
from holdfast.kit.security.api_keys import KeyRing
from holdfast.kit.security.secrets import SealedTable

ORDERS = BatchHandler(orders.handle_changed_orders)
LEVELS = BatchHandler(catalog.store_levels)

HANDLERS: Handlers = {
    "app/scopes_update": uninstalling.store_granted_scopes,
    "app/uninstalled": uninstalling.uninstall,
    "shop/redact": uninstalling.redact,
    "orders/create": ORDERS,
    "orders/updated": ORDERS,
    "orders/cancelled": ORDERS,
    "orders/edited": orders.handle_edit,
    "refunds/create": orders.handle_refund,
    "inventory_levels/connect": LEVELS,
    "inventory_levels/update": LEVELS,
    "inventory_levels/disconnect": catalog.forget_level,
    "inventory_items/update": catalog.store_item,
    "inventory_items/delete": catalog.forget_item,
    "products/create": catalog.store_product,
    "products/update": catalog.store_product,
    "products/delete": catalog.forget_product,
    "locations/create": catalog.store_location,
    "locations/update": catalog.store_location,
    "locations/activate": catalog.store_location,
    "locations/deactivate": catalog.store_location,
    "locations/delete": catalog.forget_location,
}

AFTER_INSTALL: InstallHooks = (subscriptions.enqueue, importing.begin, cart_check.forget)


async def subscribe(steps: Steps, of: ShopTask) -> None:
    """Subscribe to all these topics, and apply the orders whose webhooks did not come."""
    await subscriptions.subscribe(steps, of, HANDLERS.keys())
    await catching_up.catch_up(steps, of)


async def handle_webhooks(database: Database) -> None:
    """Handle the storefront platform's webhooks, until cancelled."""
    await row_work.run(database, WebhookWork(database, HANDLERS))


LED = (expiry.run, unifying("merchants"))
"""One process at a time runs these."""

LOOPS = (*LED, handle_webhooks, shop_sync.run, sending.run)

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
    PeriodicJob("53 3 * * *", in_batches(operations.forget_holds)),
    PeriodicJob("3 4 * * *", in_batches(operations.forget_drawn)),
    PeriodicJob("33 4 * * *", uninstalling.redact_forgotten),
    PeriodicJob("7 * * * *", subscriptions.subscribe_all),
    PeriodicJob("23 2 * * *", importing.import_all),
    PeriodicJob("13 4 * * *", in_batches(inbox.forget)),
    PeriodicJob("17 * * * *", in_batches(shop_sync.forget_lags)),
    PeriodicJob("37 * * * *", in_batches(shop_sync.forget_changes)),
    PeriodicJob("41 4 * * 1", in_transaction(KEYS.rotate)),
)


def service(database: Database) -> Service:
    """The inventory service on a database."""
    resources = database.resources
    settings = resources.settings
    runner = Runner(ALL_OPERATIONS, database, IDEMPOTENCY)
    # Under a crowd those who wait until their key is found are work that waits, too.
    ring = KeyRing(database, shops.find_callers, waiting=runner.admission.work)
    limits = Limits(settings.rate_limit_storage_url, settings.limits, shared=settings.sign_in_shared_limits)
    credentials = Credentials(ring, TokenSigner(database, settings.base_url, settings.is_issuer), settings.base_url)
    live = AvailabilityCache(database)
    streams = Streams(
        STREAMS,
        {
            "address": settings.streams_per_address,
            "key": settings.streams_per_key,
            "tenant": settings.streams_per_shop,
        },
        settings.max_streams,
    )
    endpoint = agents(settings.base_url, live)
    # People in the console do not wait behind the programs of their own shop.
    console_runner = Runner(ALL_OPERATIONS, database, IDEMPOTENCY)
    connecting = ShopConnector(database, AFTER_INSTALL)
    across = Runner(ACROSS, database.across_tenants())
    directory = MerchantDirectory()
    sessions = Sessions(database, directory, settings.base_url)
    gate = EmbeddedSessionGate(sessions, database, connecting)
    signed_in = SignedInPages(
        gate, SITE, limits, resources.secret, settings.base_url, first=lambda _: None, places=places
    )
    signing_in = SignInPages(
        SIGN_IN,
        directory,
        across,
        limits,
        signed_in,
        resources.secret,
        base_url=settings.base_url,
        home=HOME,
        more=MORE,
        hint=HINT,
    )
    run = {
        **{operation.name: console_runner[operation] for operation in ALL_OPERATIONS},
        **{operation.name: across[operation] for operation in ACROSS},
    }
    return Service(
        database=database,
        runner=runner,
        operations=OPERATIONS,
        routes=[
            *Storefront(settings.base_url, resources, limits, live, streams).routes(),
            *agent_routes.routes(database, limits, credentials),
            *discovery.routes(endpoint, OPERATIONS, DESCRIPTION),
            *home.routes(settings.base_url, limits),
            *webhooks.routes(database, limits, HANDLERS),
            *installs.routes(database, limits, connecting),
            *gate.routes(limits),
            *signing_in.routes(),
            *StoppedMailsPages(across, limits, SITE, resources.secret).routes(),
            *console_routes.routes(
                signed_in, run, settings.base_url, resources.platform, settings.client_id, live, streams
            ),
        ],
        authenticate=credentials.caller,
        limits=limits,
        caches=[
            ring.forgetting,
            sessions.forgetting,
            live.listening,
            lambda: database.listen(api_keys.CHANNEL, lambda _: streams.wake()),
            lambda: database.listen(SESSION_CHANNEL, lambda _: streams.wake()),
        ],
        agents=endpoint,
        site=SITE,
        streams=streams,
        error_body=error_body,
        keeps_slash=SIGNED,
        loops=LOOPS,
        led=LED,
        kept_by_each=resources.settings.kept_by_each(),
        drain_seconds=resources.settings.drain_seconds,
        metrics_token=resources.settings.metrics_token,
        jobs=JOBS,
        periodic=PERIODIC,
        signing_keys=SIGNING_KEYS,
        closing=(resources.platform.close,),
    )


def agents(base_url: str, live: AvailabilityCache) -> mcp.EndpointConfig:
    """The endpoint for agents, `/mcp`."""
    return mcp.EndpointConfig(
        name=reverse_dns(base_url, "inventory"),
        title=TITLE,
        version=VERSION,
        base_url=base_url,
        instructions=INSTRUCTIONS,
        templates=TEMPLATES,
        listed_by=mcp.ListedBy("list_pools", entries),
        changes=live.changes,
        missed=live.missed,
        limit="messages",
        resource_metadata=f"{base_url}/.well-known/oauth-protected-resource/mcp",
        scope="read_inventory read_pools",
    )


INVENTORY = ServiceProcess(
    name="inventory",
    title="Holdfast Inventory",
    settings=Settings,
    resources=resources.build,
    build=service,
    schema_folders=(accounts.FOLDER, Path(__file__).parent),
    factory="holdfast.inventory.service:worker",
    sealed=(
        SealedTable("api_keys", "id", "bigint"),
        SealedTable("signing_keys", "kid", "text"),
        SealedTable("idempotency_answers", "id", "bytea"),
        SealedTable("platform_tokens", "shop_id", "bigint"),
    ),
    tenancy=resources.TENANCY,
    error_body=error_body,
    other_services={"Holdfast Events": "registrations"},
)
worker = INVENTORY.worker
