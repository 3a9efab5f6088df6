"""The routes of the merchants' console."""

from collections.abc import Mapping

from holdfast.accounts.signed_in_pages import ACCOUNT, SignedInPages
from holdfast.inventory.availability.cache import AvailabilityCache
from holdfast.inventory.catalog import importing, model, pool_suggestions
from holdfast.inventory.console.frame import HOME, Console
from holdfast.inventory.console.live_changes import LiveConsole
from holdfast.inventory.console.pools.holds import HoldsPage
from holdfast.inventory.console.pools.low_stock import LowStockPage
from holdfast.inventory.console.pools.pool import PoolPage
from holdfast.inventory.console.pools.pool_form import PoolForms
from holdfast.inventory.console.pools.pool_status import PoolStatusPages
from holdfast.inventory.console.pools.pools import PoolsPage
from holdfast.inventory.console.pools.quantities import QuantityPages
from holdfast.inventory.console.pools.spreadsheets import SpreadsheetsPage
from holdfast.inventory.console.pools.suggestions import SuggestionsPage
from holdfast.inventory.console.pools.undo import UndoPage
from holdfast.inventory.console.settings import settings
from holdfast.inventory.console.settings.settings import SettingsPages
from holdfast.inventory.console.sync.sync import SyncPage
from holdfast.inventory.console.variants.variant import VariantPage
from holdfast.inventory.console.variants.variants import VariantsPage
from holdfast.inventory.merchants import operations as merchants
from holdfast.inventory.shopify.platform import Platform
from holdfast.inventory.stock import pool_page
from holdfast.inventory.sync import pool_figures
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.http.index import Route
from holdfast.kit.running.operation import Operation, read, single
from holdfast.kit.running.runner import Run

OPERATIONS = (
    Operation("list_actors", None, read(merchants.list_actors)),
    Operation("look_at_pool", None, read(pool_page.get_pool_history)),
    Operation("get_pool_figures", None, read(pool_figures.get_pool_figures)),
    Operation("list_unsynced_pools", None, read(pool_figures.list_unsynced_pools)),
    Operation("suggest_pools", None, read(pool_suggestions.suggest_pools)),
    Operation("import_products", None, single(importing.import_products)),
    Operation("name_variants", None, read(model.name_variants)),
    Operation("list_undone", None, read(pool_page.list_reverted_entries)),
    Operation("list_units_per_sale", None, read(pool_page.list_units_per_sale)),
    Operation("ask_low_stock", None, read(merchants.get_low_stock_mails)),
    Operation("want_low_stock", None, single(merchants.set_low_stock_mails)),
)
"""The operations of the console that agents do not have. They run for the shop of the merchant."""

ACROSS = settings.ACROSS
"""Operations that run for no shop, because they use what no transaction of a shop can reach."""


def routes(
    signed_in: SignedInPages,
    run: Mapping[str, Run],
    base_url: str,
    platform: Platform,
    client_id: str,
    live: AvailabilityCache,
    streams: Streams,
) -> list[Route]:
    """The routes of the console.

    run          the operations of agents and of the console, by name
    client_id    of the app at the platform
    """
    console = Console(signed_in, run)
    return [
        *LiveConsole(console, live, streams).routes(),
        *PoolsPage(console).routes(),
        *SuggestionsPage(console, platform, client_id).routes(),
        *PoolForms(console).routes(),
        *PoolStatusPages(console).routes(),
        *PoolPage(console, platform).routes(),
        *QuantityPages(console).routes(),
        *UndoPage(console).routes(),
        *VariantPage(console).routes(),
        *VariantsPage(console).routes(),
        *HoldsPage(console).routes(),
        *LowStockPage(console).routes(),
        *SyncPage(console).routes(),
        *SpreadsheetsPage(console).routes(),
        *SettingsPages(console, base_url).routes(),
        signed_in.missing(HOME, "console_missing"),
        signed_in.missing(ACCOUNT, "account_missing"),
    ]
