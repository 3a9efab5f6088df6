"""What the merchants' console registers: its pages and their operations."""

from holdfast.accounts.agents.agents_page import AGENTS
from holdfast.accounts.agents.limit_page import AgentLimitPage
from holdfast.accounts.signed_in_pages import ACCOUNT
from holdfast.accounts.webhooks.webhook_pages import ZONE_SCRIPT, WebhookPages
from holdfast.inventory import api
from holdfast.inventory.agents import access
from holdfast.inventory.agents.actions import LIST_AGENT_ACTIONS
from holdfast.inventory.catalog import importing, pool_suggestions
from holdfast.inventory.catalog import operations as catalog
from holdfast.inventory.console.agents.agents_pages import AgentPages
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.live_changes import LiveConsole
from holdfast.inventory.console.pools.holds_page import HoldsPage
from holdfast.inventory.console.pools.low_stock_page import LowStockPage
from holdfast.inventory.console.pools.pool_form_pages import PoolForms
from holdfast.inventory.console.pools.pool_pages import PoolPage, UndoPage
from holdfast.inventory.console.pools.pool_status_pages import PoolStatusPages
from holdfast.inventory.console.pools.pools_page import PoolsPage
from holdfast.inventory.console.pools.quantity_pages import QuantityPages
from holdfast.inventory.console.pools.replay_page import ReplayPage
from holdfast.inventory.console.pools.spreadsheets_page import SpreadsheetsPage
from holdfast.inventory.console.pools.suggestions_page import SuggestionsPage
from holdfast.inventory.console.settings.settings_pages import SettingsPages
from holdfast.inventory.console.sync.sync_page import SyncPage
from holdfast.inventory.console.variants.variants_pages import VariantPage, VariantsPage
from holdfast.inventory.console.webhook_subjects import pool_names
from holdfast.inventory.context import Context
from holdfast.inventory.installs import operations as installs
from holdfast.inventory.merchants import operations as merchants
from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools import pool_figures
from holdfast.inventory.problems import TOO_MANY_ENDPOINTS
from holdfast.inventory.replays import operations as replays
from holdfast.inventory.shops.operations import SHOP_LIMITS
from holdfast.inventory.site import SITE
from holdfast.inventory.stock import pool_history
from holdfast.inventory.sync import operations as sync
from holdfast.inventory.webhooks.messages import MESSAGES
from holdfast.inventory.webhooks.operations import CONSOLE_OPERATIONS as WEBHOOK_OPERATIONS
from holdfast.kit.contract.messages import translatable
from holdfast.kit.operations.operation import Operation, read, single
from holdfast.kit.process.part import Endpoints, Part

OPERATIONS = (
    LIST_AGENT_ACTIONS,
    *WEBHOOK_OPERATIONS,
    Operation("list_actors", None, read(merchants.list_actors)),
    Operation("get_pool_history", None, read(pool_history.get_pool_history)),
    Operation("get_pool_figures", None, read(pool_figures.get_pool_figures)),
    Operation("list_unsynced_pools", None, read(sync.list_unsynced_pools)),
    Operation("suggest_pools", None, read(pool_suggestions.suggest_pools)),
    Operation("import_products", None, single(importing.import_products)),
    Operation("begin_replay", None, single(replays.begin)),
    Operation("get_replay", None, read(replays.get)),
    Operation("name_variants", None, read(catalog.name_variants)),
    Operation("find_source_pools", None, read(pools.find_source_pools)),
    Operation("keep_platform_number", None, single(sync.keep_platform_number)),
    Operation("get_entry", None, read(pool_history.get_entry)),
    Operation("get_undo_status", None, read(pool_history.get_undo_status)),
    Operation("list_units_per_sale", None, read(pool_history.list_units_per_sale)),
    Operation("is_shop_connected", None, read(installs.is_shop_connected)),
    Operation("get_low_stock_mails", None, read(merchants.get_low_stock_mails)),
    Operation("set_low_stock_mails", None, single(merchants.set_low_stock_mails)),
)
"""The operations of the console that agents do not have. They run for the shop of the merchant."""

TENANTLESS_OPERATIONS = (
    Operation("show_access", None, read(access.show)),
    Operation("renew_key", None, single(access.renew)),
    Operation("end_key", None, single(access.end)),
    Operation("name_keys", None, read(access.name_keys)),
)
"""Operations on keys. No transaction of a shop can read keys, so these run in none, and name the shop."""


def endpoints(context: Context) -> Endpoints:
    """The routes of the console."""
    signed_in, resources = context.signed_in, context.database.resources
    settings, platform = resources.settings, resources.platform
    run = {
        **{operation.name: context.console_runner.run_of(operation) for operation in (*api.OPERATIONS, *OPERATIONS)},
        **{operation.name: context.account_runner.run_of(operation) for operation in TENANTLESS_OPERATIONS},
    }
    console = Console(signed_in, run)
    return Endpoints(
        [
            *LiveConsole(console, context.availability, context.streams).routes(),
            *PoolsPage(console, settings).routes(),
            *SuggestionsPage(console, platform, settings).routes(),
            *ReplayPage(console).routes(),
            *PoolForms(console).routes(),
            *PoolStatusPages(console).routes(),
            *PoolPage(console, platform).routes(),
            *QuantityPages(console).routes(),
            *UndoPage(console, platform).routes(),
            *VariantPage(console).routes(),
            *VariantsPage(console, settings).routes(),
            *HoldsPage(console).routes(),
            *LowStockPage(console, settings).routes(),
            *SyncPage(console).routes(),
            *SpreadsheetsPage(console).routes(),
            *AgentPages(console, platform, settings.base_url, context.account_runner, context.approvals).routes(),
            *AgentLimitPage(
                console,
                context.account_runner,
                SHOP_LIMITS,
                merchant,
                counts="units",
                layout="console/page.html",
                lists={"key": AGENTS, "app": AGENTS},
            ).routes(),
            *WebhookPages(
                console,
                merchant,
                MESSAGES,
                layout="console/page.html",
                quota=TOO_MANY_ENDPOINTS,
                purpose=translatable("Get a signed message at your own address when stock changes or runs low."),
                test_port=settings.webhook_test_port,
                names_of=pool_names(console),
            ).routes(),
            *SITE.assets(ZONE_SCRIPT),
            *SettingsPages(console).routes(),
            signed_in.missing_route(HOME, "console_missing"),
            signed_in.missing_route(ACCOUNT, "account_missing"),
        ]
    )


PART = Part(operations=OPERATIONS, endpoints=endpoints)
