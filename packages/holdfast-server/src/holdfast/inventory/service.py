"""The inventory service: its parts, its endpoint for agents, and its process."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast import accounts
from holdfast.accounts.agents.approvals import RequestApprovals, RequestFinder
from holdfast.accounts.part import account_part
from holdfast.accounts.sessions import SESSIONS_CHANNEL, Sessions
from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.accounts.webhooks import part as outgoing_webhooks
from holdfast.inventory import discovery, resources
from holdfast.inventory.agents import part as agents
from holdfast.inventory.agents import routes as agent_routes
from holdfast.inventory.agents.actions import AgentActionLog
from holdfast.inventory.agents.approval_facts import approval_gate, find_credentials, read_facts
from holdfast.inventory.agents.credentials import Credentials
from holdfast.inventory.agents.tokens import TokenSigner
from holdfast.inventory.api import (
    DESCRIPTION,
    INSTRUCTIONS,
    OPERATIONS,
    SIGNED_PATH_PREFIXES,
    TEMPLATES,
    TITLE,
    VERSION,
    entries,
)
from holdfast.inventory.availability import part as availability
from holdfast.inventory.availability.cache import AvailabilityCache
from holdfast.inventory.bounds import STREAMS
from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog import part as catalog
from holdfast.inventory.console import part as console
from holdfast.inventory.console.embedded_sessions import EmbeddedSessionGate
from holdfast.inventory.console.frame import ACCOUNT_TEMPLATE, HOME, SIGN_IN_HINT_TEMPLATE, navigation
from holdfast.inventory.context import Context
from holdfast.inventory.installs import part as installs
from holdfast.inventory.installs import routes as install_routes
from holdfast.inventory.installs import subscriptions
from holdfast.inventory.installs.operations import InstallHooks, ShopConnector
from holdfast.inventory.mails import part as mails
from holdfast.inventory.merchants.operations import MerchantDirectory
from holdfast.inventory.orders import part as orders
from holdfast.inventory.pages import part as pages
from holdfast.inventory.partner_webhooks.model import Handlers
from holdfast.inventory.partner_webhooks.part import partner_webhook_part
from holdfast.inventory.problems import error_body
from holdfast.inventory.replays import part as replays
from holdfast.inventory.resources import IDEMPOTENCY, Database
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shop_operations
from holdfast.inventory.shops import part as shops
from holdfast.inventory.site import SITE
from holdfast.inventory.stock import part as stock
from holdfast.inventory.sync import cart_check
from holdfast.inventory.sync import part as sync
from holdfast.kit import mcp
from holdfast.kit.http.event_streams import StreamOwner, Streams
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.process.discovery import reverse_dns
from holdfast.kit.process.part import Endpoints, Part
from holdfast.kit.process.service import Service
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security import api_keys
from holdfast.kit.security.api_keys import KeyRing

HANDLERS: Handlers = {**installs.TOPICS, **orders.TOPICS, **catalog.TOPICS}
"""What handles the webhooks of each topic."""

AFTER_INSTALL: InstallHooks = (subscriptions.enqueue, importing.begin, cart_check.forget)


ACCOUNTS = account_part("merchants", MerchantDirectory(), shop_operations.SHOP_LIMITS, Context)

PARTS: Sequence[Part[Any]] = (
    ACCOUNTS,
    console.PART,
    pages.PART,
    mails.PART,
    catalog.PART,
    replays.PART,
    sync.PART,
    partner_webhook_part(HANDLERS, Context),
    orders.subscription_part(HANDLERS.keys()),
    availability.PART,
    shops.PART,
    agents.PART,
    stock.PART,
    installs.PART,
    outgoing_webhooks.PART,
)

ALL_OPERATIONS = (*OPERATIONS, *console.PART.operations)
"""All operations that run for a shop: those of the table, and those of pages only."""

TENANTLESS_OPERATIONS = (*console.TENANTLESS_OPERATIONS, *ACCOUNTS.operations)
"""The operations that run for no shop: for people before they are signed in, and on keys."""


def service(database: Database) -> Service:
    """The inventory service on its database."""
    resources = database.resources
    settings = resources.settings
    # Programs run their calls with this runner. Only it stores what agents did, and asks a person first.
    runner = Runner(
        ALL_OPERATIONS, database, IDEMPOTENCY, AgentActionLog(), approval_gate(OPERATIONS, settings.base_url)
    )
    # Requests that wait until their key is found count as work that waits.
    ring = KeyRing(database, shop_operations.find_callers, wait_context=runner.admission.work)
    limits = Limits(settings.rate_limit_storage_url, settings.limits, shared=settings.sign_in_shared_limits)
    credentials = Credentials(ring, TokenSigner(database, settings.base_url, settings.is_issuer), settings.base_url)
    connector = ShopConnector(database, AFTER_INSTALL)
    gate = EmbeddedSessionGate(Sessions(database, MerchantDirectory(), settings.base_url), database, connector)
    context = Context(
        database,
        runner,
        console_runner=Runner(ALL_OPERATIONS, database, IDEMPOTENCY),
        account_runner=Runner(TENANTLESS_OPERATIONS, database.across_tenants()),
        limits=limits,
        streams=streams(settings),
        signed_in=SignedInPages(
            gate,
            SITE,
            limits,
            resources.secret,
            settings.base_url,
            home=HOME,
            navigation=navigation,
            account_template=ACCOUNT_TEMPLATE,
            hint_template=SIGN_IN_HINT_TEMPLATE,
        ),
        approvals=RequestApprovals(
            RequestFinder(OPERATIONS, database.across_tenants(), find_credentials, read_facts), runner
        ),
        availability=AvailabilityCache(database),
    )
    endpoint = agent_endpoint(settings.base_url, context.availability)
    service_endpoints = Endpoints(
        [
            *discovery.routes(endpoint, OPERATIONS, DESCRIPTION),
            *agent_routes.routes(database, limits, credentials),
            *install_routes.routes(database, limits, connector),
            *gate.routes(limits),
        ],
        caches=[
            ring.forgetting,
            lambda: database.listen(api_keys.CHANNEL, lambda _: context.streams.wake()),
            lambda: database.listen(SESSIONS_CHANNEL, lambda _: context.streams.wake()),
        ],
        closing=[resources.platform.close],
    )
    return Service(
        database=database,
        runner=runner,
        operations=OPERATIONS,
        parts=PARTS,
        endpoints=Endpoints.joined([service_endpoints, *(part.endpoints(context) for part in PARTS)]),
        authenticate=credentials.caller,
        limits=limits,
        agents=endpoint,
        site=SITE,
        streams=context.streams,
        error_body=error_body,
        keeps_slash=SIGNED_PATH_PREFIXES,
        per_machine_state=settings.per_machine_state(),
        drain_seconds=settings.drain_seconds,
        metrics_token=settings.metrics_token,
    )


def streams(settings: Settings) -> Streams:
    """The open event streams of a process."""
    shares: Mapping[StreamOwner, int] = {
        "address": settings.streams_per_address,
        "key": settings.streams_per_key,
        "tenant": settings.streams_per_shop,
    }
    return Streams(STREAMS, shares, settings.max_streams)


def agent_endpoint(base_url: str, cache: AvailabilityCache) -> mcp.EndpointConfig:
    """The endpoint for agents, `/mcp`."""
    return mcp.EndpointConfig(
        name=reverse_dns(base_url, "inventory"),
        title=TITLE,
        version=VERSION,
        base_url=base_url,
        instructions=INSTRUCTIONS,
        templates=TEMPLATES,
        listed_by=mcp.ListedBy("list_pools", entries),
        changes=cache.changes,
        missed=cache.missed,
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
    schema_folders=(accounts.FOLDER / "schema", Path(__file__).parent / "schema"),
    factory="holdfast.inventory.service:worker",
    sealed=tuple(table for part in PARTS for table in part.sealed),
    tenancy=resources.TENANCY,
    error_body=error_body,
    other_services={"Holdfast Events": "registrations"},
)
worker = INVENTORY.worker
