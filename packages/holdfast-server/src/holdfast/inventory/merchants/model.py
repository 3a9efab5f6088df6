"""Merchants: the people who work in the console of a shop."""

from typing import Annotated

from msgspec import Meta, Struct

from holdfast.accounts.directory import Account
from holdfast.kit.contract.command import Command


class Merchant(Account, frozen=True, kw_only=True):
    """A person who works in the console. The tenant of the account is the shop.

    shop        the domain of the shop
    staff_id    the platform's number of a person that it vouches for; such an account has no address
    """

    shop: str
    staff_id: str | None


class SetLowStockMails(Command):
    """Turn a merchant's mails about low stock on or off, and set their language."""

    enabled: bool
    language: Annotated[str, Meta(max_length=10)]


class GetLowStockMails(Command):
    """Get whether the merchant's mails about low stock are on."""


class StaffSignIn(Struct, frozen=True):
    """The sign-in of a person that the platform vouches for.

    shop       the domain of the shop
    called     the user agent of the browser
    """

    shop: str
    staff_id: str
    called: str


class ListActors(Command):
    """Get which merchants and which keys made which entries of the history."""

    entry_ids: Annotated[list[int], Meta(max_length=500)]


class EntryActor(Struct, frozen=True):
    """The person or agent that made an entry: the address or the platform's number of a merchant, or the id of an
    agent's key.

    agent_name    what the program of the agent calls itself; None: not stated
    """

    entry_id: int
    email: str | None
    staff_id: str | None
    key_id: int | None
    agent_name: str | None
