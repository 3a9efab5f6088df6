"""Access to a shop at the platform: its token, refreshed in time, and the calls made with it.

A refresh token works once. So one process at a time refreshes the tokens of a shop: it takes a lease in a short
transaction, asks the platform outside of any while it renews the lease, and stores the answer. If the answer is lost,
the platform gives the next process tokens for the same refresh token again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog
from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.model import StoredTokens, TokenPair
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.domains import missing_scopes
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable, TokenRefusal
from holdfast.inventory.shopify.platform_tokens import GrantedTokens
from holdfast.kit.background import leases
from holdfast.kit.background.leases import LeaseLost
from holdfast.kit.contract.problems import Problem
from holdfast.kit.security.service_secret import Secret, UnsealError

T = TypeVar("T")

REFRESH_BEFORE_SECONDS = 60
"""Seconds before the end of a token from which on it is refreshed."""

MIN_REMAINING_SECONDS = 5
"""Seconds before the end of a token until which it is used if it cannot be refreshed."""

RETRY_SECONDS = 2
"""Seconds from a failed refresh to the next one."""

POLL_SECONDS = 0.1
"""Seconds between two polls for tokens that another process refreshes."""

UNREADABLE = "The tokens of the shop were encrypted under another secret key."

log = structlog.get_logger()


class ShopAccess(Struct, frozen=True):
    """The domain and the token for a call to a shop. `generation` grows with every new token."""

    domain: str
    token: str
    generation: int


async def call_admin_api(steps: Steps, shop_id: int, query: Query[T], variables: Mapping[str, Any] | None = None) -> T:
    """The answer of the Admin API of a shop to a query or mutation. No transaction may be open.

    Raises `shop_not_connected` if the shop does not have the app, or must install it again; and `PlatformUnreachable`
    and `PlatformRefusal`, as the platform does.
    """
    admin, access = steps.resources.admin, await shop_access(steps, shop_id)
    try:
        return await admin.call(access.domain, access.token, query, variables)
    except TokenRefusal:
        access = await shop_access(steps, shop_id, after=access.generation)
    try:
        return await admin.call(access.domain, access.token, query, variables)
    except TokenRefusal as error:
        # A withdrawn access also ends the refresh token. It was accepted just now, so this error will pass.
        raise PlatformUnreachable("The shop does not accept a fresh access token yet.", RETRY_SECONDS) from error


async def shop_access(steps: Steps, shop_id: int, after: int = 0) -> ShopAccess:
    """The access of a shop, of a later generation than `after`. Raises as `call_admin_api` does."""
    while True:
        stored_tokens = await steps.read(partial(sql.find_tokens, shop_id=shop_id))
        if stored_tokens is None:
            raise await _not_connected(steps, shop_id)
        try:
            tokens = _open_tokens(steps.resources.secret, stored_tokens)
        except UnsealError as error:
            # The tokens stay: the right secret key may come back, and the platform has not refused them.
            if not await steps.transact(
                partial(_mark_unreadable, shop_id=shop_id, generation=stored_tokens.generation)
            ):
                continue
            log.warning("a shop must be connected again", shop=shop_id, why=UNREADABLE)
            raise await _not_connected(steps, shop_id) from error
        seconds = float("inf") if stored_tokens.expires_in is None else stored_tokens.expires_in
        present = ShopAccess(stored_tokens.domain, tokens.access_token, stored_tokens.generation)
        if seconds > REFRESH_BEFORE_SECONDS and stored_tokens.generation > after:
            return present
        usable = seconds > MIN_REMAINING_SECONDS and stored_tokens.generation > after
        leased_at = leases.lease_clock()
        if await _lease(steps, shop_id, stored_tokens.generation):
            try:
                async with leases.keep_lease(partial(_renew, steps, shop_id, stored_tokens.generation), leased_at):
                    await _refresh(steps, shop_id, stored_tokens, tokens)
            except LeaseLost:
                continue
            except PlatformUnreachable as error:
                if not usable:
                    raise
                log.warning("the tokens of a shop cannot be refreshed yet", shop=shop_id, error=str(error))
                return present
        elif usable:
            return present
        else:
            await asyncio.sleep(POLL_SECONDS)


async def connect(tx: Tx, shop_id: int, granted_tokens: GrantedTokens) -> None:
    """Store tokens that the platform has granted, instead of any others of the shop."""
    await sql.store_tokens(tx, shop_id, _seal_tokens(tx.resources.secret, granted_tokens), granted_tokens)


async def _refresh(steps: Steps, shop_id: int, stored_tokens: StoredTokens, tokens: TokenPair) -> None:
    """Get the next tokens, and store them unless others were stored meanwhile. Raises as `call_admin_api` does."""
    if tokens.refresh_token is None:
        await _mark_broken(
            steps, shop_id, stored_tokens.generation, "The access token has ended, and cannot be refreshed."
        )
        return
    try:
        granted_tokens = await steps.resources.token_endpoint.refreshed(stored_tokens.domain, tokens.refresh_token)
    except PlatformRefusal as refusal:
        if refusal.code != "invalid_grant":
            await steps.transact(partial(_postpone, shop_id=shop_id, generation=stored_tokens.generation))
            raise
        why = "The access to the shop was not used for too long, or was withdrawn."
        await _mark_broken(steps, shop_id, stored_tokens.generation, why)
        return
    except PlatformUnreachable:
        await steps.transact(partial(_postpone, shop_id=shop_id, generation=stored_tokens.generation))
        raise
    sealed = _seal_tokens(steps.resources.secret, granted_tokens)

    async def store(tx: Tx) -> None:
        stored_now = await sql.replace_tokens(tx, shop_id, stored_tokens.generation, sealed, granted_tokens)
        if stored_now:
            lacks = missing_scopes(granted_tokens.scopes)
            await sql.mark_broken(tx, shop_id, missing_scopes_reason(lacks) if lacks else None)

    await steps.transact(store)


def missing_scopes_reason(scopes: Sequence[str]) -> str:
    """The reason for which a shop must be connected again that does not grant these scopes."""
    return f"The shop has not granted: {', '.join(scopes)}."


async def _lease(steps: Steps, shop_id: int, generation: int) -> bool:
    return await steps.transact(
        partial(sql.lease_refresh, shop_id=shop_id, generation=generation, seconds=leases.LEASE_SECONDS)
    )


async def _renew(steps: Steps, shop_id: int, generation: int) -> bool:
    return await steps.transact(
        partial(sql.renew_lease, shop_id=shop_id, generation=generation, seconds=leases.LEASE_SECONDS)
    )


async def _postpone(tx: Tx, *, shop_id: int, generation: int) -> None:
    await sql.postpone_refresh(tx, shop_id, generation, RETRY_SECONDS)


async def _mark_broken(steps: Steps, shop_id: int, generation: int, why: str) -> None:
    """Delete the tokens of a shop, and raise `shop_not_connected`. Does nothing if there are newer tokens."""

    async def work(tx: Tx) -> bool:
        is_deleted = await sql.forget_tokens(tx, shop_id, generation)
        if is_deleted:
            await sql.mark_broken(tx, shop_id, why)
        return is_deleted

    if await steps.transact(work):
        log.warning("a shop must be connected again", shop=shop_id, why=why)
        raise await _not_connected(steps, shop_id)


async def _mark_unreadable(tx: Tx, *, shop_id: int, generation: int) -> bool:
    """Store that the tokens of a shop cannot be read. False: tokens of this generation are no longer stored."""
    await sql.lock_install(tx, shop_id)  # an install keeps it locked until the new tokens are stored
    tokens = await sql.find_tokens(tx, shop_id)
    if tokens is None or tokens.generation != generation:
        return False
    await sql.mark_broken(tx, shop_id, UNREADABLE)
    return True


async def _not_connected(steps: Steps, shop_id: int) -> Problem:
    install = await steps.read(partial(sql.find_install, shop_id=shop_id))
    if install is None or install.uninstalled_at:
        return SHOP_NOT_CONNECTED()
    return SHOP_NOT_CONNECTED(f"The shop must be connected again. {install.broken or ''}".rstrip())


def _open_tokens(secret: Secret, stored_tokens: StoredTokens) -> TokenPair:
    """Raises `UnsealError`."""
    return msgspec.json.decode(secret.unseal(stored_tokens.sealed), type=TokenPair)


def _seal_tokens(secret: Secret, granted_tokens: GrantedTokens) -> bytes:
    return secret.seal(
        msgspec.json.encode(TokenPair(granted_tokens.access_token, granted_tokens.refresh_token)).decode()
    )
