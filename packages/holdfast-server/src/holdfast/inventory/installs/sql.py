"""Statements on installs and on tokens."""

import datetime as dt
from collections.abc import Collection, Sequence

from holdfast.inventory.installs.model import Install, StoredTokens
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shopify.platform_tokens import GrantedTokens


async def now(reader: Reader) -> dt.datetime:
    """The time of the database."""
    return await reader.value("select clock_timestamp()")


async def find_install(reader: Reader, shop_id: int) -> Install | None:
    return await reader.row(
        Install,
        """
        select shop_id, shops.domain, scopes, installed_at, uninstalled_at, broken,
               subscription_errors
          from installs join shops on shops.id = installs.shop_id where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id},
    )


async def lock_install(tx: Tx, shop_id: int) -> Install | None:
    """Lock the install of a shop."""
    return await tx.row(
        Install,
        """
        select shop_id, shops.domain, scopes, installed_at, uninstalled_at, broken,
               subscription_errors
          from installs join shops on shops.id = installs.shop_id
         where shop_id = %(shop_id)s for no key update of installs
        """,
        {"shop_id": shop_id},
    )


async def store_install(tx: Tx, shop_id: int, scopes: Collection[str]) -> bool:
    """Store that a shop has the app from now on. False: all rows of the shop are being deleted just now."""
    return (
        await tx.value(
            """
        insert into installs (shop_id, scopes) values (%(shop_id)s, %(scopes)s)
            on conflict (shop_id) do update
               set scopes = excluded.scopes, installed_at = now(), uninstalled_at = null, broken = null
             where installs.redacted_at is null
        returning true
        """,
            {"shop_id": shop_id, "scopes": sorted(scopes)},
        )
        or False
    )


async def end_install(tx: Tx, shop_id: int) -> None:
    """Store that a shop no longer has the app, and delete its tokens."""
    await tx.run(
        """
        with ended as (update installs set uninstalled_at = now() where shop_id = %(shop_id)s)
        delete from platform_tokens where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id},
    )


async def mark_redacted(tx: Tx, shop_id: int) -> None:
    await tx.run(
        "update installs set redacted_at = coalesce(redacted_at, now()) where shop_id = %(shop_id)s",
        {"shop_id": shop_id},
    )


async def delete_batch(tx: Tx, shop_id: int) -> int:
    """Delete a batch of each kind of row of a shop that is to be deleted. Returns how many rows; 0 at the end."""
    return await tx.value("select delete_of_shop(%(shop_id)s, 5000)", {"shop_id": shop_id})


async def list_forgotten(reader: Reader, after: int) -> list[int]:
    """Shops, a batch of them, that uninstalled the app 30 days ago without a request to delete their data."""
    rows = await reader.tuples(
        """
        select shop_id from installs
         where uninstalled_at < now() - interval '30 days' and redacted_at is null and shop_id > %(after)s
         order by shop_id limit 100
        """,
        {"after": after},
    )
    return [shop_id for (shop_id,) in rows]


async def find_tokens(reader: Reader, shop_id: int) -> StoredTokens | None:
    return await reader.row(
        StoredTokens,
        """
        select shops.domain, sealed, generation,
               extract(epoch from expires_at - clock_timestamp())::float8 as expires_in
          from platform_tokens join shops on shops.id = platform_tokens.shop_id where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id},
    )


async def mark_broken(tx: Tx, shop_id: int, why: str | None) -> None:
    """Store why the merchant must open or install the app again; None: there is no need."""
    await tx.run(
        """
        update installs set broken = left(%(why)s, 500)
         where shop_id = %(shop_id)s and broken is distinct from left(%(why)s, 500)
        """,
        {"shop_id": shop_id, "why": why},
    )


async def store_scopes(tx: Tx, shop_id: int, scopes: Collection[str], broken: str | None) -> None:
    """Store the granted scopes of a shop that has the app. `broken`: the reason if they are too few."""
    await tx.run(
        """
        update installs set scopes = %(scopes)s, broken = %(broken)s
         where shop_id = %(shop_id)s and uninstalled_at is null
        """,
        {"shop_id": shop_id, "scopes": sorted(scopes), "broken": broken},
    )


async def store_subscription_errors(tx: Tx, shop_id: int, errors: Sequence[str]) -> None:
    """Store the topics of which the platform sends no webhooks, and why."""
    await tx.run(
        """
        update installs
           set subscription_errors = array(select left(error, 500) from unnest(%(errors)s::text[]) as error)
         where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "errors": list(errors)},
    )


async def list_installs(reader: Reader) -> list[Install]:
    """The install of every shop that has or had the app."""
    return await reader.rows(
        Install,
        """
        select shop_id, shops.domain, scopes, installed_at, uninstalled_at, broken,
               subscription_errors
          from installs join shops on shops.id = installs.shop_id order by shop_id
        """,
    )


async def list_connected(tx: Tx, after: int, limit: int) -> list[int]:
    """The ids of shops that have the app and tokens."""
    rows = await tx.tuples(
        """
        select shop_id from platform_tokens where shop_id > %(after)s order by shop_id limit %(limit)s
        """,
        {"after": after, "limit": limit},
    )
    return [shop_id for (shop_id,) in rows]


async def store_tokens(tx: Tx, shop_id: int, sealed: bytes, granted_tokens: GrantedTokens) -> None:
    """Store the tokens of a shop instead of any others.

    The first generation of an install is the time in microseconds, so it is higher than all generations of an earlier
    install: a refresh of those tokens changes nothing of these.
    """
    await tx.run(
        """
        insert into platform_tokens (shop_id, sealed, generation, expires_at, refresh_expires_at)
        values (%(shop_id)s, %(sealed)s, (extract(epoch from clock_timestamp()) * 1000000)::bigint,
                now() + %(expires_in)s * interval '1 second', now() + %(refresh_expires_in)s * interval '1 second')
            on conflict (shop_id) do update
               set sealed = excluded.sealed, expires_at = excluded.expires_at,
                   refresh_expires_at = excluded.refresh_expires_at,
                   generation = platform_tokens.generation + 1, leased_until = null
        """,
        {"shop_id": shop_id, "sealed": sealed, **_lifetimes(granted_tokens)},
    )


async def replace_tokens(tx: Tx, shop_id: int, generation: int, sealed: bytes, granted_tokens: GrantedTokens) -> bool:
    """Store the next tokens of a shop. False: tokens of this generation are no longer stored."""
    return (
        await tx.value(
            """
        update platform_tokens
           set sealed = %(sealed)s, generation = generation + 1, leased_until = null,
               expires_at = clock_timestamp() + %(expires_in)s * interval '1 second',
               refresh_expires_at = clock_timestamp() + %(refresh_expires_in)s * interval '1 second'
         where shop_id = %(shop_id)s and generation = %(generation)s returning true
        """,
            {"shop_id": shop_id, "generation": generation, "sealed": sealed, **_lifetimes(granted_tokens)},
        )
        or False
    )


async def lease_refresh(tx: Tx, shop_id: int, generation: int, seconds: float) -> bool:
    """Lease the refresh of the tokens of a shop. False: another process refreshes them, or has done so."""
    return (
        await tx.value(
            """
        update platform_tokens set leased_until = clock_timestamp() + %(seconds)s * interval '1 second'
         where shop_id = %(shop_id)s and generation = %(generation)s
           and coalesce(leased_until < clock_timestamp(), true) returning true
        """,
            {"shop_id": shop_id, "generation": generation, "seconds": seconds},
        )
        or False
    )


async def renew_lease(tx: Tx, shop_id: int, generation: int, seconds: float) -> bool:
    """Renew the lease. False: it has ended, or there are newer tokens."""
    return (
        await tx.value(
            """
        update platform_tokens set leased_until = clock_timestamp() + %(seconds)s * interval '1 second'
         where shop_id = %(shop_id)s and generation = %(generation)s and leased_until > clock_timestamp()
     returning true
        """,
            {"shop_id": shop_id, "generation": generation, "seconds": seconds},
        )
        or False
    )


async def postpone_refresh(tx: Tx, shop_id: int, generation: int, seconds: float) -> None:
    """Allow no refresh of the tokens for some seconds."""
    await tx.run(
        """
        update platform_tokens set leased_until = clock_timestamp() + %(seconds)s * interval '1 second'
         where shop_id = %(shop_id)s and generation = %(generation)s
        """,
        {"shop_id": shop_id, "generation": generation, "seconds": seconds},
    )


async def forget_tokens(tx: Tx, shop_id: int, generation: int) -> bool:
    """Delete the tokens of a shop. False: there are none of this generation."""
    return (
        await tx.value(
            """
        delete from platform_tokens where shop_id = %(shop_id)s and generation = %(generation)s returning true
        """,
            {"shop_id": shop_id, "generation": generation},
        )
        or False
    )


def _lifetimes(granted_tokens: GrantedTokens) -> dict[str, int | None]:
    return {"expires_in": granted_tokens.expires_in, "refresh_expires_in": granted_tokens.refresh_token_expires_in}
