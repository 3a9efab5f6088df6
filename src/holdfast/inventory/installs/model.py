"""Installs: shops whose merchants have installed the app, and the tokens with which the service acts for them."""

import datetime as dt

from msgspec import Struct

from holdfast.kit.tasks import Task


class Install(Struct, frozen=True):
    """Whether and how a shop has the app.

    broken    why the merchant must open or install the app again; None: nothing is wrong
    """

    shop_id: int
    domain: str
    scopes: list[str]
    installed_at: dt.datetime
    uninstalled_at: dt.datetime | None
    broken: str | None


class StoredTokens(Struct, frozen=True):
    """The tokens of a shop as they are stored.

    expires_in    seconds until the access token ends; None: it does not end by itself
    """

    domain: str
    sealed: bytes
    expires_in: float | None
    generation: int


class Tokens(Struct, frozen=True):
    """What is sealed of tokens."""

    access_token: str
    refresh_token: str | None


class OfShop(Struct):
    """A task about one shop."""

    shop_id: int


REDACT = Task("redact_shop", OfShop)
"""Delete everything of a shop."""

SUBSCRIBE = Task("subscribe_shop", OfShop)
"""See that the platform sends all webhooks of a shop."""
