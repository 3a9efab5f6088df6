"""Installs the app at a shop: asks the platform for a grant, stores it, and gives the shop its key."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import ceil

import structlog
from msgspec import Struct

from holdfast.inventory.installs import access, sql
from holdfast.inventory.installs.model import Install
from holdfast.inventory.partner_webhooks import inbox
from holdfast.inventory.problems import (
    INVALID_SESSION_TOKEN,
    MISSING_SCOPES,
    PLATFORM_NOT_CONFIGURED,
    PLATFORM_REFUSED,
    PLATFORM_UNREACHABLE,
)
from holdfast.inventory.resources import Database, Reader, Tx
from holdfast.inventory.shopify import platform_tokens
from holdfast.inventory.shopify.domains import missing_scopes
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shopify.platform_tokens import GrantedTokens, InvalidSessionToken, SessionToken
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.shops.model import Shop
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem

log = structlog.get_logger()

InstallHooks = Sequence[Callable[[Tx, int], Awaitable[None]]]
"""The hooks after an install, in its transaction: each gets the id of the shop, and enqueues its own work."""

WITHOUT_APP = "Install the app at the shop, open it in the shop's admin, and send the session token that it gets there."
"""The hint after a refused session token. It has no code that could be used up."""


class InstalledShop(Struct, frozen=True):
    """A shop that has the app. `key`: its API key, if it is new."""

    shop: Shop
    key: str | None


async def install(tx: Tx, domain: str, granted_tokens: GrantedTokens, hooks: InstallHooks) -> InstalledShop:
    """Store that a shop has the app, with its tokens. Its pools and its key stay as they were.

    A new shop is added. A shop without a key, because it is new or had uninstalled the app, gets one.
    """
    if lacks := missing_scopes(granted_tokens.scopes):
        raise MISSING_SCOPES(f"The shop has not granted: {', '.join(lacks)}.")
    shop, key = await shops.find_or_add(tx, domain)
    before = await sql.lock_install(tx, shop.id)
    if not await sql.store_install(tx, shop.id, granted_tokens.scopes):
        raise SERVICE_UNAVAILABLE("What the shop had here is being deleted, as the platform asked.", retry_after=60)
    await access.connect(tx, shop.id, granted_tokens)
    await inbox.retry_of_shop(tx, shop.id)
    if before is None or before.uninstalled_at:
        for hook in hooks:
            await hook(tx, shop.id)
    return InstalledShop(shop, key)


async def connection_statuses(reader: Reader) -> dict[int, str]:
    """The status of the connection, in words, of each shop that has or had the app."""
    return {install.shop_id: _connection_status(install) for install in await sql.list_installs(reader)}


def _connection_status(install: Install) -> str:
    if install.uninstalled_at:
        return f"uninstalled at {install.uninstalled_at.isoformat(timespec='seconds')}"
    if install.broken:
        return f"must be connected again: {install.broken}"
    if install.subscription_errors:
        return f"connected, but the platform does not tell of {'; '.join(install.subscription_errors)}"
    return "connected"


async def find(reader: Reader, shop_id: int) -> Install | None:
    """The install of a shop; None: it never had the app."""
    return await sql.find_install(reader, shop_id)


class ShopConnector:
    """Connects shops with the platform. `hooks`: run after an install."""

    def __init__(self, database: Database, hooks: InstallHooks) -> None:
        self._database = database
        self._hooks = hooks
        self._resources = database.resources
        self._settings = database.resources.settings

    def require_app(self) -> None:
        """Raises `platform_not_configured`."""
        if not self._settings.client_id:
            raise PLATFORM_NOT_CONFIGURED("INVENTORY_CLIENT_ID is not set.")

    def verify_token(self, token: str) -> SessionToken:
        """The claims of a session token. Raises `invalid_session_token`."""
        try:
            return platform_tokens.verify_session_token(
                token, self._settings.client_id, self._resources.client_secrets, time.time()
            )
        except InvalidSessionToken as error:
            raise INVALID_SESSION_TOKEN(str(error)) from error

    async def connect(self, shop: str, token: str) -> str | None:
        """Install the app at the shop of a session token, unless it is connected. Returns its key if it is new.

        Raises what `install` does.
        """
        if await self._database.read(partial(_is_connected, domain=shop)):
            return None
        grant_request = self._resources.token_endpoint.for_session(shop, token)
        return (await self.install(shop, grant_request, hint=WITHOUT_APP)).key

    async def install(
        self, shop: str, grant_request: Awaitable[GrantedTokens], hint: str = PLATFORM_REFUSED.hint
    ) -> InstalledShop:
        """Store what the platform grants. `hint` says what to do after a refusal.

        Raises `platform_refused`, `platform_unreachable` and `missing_scopes`.
        """
        try:
            granted_tokens = await grant_request
        except PlatformRefusal as refusal:
            # The answer to the merchant does not repeat the platform's text: it may have parts of the request.
            log.warning("the storefront platform gives no access to a shop", shop=shop, code=refusal.code)
            raise PLATFORM_REFUSED(hint=hint) from refusal
        except PlatformUnreachable as unreachable:
            raise PLATFORM_UNREACHABLE(retry_after=ceil(unreachable.retry_after or 5)) from unreachable
        return await self._database.transact(lambda tx: install(tx, shop, granted_tokens, self._hooks))

    async def has_granted(self, shop: str, scope: str) -> bool:
        """Whether a shop has the app, and has granted this scope."""
        install = await self._database.read(partial(_find_install, domain=shop))
        return install is not None and install.uninstalled_at is None and scope in install.scopes


async def _is_connected(reader: Reader, *, domain: str) -> bool:
    """Whether a shop has the app, and working tokens."""
    install = await _find_install(reader, domain=domain)
    if install is None or install.uninstalled_at or install.broken is not None:
        return False
    return await sql.find_tokens(reader, install.shop_id) is not None


class GetConnection(Command):
    """Get whether the shop of the caller is connected with the platform."""


async def is_shop_connected(reader: Reader, caller: Caller, command: GetConnection) -> bool:
    """Whether the shop of the caller has the app, and need not be connected again."""
    install = await sql.find_install(reader, caller.tenant)
    return install is not None and install.uninstalled_at is None and install.broken is None


async def _find_install(reader: Reader, *, domain: str) -> Install | None:
    try:
        shop = await shops.find(reader, domain)
    except Problem as problem:
        if problem.type is NOT_FOUND:
            return None
        raise
    return await sql.find_install(reader, shop.id)
