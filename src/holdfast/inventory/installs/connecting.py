"""Connecting a shop: what the platform grants is stored, after it was asked for outside of any transaction."""

import time
from collections.abc import Awaitable
from functools import partial
from math import ceil

from holdfast.inventory.installs import operations, sql
from holdfast.inventory.installs.model import Install
from holdfast.inventory.installs.operations import Follows, Installed
from holdfast.inventory.problems import (
    INVALID_SESSION_TOKEN,
    PLATFORM_NOT_CONFIGURED,
    PLATFORM_REFUSED,
    PLATFORM_UNREACHABLE,
)
from holdfast.inventory.resources import Database, Reader
from holdfast.inventory.shopify import session_tokens
from holdfast.inventory.shopify.platform import Refused, Unreachable
from holdfast.inventory.shopify.session_tokens import InvalidSessionToken, SessionToken
from holdfast.inventory.shopify.token_endpoint import Granted
from holdfast.inventory.shops import operations as shops
from holdfast.kit.problems import NOT_FOUND, Problem


class Connecting:
    """Connects shops with the platform. `follows`: what follows an install."""

    def __init__(self, database: Database, follows: Follows) -> None:
        self._database = database
        self._follows = follows
        self._resources = database.resources
        self._settings = database.resources.settings

    def require_app(self) -> None:
        """Raises `platform_not_configured`."""
        if not self._settings.client_id:
            raise PLATFORM_NOT_CONFIGURED("INVENTORY_CLIENT_ID is not set.")

    def verified(self, token: str) -> SessionToken:
        """What a session token says. Raises `invalid_session_token`."""
        try:
            return session_tokens.verify(token, self._settings.client_id, self._resources.client_secrets, time.time())
        except InvalidSessionToken as error:
            raise INVALID_SESSION_TOKEN(str(error)) from error

    async def connect(self, shop: str, token: str) -> str | None:
        """Install the app at the shop of a session token, unless it is connected. Returns its key if it was just made.

        Raises what `install` does.
        """
        if await self._database.read(partial(_is_connected, domain=shop)):
            return None
        return (await self.install(shop, self._resources.token_endpoint.for_session(shop, token))).key

    async def install(self, shop: str, asking: Awaitable[Granted]) -> Installed:
        """Store what the platform grants. Raises `platform_refused`, `platform_unreachable` and `missing_scopes`."""
        try:
            granted = await asking
        except Refused as refused:
            raise PLATFORM_REFUSED(f"The storefront platform did not accept this: {refused}") from refused
        except Unreachable as unreachable:
            raise PLATFORM_UNREACHABLE(retry_after=ceil(unreachable.retry_after or 5)) from unreachable
        return await self._database.transact(lambda tx: operations.install(tx, shop, granted, self._follows))

    async def has_granted(self, shop: str, scope: str) -> bool:
        """Whether a shop has the app, and lets it do this."""
        install = await self._database.read(partial(_install_of, domain=shop))
        return install is not None and install.uninstalled_at is None and scope in install.scopes


async def _is_connected(reader: Reader, *, domain: str) -> bool:
    """Whether a shop has the app, and tokens that nothing is wrong with."""
    install = await _install_of(reader, domain=domain)
    if install is None or install.uninstalled_at or install.broken is not None:
        return False
    return await sql.find_tokens(reader, install.shop_id) is not None


async def _install_of(reader: Reader, *, domain: str) -> Install | None:
    try:
        shop = await shops.find(reader, domain)
    except Problem as problem:
        if problem.type is NOT_FOUND:
            return None
        raise
    return await sql.find_install(reader, shop.id)
