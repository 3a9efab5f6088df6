"""Access to a shop at the platform: its token, refreshed in time, and the calls that are made with it.

A refresh token works once. So one process at a time refreshes the tokens of a shop: it takes a lease in a short
transaction, asks the platform without one, and stores what came. If its answer is lost, the platform gives the next
process tokens for the same refresh token again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog
from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.model import StoredTokens, Tokens
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform import Refused, TokenDead, Unreachable
from holdfast.inventory.shopify.scopes import missing
from holdfast.inventory.shopify.token_endpoint import Granted
from holdfast.kit.problems import Problem
from holdfast.kit.secrets import Secret, Unreadable

T = TypeVar("T")

EARLY_SECONDS = 60
"""Seconds before its end at which a token is refreshed."""

LAST_SECONDS = 5
"""Seconds before its end until which a token may be used while it cannot be refreshed."""

LEASE_SECONDS = 45
"""How long one process alone refreshes the tokens of a shop: longer than the call takes."""

REST_SECONDS = 2
"""Seconds after a refresh that failed until the next one."""

LOOK_SECONDS = 0.1
"""Seconds after which to look whether another process has refreshed the tokens."""

log = structlog.get_logger()


class Access(Struct, frozen=True):
    """What a call to a shop needs. `generation` grows with every new token."""

    domain: str
    token: str
    generation: int


async def ask(steps: Steps, shop_id: int, query: Query[T], variables: Mapping[str, Any] | None = None) -> T:
    """What the Admin API of a shop answers, outside of any transaction.

    Raises `shop_not_connected` if the shop does not have the app, or must install it again; and `Unreachable` and
    `Refused`, as the platform does.
    """
    admin, held = steps.resources.admin, await access(steps, shop_id)
    try:
        return await admin.ask(held.domain, held.token, query, variables)
    except TokenDead:
        held = await access(steps, shop_id, after=held.generation)
    try:
        return await admin.ask(held.domain, held.token, query, variables)
    except TokenDead as error:
        # Whoever withdraws the access also ends the refresh token. It was accepted just now, so this will pass.
        raise Unreachable("The shop does not accept a fresh access token yet.", REST_SECONDS) from error


async def access(steps: Steps, shop_id: int, after: int = 0) -> Access:
    """The token of a shop; one of a later generation than `after`. Raises as `ask` does."""
    while True:
        stored = await steps.read(partial(sql.find_tokens, shop_id=shop_id))
        if stored is None:
            raise await _not_connected(steps, shop_id)
        try:
            tokens = _opened(steps.resources.secret, stored)
        except Unreadable as error:
            why = "The tokens of the shop were encrypted under another secret key."
            raise await _broken(steps, shop_id, stored.generation, why) from error
        seconds = float("inf") if stored.expires_in is None else stored.expires_in
        present = Access(stored.domain, tokens.access_token, stored.generation)
        if seconds > EARLY_SECONDS and stored.generation > after:
            return present
        usable = seconds > LAST_SECONDS and stored.generation > after
        if await steps.transact(partial(_lease, shop_id=shop_id, generation=stored.generation)):
            try:
                await _refresh(steps, shop_id, stored, tokens)
            except Unreachable as error:
                if not usable:
                    raise
                log.warning("the tokens of a shop cannot be refreshed yet", shop=shop_id, error=str(error))
                return present
        elif usable:
            return present
        else:
            await asyncio.sleep(LOOK_SECONDS)


async def connect(tx: Tx, shop_id: int, granted: Granted) -> None:
    """Store tokens that the platform has granted, instead of any others of the shop."""
    await sql.store_tokens(tx, shop_id, _sealed(tx.resources.secret, granted), granted)


async def _refresh(steps: Steps, shop_id: int, stored: StoredTokens, tokens: Tokens) -> None:
    """Get the next tokens, and store them unless others were stored meanwhile."""
    if tokens.refresh_token is None:
        raise await _broken(steps, shop_id, stored.generation, "The access token has ended, and cannot be refreshed.")
    try:
        granted = await steps.resources.token_endpoint.refreshed(stored.domain, tokens.refresh_token)
    except Refused as refused:
        if refused.code != "invalid_grant":
            await steps.transact(partial(_rest, shop_id=shop_id, generation=stored.generation))
            raise
        why = "The access to the shop was not used for too long, or was withdrawn."
        raise await _broken(steps, shop_id, stored.generation, why) from refused
    except Unreachable:
        await steps.transact(partial(_rest, shop_id=shop_id, generation=stored.generation))
        raise
    sealed = _sealed(steps.resources.secret, granted)

    async def store(tx: Tx) -> None:
        stored_now = await sql.replace_tokens(tx, shop_id, stored.generation, sealed, granted)
        if stored_now and (lacks := missing(granted.scopes)):
            await sql.mark_broken(tx, shop_id, lacking(lacks))

    await steps.transact(store)


def lacking(scopes: Sequence[str]) -> str:
    """Why a shop must be connected again that does not grant these scopes."""
    return f"The shop has not granted: {', '.join(scopes)}."


async def _lease(tx: Tx, *, shop_id: int, generation: int) -> bool:
    return await sql.lease(tx, shop_id, generation, LEASE_SECONDS)


async def _rest(tx: Tx, *, shop_id: int, generation: int) -> None:
    await sql.rest(tx, shop_id, generation, REST_SECONDS)


async def _broken(steps: Steps, shop_id: int, generation: int, why: str) -> Problem:
    """Give up the tokens of a shop, unless there are newer ones. Returns what to tell."""

    async def work(tx: Tx) -> None:
        if await sql.forget_tokens(tx, shop_id, generation):
            await sql.mark_broken(tx, shop_id, why)

    await steps.transact(work)
    log.warning("a shop must be connected again", shop=shop_id, why=why)
    return await _not_connected(steps, shop_id)


async def _not_connected(steps: Steps, shop_id: int) -> Problem:
    install = await steps.read(partial(sql.find_install, shop_id=shop_id))
    if install is None or install.uninstalled_at:
        return SHOP_NOT_CONNECTED()
    return SHOP_NOT_CONNECTED(f"The shop must be connected again. {install.broken or ''}".rstrip())


def _opened(secret: Secret, stored: StoredTokens) -> Tokens:
    """Raises `Unreadable`."""
    return msgspec.json.decode(secret.unseal(stored.sealed), type=Tokens)


def _sealed(secret: Secret, granted: Granted) -> bytes:
    return secret.seal(msgspec.json.encode(Tokens(granted.access_token, granted.refresh_token)).decode())
