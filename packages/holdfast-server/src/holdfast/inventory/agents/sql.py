"""Statements on the registrations of agents."""

from holdfast.inventory.agents.model import Registration
from holdfast.inventory.resources import Tx


async def register(tx: Tx, key_hash: bytes, id: str, id_hash: bytes) -> Registration | None:
    """Return the registration of an active key, a new one under this id if it has none; None without such a key."""
    return await tx.row(
        Registration,
        """
        with key as (select id, shop_id, scopes from api_keys where hash = %(key_hash)s and active for share),
             registration as (
                insert into agent_registrations (id, shop_id, api_key_id, hash)
                select %(id)s, shop_id, id, %(id_hash)s from key
                    on conflict (api_key_id) do update set api_key_id = excluded.api_key_id
                returning id)
        select registration.id, shops.domain as shop, key.scopes
          from registration, key join shops on shops.id = key.shop_id
        """,
        {"key_hash": key_hash, "id": id, "id_hash": id_hash},
    )
