"""What the merchant lets the app do has changed: what is granted now is asked of the platform, whatever came when."""

from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.access import ask, lacking
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.scopes import missing
from holdfast.inventory.webhooks.model import Delivery


class _Scope(Struct):
    handle: str


class _Installation(Struct, rename="camel"):
    access_scopes: list[_Scope]


class _Granted(Struct, rename="camel"):
    current_app_installation: _Installation


GRANTED = Query(
    "granted_scopes", "query Granted { currentAppInstallation { accessScopes { handle } } }", _Granted, cost=5
)


async def look(steps: Steps, delivery: Delivery) -> None:
    """Store what the shop grants now, and whether that is too little."""
    answer = await ask(steps, delivery.shop_id, GRANTED)
    granted = [each.handle for each in answer.current_app_installation.access_scopes]
    lacks = missing(granted)

    async def store(tx: Tx) -> None:
        await sql.store_scopes(tx, delivery.shop_id, granted, lacking(lacks) if lacks else None)

    await steps.transact(store)
