"""Installs: shops whose merchants have installed the app, and the tokens with which the service acts for them."""

import datetime as dt

from msgspec import Struct

from holdfast.kit.postgres.transactions import Task


class Install(Struct, frozen=True):
    """The install of the app at a shop.

    broken                 why the merchant must open or install the app again; None: no need
    subscription_errors    topics of which the platform sends no webhooks, and why
    """

    shop_id: int
    domain: str
    scopes: list[str]
    installed_at: dt.datetime
    uninstalled_at: dt.datetime | None
    broken: str | None
    subscription_errors: list[str]


class StoredTokens(Struct, frozen=True):
    """The row of the tokens of a shop.

    expires_in    seconds until the access token ends; None: it does not end by itself
    """

    domain: str
    sealed: bytes
    expires_in: float | None
    generation: int


class TokenPair(Struct, frozen=True):
    """The sealed content of the tokens of a shop."""

    access_token: str
    refresh_token: str | None


class ShopTask(Struct):
    """The arguments of a task about one shop."""

    shop_id: int


REDACT = Task("redact_shop", ShopTask)
"""Delete everything of a shop."""

SUBSCRIBE = Task("subscribe_shop", ShopTask)
"""Make the missing subscriptions of a shop."""
