"""Operations on shops and their keys, for the command line, and the notices of how a shop follows the platform."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.accounts.agents.limits import KEY_ASKS_FIRST, LIMIT_OF_KEY, LimitOperations, move_limit
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shopify.domains import is_domain
from holdfast.inventory.shops.model import SCOPES, CallerKey, Shop, ShopKey
from holdfast.kit.contract.caller import Caller, api_key
from holdfast.kit.contract.problems import NOT_FOUND, invalid
from holdfast.kit.postgres import database
from holdfast.kit.security import api_keys

SHOP_LIMITS = LimitOperations("shop_id", "''")
"""The operations on the daily limit of the key of a shop. No transaction of a shop can read keys."""

ENDED_SHOPS = "ended_shops"
"""The channel on which the end of a shop is announced, so that processes drop what they cache of it. The payload is the
id of the shop and its domain.
"""

SYNC_STATUS_CHANNEL = "sync_status"
"""The channel of changes of `get_sync_status`; the payload is the id of the shop."""


async def find_callers(reader: database.Reader[Any], hashes: Sequence[bytes]) -> Mapping[bytes, Caller]:
    """The callers by hash, for hashes of an active key, or of an agent registered with one."""
    keys = await reader.rows(
        CallerKey,
        f"""
        select hash, id, shop_id, scopes, {LIMIT_OF_KEY} as limit_id, {KEY_ASKS_FIRST} as asks_first
          from api_keys where hash = any(%(hashes)s) and active
        union all
        select agent.hash, api_keys.id, api_keys.shop_id, api_keys.scopes, {LIMIT_OF_KEY}, {KEY_ASKS_FIRST}
          from agent_registrations as agent join api_keys on api_keys.id = agent.api_key_id
         where agent.hash = any(%(hashes)s) and api_keys.active
        """,
        {"hashes": [*hashes]},
    )
    return {
        key.hash: api_key(key.id, key.shop_id, frozenset(key.scopes), key.limit_id, asks_first=key.asks_first)
        for key in keys
    }


async def find_active(reader: Reader, domain: str) -> Shop | None:
    """The shop with a domain, unless it has uninstalled the app. A shop that never had the app counts too."""
    return await reader.row(
        Shop,
        """
        select shops.id, shops.domain, shared_inventories.id as shared_inventory_id
          from shops join shared_inventories on shared_inventories.shop_id = shops.id
          left join installs on installs.shop_id = shops.id
         where shops.domain = %(domain)s and installs.uninstalled_at is null
        """,
        {"domain": domain},
    )


async def add(tx: Tx, domain: str) -> tuple[Shop, str]:
    """Add a shop with its first key. Raises `validation_failed` for a domain that is malformed or taken."""
    if not is_domain(domain):
        raise invalid({"domain": ["must look like my-shop.myshopify.com, in lower case"]})
    shop = await insert_shop(tx, domain)
    if shop is None:
        raise invalid({"domain": ["this shop exists already"]})
    return shop, await _mint(tx, shop.id, SCOPES)


async def find_or_add(tx: Tx, domain: str) -> tuple[Shop, str | None]:
    """The shop with a domain, added if need be, and its key if it is new: the shop had no valid one."""
    if shop := await insert_shop(tx, domain):
        return shop, await _mint(tx, shop.id, SCOPES)
    shop = await find(tx, domain)
    await lock_shop(tx, shop.id)
    if await lock_key(tx, shop.id):
        return shop, None
    return shop, await _mint(tx, shop.id, SCOPES)


async def find(reader: Reader, domain: str) -> Shop:
    """The shop with a domain. Raises `not_found`."""
    if shop := await find_shop(reader, domain):
        return shop
    raise NOT_FOUND(f"No shop has the domain {domain}.")


async def list(reader: Reader) -> Sequence[Shop]:
    """Every shop, oldest first."""
    return await reader.rows(
        Shop,
        """
        select shops.id, shops.domain, shared_inventories.id as shared_inventory_id
          from shops join shared_inventories on shared_inventories.shop_id = shops.id
         order by shops.id
        """,
    )


async def show_key(tx: Tx, shop_id: int) -> str:
    """The present key of a shop. Raises `not_found`."""
    if key := await lock_key(tx, shop_id):
        return tx.resources.secret.unseal(key.sealed)
    raise NOT_FOUND("The shop has no key.")


async def regenerate_key(tx: Tx, shop_id: int, scopes: Sequence[str] | None = None) -> str:
    """Make a new key for a shop, with the scopes of the old one unless some are named.

    The old key, and every identity and token derived from it, is invalid at once, everywhere. Its daily limit goes over
    to the new one.
    """
    if unknown := set(scopes or ()) - set(SCOPES):
        raise invalid({"scopes": [f"unknown: {', '.join(sorted(unknown))}"]})
    old = await end_key(tx, shop_id)
    if scopes is None:
        scopes = old.scopes if old else SCOPES
    return await _mint(tx, shop_id, scopes)


async def end_key(tx: Tx, shop_id: int) -> ShopKey | None:
    """Make the key of a shop, and all that is derived from it, invalid at once and everywhere. Returns the key."""
    await lock_shop(tx, shop_id)
    old = await lock_key(tx, shop_id)
    if old:
        for hashed in await deactivate_key(tx, old.id):
            await tx.revoke(api_keys.CHANNEL, hashed.hex())
    return old


async def end(tx: Tx, shop_id: int, domain: str) -> None:
    """End the key of a shop that no longer has the app, and what processes cache of the shop."""
    await end_key(tx, shop_id)
    await tx.revoke(ENDED_SHOPS, f"{shop_id} {domain}")


async def _mint(tx: Tx, shop_id: int, scopes: Sequence[str]) -> str:
    key = api_keys.new_key()
    id = await insert_key(tx, shop_id, api_keys.digest(key), tx.resources.secret.seal(key), scopes)
    await move_limit(tx, shop_id, id)
    return key


async def announce_sync_status(tx: Tx, shop_id: int) -> None:
    """Announce a change of the status of the sync of a shop when this transaction commits."""
    await tx.notify(SYNC_STATUS_CHANNEL, str(shop_id))


async def insert_shop(tx: Tx, domain: str) -> Shop | None:
    """Insert a shop with its shared inventory. None if the domain is taken."""
    return await tx.row(
        Shop,
        """
        with shop as (insert into shops (domain) values (%(domain)s) on conflict do nothing returning id, domain),
             shared as (insert into shared_inventories (shop_id) select id from shop returning id)
        select shop.id, shop.domain, shared.id as shared_inventory_id from shop, shared
        """,
        {"domain": domain},
    )


async def find_shop(reader: Reader, domain: str) -> Shop | None:
    return await reader.row(
        Shop,
        """
        select shops.id, shops.domain, shared_inventories.id as shared_inventory_id
          from shops join shared_inventories on shared_inventories.shop_id = shops.id
         where shops.domain = %(domain)s
        """,
        {"domain": domain},
    )


async def lock_shop(tx: Tx, shop_id: int) -> None:
    """Make other transactions that change the shop's key wait."""
    await tx.run("select from shops where id = %(shop_id)s for no key update", {"shop_id": shop_id})


async def lock_key(tx: Tx, shop_id: int) -> ShopKey | None:
    """Lock the active key of a shop."""
    return await tx.row(
        ShopKey,
        """
        select id, hash, sealed, scopes, inserted_at from api_keys
         where shop_id = %(shop_id)s and active for update
        """,
        {"shop_id": shop_id},
    )


async def deactivate_key(tx: Tx, id: int) -> Sequence[bytes]:
    """End a key and the registration derived from it. Returns their hashes, which key rings may have cached."""
    rows = await tx.tuples(
        """
        with ended as (update api_keys set active = false where id = %(id)s returning hash)
        select hash from ended
        union all
        select hash from agent_registrations where api_key_id = %(id)s
        """,
        {"id": id},
    )
    return [hash for (hash,) in rows]


async def insert_key(tx: Tx, shop_id: int, hash: bytes, sealed: bytes, scopes: Sequence[str]) -> int:
    """Store a key. Returns its id."""
    return await tx.value(
        """
        insert into api_keys (shop_id, hash, sealed, scopes)
        values (%(shop_id)s, %(hash)s, %(sealed)s, %(scopes)s) returning id
        """,
        {"shop_id": shop_id, "hash": hash, "sealed": sealed, "scopes": [*scopes]},
    )
