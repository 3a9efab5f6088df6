"""Handles changed scopes: the present ones are read from the platform, in whatever order webhooks come."""

from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.access import ask, missing_scopes_reason
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.scopes import missing_scopes
from holdfast.inventory.webhooks.model import Delivery


class _Scope(Struct):
    handle: str


class _Installation(Struct, rename="camel"):
    access_scopes: list[_Scope]


class _GrantedAnswer(Struct, rename="camel"):
    current_app_installation: _Installation


READ_GRANTED_SCOPES = Query(
    "granted_scopes", "query Granted { currentAppInstallation { accessScopes { handle } } }", _GrantedAnswer, cost=5
)


async def store_granted_scopes(steps: Steps, delivery: Delivery) -> None:
    """Store the granted scopes of the shop, and which required ones are missing."""
    answer = await ask(steps, delivery.shop_id, READ_GRANTED_SCOPES)
    granted = [scope.handle for scope in answer.current_app_installation.access_scopes]
    lacks = missing_scopes(granted)

    async def store(tx: Tx) -> None:
        await sql.store_scopes(tx, delivery.shop_id, granted, missing_scopes_reason(lacks) if lacks else None)

    await steps.transact(store)
