"""Connects shops: asks the platform for a grant outside of any transaction, and stores it."""

import time
from collections.abc import Awaitable
from functools import partial
from math import ceil

import structlog

from holdfast.inventory.installs import operations, sql
from holdfast.inventory.installs.model import Install
from holdfast.inventory.installs.operations import InstalledShop, InstallHooks
from holdfast.inventory.problems import (
    INVALID_SESSION_TOKEN,
    PLATFORM_NOT_CONFIGURED,
    PLATFORM_REFUSED,
    PLATFORM_UNREACHABLE,
)
from holdfast.inventory.resources import Database, Reader
from holdfast.inventory.shopify import session_tokens
from holdfast.inventory.shopify.platform import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shopify.session_tokens import InvalidSessionToken, SessionToken
from holdfast.inventory.shopify.token_endpoint import GrantedTokens
from holdfast.inventory.shops import operations as shops
from holdfast.kit.contract.problems import NOT_FOUND, Problem

WITHOUT_APP = "Install the app at the shop, open it in the shop's admin, and send the session token that it gets there."
"""The hint after a refused session token. It has no code that could be used up."""

log = structlog.get_logger()


class ShopConnector:
    """Connects shops with the platform. `follows`: the hooks after an install."""

    def __init__(self, database: Database, follows: InstallHooks) -> None:
        self._database = database
        self._follows = follows
        self._resources = database.resources
        self._settings = database.resources.settings

    def require_app(self) -> None:
        """Raises `platform_not_configured`."""
        if not self._settings.client_id:
            raise PLATFORM_NOT_CONFIGURED("INVENTORY_CLIENT_ID is not set.")

    def verified(self, token: str) -> SessionToken:
        """Return the claims of a session token. Raises `invalid_session_token`."""
        try:
            return session_tokens.verify(token, self._settings.client_id, self._resources.client_secrets, time.time())
        except InvalidSessionToken as error:
            raise INVALID_SESSION_TOKEN(str(error)) from error

    async def connect(self, shop: str, token: str) -> str | None:
        """Install the app at the shop of a session token, unless it is connected. Returns its key if it is new.

        Raises what `install` does.
        """
        if await self._database.read(partial(_is_connected, domain=shop)):
            return None
        asking = self._resources.token_endpoint.for_session(shop, token)
        return (await self.install(shop, asking, hint=WITHOUT_APP)).key

    async def install(
        self, shop: str, asking: Awaitable[GrantedTokens], hint: str = PLATFORM_REFUSED.hint
    ) -> InstalledShop:
        """Store what the platform grants. `hint` says what to do after a refusal.

        Raises `platform_refused`, `platform_unreachable` and `missing_scopes`.
        """
        try:
            granted = await asking
        except PlatformRefusal as refused:
            # The answer to the merchant does not repeat the platform's text: it may have parts of the request.
            log.warning("the storefront platform gives no access to a shop", shop=shop, code=refused.code)
            raise PLATFORM_REFUSED(hint=hint) from refused
        except PlatformUnreachable as unreachable:
            raise PLATFORM_UNREACHABLE(retry_after=ceil(unreachable.retry_after or 5)) from unreachable
        return await self._database.transact(lambda tx: operations.install(tx, shop, granted, self._follows))

    async def has_granted(self, shop: str, scope: str) -> bool:
        """Return whether a shop has the app, and has granted this scope."""
        install = await self._database.read(partial(_find_install, domain=shop))
        return install is not None and install.uninstalled_at is None and scope in install.scopes


async def _is_connected(reader: Reader, *, domain: str) -> bool:
    """Return whether a shop has the app, and working tokens."""
    install = await _find_install(reader, domain=domain)
    if install is None or install.uninstalled_at or install.broken is not None:
        return False
    return await sql.find_tokens(reader, install.shop_id) is not None


async def _find_install(reader: Reader, *, domain: str) -> Install | None:
    try:
        shop = await shops.find(reader, domain)
    except Problem as problem:
        if problem.type is NOT_FOUND:
            return None
        raise
    return await sql.find_install(reader, shop.id)
