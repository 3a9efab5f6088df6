"""The routes of the merchants' console."""

from collections.abc import Mapping

from starlette.routing import BaseRoute

from holdfast.accounts.door import Door
from holdfast.inventory.catalog import names
from holdfast.inventory.console import settings
from holdfast.inventory.console.frame import Console, places
from holdfast.inventory.console.holds import HoldsPage
from holdfast.inventory.console.low_stock import LowStockPage
from holdfast.inventory.console.pool import PoolPage
from holdfast.inventory.console.pool_form import PoolForms
from holdfast.inventory.console.pool_status import PoolStatusPages
from holdfast.inventory.console.pools import PoolsPage
from holdfast.inventory.console.quantities import QuantityPages
from holdfast.inventory.console.settings import SettingsPages
from holdfast.inventory.console.spreadsheets import SpreadsheetsPage
from holdfast.inventory.console.sync import SyncPage
from holdfast.inventory.console.undo import UndoPage
from holdfast.inventory.console.variant import VariantPage
from holdfast.inventory.console.variants import VariantsPage
from holdfast.inventory.merchants import operations as merchants
from holdfast.inventory.stock import seen
from holdfast.kit.modes import read, single
from holdfast.kit.operation import Operation
from holdfast.kit.runner import Run

OPERATIONS = (
    Operation("list_actors", None, read(merchants.list_actors)),
    Operation("look_at_pool", None, read(seen.look)),
    Operation("name_variants", None, read(names.name_variants)),
    Operation("list_undone", None, read(seen.list_undone)),
    Operation("ask_low_stock", None, read(merchants.ask_low_stock)),
    Operation("want_low_stock", None, single(merchants.want_low_stock)),
)
"""The operations of the console that agents do not have. They run for the shop of the merchant."""

ACROSS = settings.ACROSS
"""Those that run for no shop: what they use, no transaction of a shop can reach."""


def routes(door: Door, run: Mapping[str, Run], base_url: str) -> list[BaseRoute]:
    """The routes of the console. `run`: the operations of agents and of the console, by name."""
    console = Console(door, run, places)
    return [
        *PoolsPage(console).routes(),
        *PoolForms(console).routes(),  # its path of a new pool would else be the path of a pool
        *PoolStatusPages(console).routes(),
        *PoolPage(console).routes(),
        *QuantityPages(console).routes(),
        *UndoPage(console).routes(),
        *VariantPage(console).routes(),
        *VariantsPage(console).routes(),
        *HoldsPage(console).routes(),
        *LowStockPage(console).routes(),
        *SyncPage(console).routes(),
        *SpreadsheetsPage(console).routes(),
        *SettingsPages(console, base_url).routes(),
    ]
