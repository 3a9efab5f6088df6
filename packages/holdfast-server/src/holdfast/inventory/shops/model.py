"""Shops, and the one key of each."""

from datetime import datetime

from msgspec import Struct

SCOPES = ("read_inventory", "write_inventory", "read_pools", "write_pools")
"""The scopes of a key: quantities (inventory) and configuration (pools)."""


class Shop(Struct, frozen=True):
    """A shop with its shared inventory."""

    id: int
    domain: str
    shared_inventory_id: int


class CallerKey(Struct, frozen=True):
    """The key of a caller, by the hash of the key, or of an agent registered with it.

    limit_id    the id of the daily limit; None: there is none
    """

    hash: bytes
    id: int
    shop_id: int
    scopes: list[str]
    limit_id: int | None
    asks_first: bool


class ShopKey(Struct, frozen=True):
    """A row of a shop's key."""

    id: int
    hash: bytes
    sealed: bytes
    scopes: list[str]
    inserted_at: datetime
