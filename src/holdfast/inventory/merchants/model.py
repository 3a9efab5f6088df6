"""Merchants: who works in the console of a shop."""

from typing import Annotated

from msgspec import Meta, Struct

from holdfast.accounts.directory import Account
from holdfast.kit.command import Command


class Merchant(Account, frozen=True):
    """Somebody who works in the console. The tenant of the account is the shop.

    shop        the domain of the shop
    staff_id    the platform's number of somebody whom it vouches for; such an account has no address
    """

    shop: str
    staff_id: str | None


class WantLowStock(Command):
    """Says whether a merchant wants mails about low stock, and in which language."""

    wanted: bool
    language: Annotated[str, Meta(max_length=10)]


class AskLowStock(Command):
    """Asks whether the merchant wants them."""


class Enter(Struct, frozen=True):
    """Somebody for whom the platform vouches.

    shop       the domain of the shop
    called     what the browser calls itself
    """

    shop: str
    staff_id: str
    called: str


class ListActors(Command):
    """Asks who of the shop's merchants made which entries of the history."""

    entry_ids: Annotated[list[int], Meta(max_length=500)]


class Actor(Struct, frozen=True):
    """Who made an entry: the address of a merchant, or the platform's number."""

    entry_id: int
    email: str | None
    staff_id: str | None
