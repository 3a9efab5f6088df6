"""What operations and jobs of the inventory service have beyond its database, with its rules for idempotency keys."""

from dataclasses import dataclass, field
from typing import Any, LiteralString, TypeAlias

from cachetools import TTLCache

from holdfast.inventory.problems import IDEMPOTENCY_KEY_REUSED
from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify.admin import AdminApi
from holdfast.inventory.shopify.platform_client import Platform
from holdfast.inventory.shopify.platform_tokens import TokenEndpoint
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.mail.transport import mailer_of
from holdfast.kit.operations import steps
from holdfast.kit.operations.idempotency import Idempotency
from holdfast.kit.postgres import database
from holdfast.kit.process import resources

MAX_REMEMBERED_POOLS = 20_000
"""The most pools that a process remembers, of all shops together. One takes about a kilobyte."""

REMEMBERED_SECONDS = 60
"""Seconds for which a process remembers a shop after its last change."""


REMEMBERED_POOLS = cache_bound(
    "Pools whose stock a process remembers",
    "inventory",
    f"{MAX_REMEMBERED_POOLS}, for {REMEMBERED_SECONDS} seconds",
    lost="is read again",
)

TENANCY: LiteralString = """
    select set_config('role', 'holdfast_shop', true), set_config('holdfast.shop', %(tenant)s, true)
"""
"""The statement by which a transaction enters a shop: row-level security then shows its role only that shop."""

IDEMPOTENCY = Idempotency(
    hours=30 * 24,
    reused=IDEMPOTENCY_KEY_REUSED,
    owner=lambda caller: f"shop {caller.tenant}",
)
"""An idempotency key belongs to the shop, with any API key or token."""


@dataclass(frozen=True)
class Resources(resources.Resources[Settings]):
    """The inventory service's resources.

    client_secrets    the secrets that may sign the platform's requests, the present one first
    platform          the client of the platform
    token_endpoint    the token endpoint of shops
    admin             the Admin API of shops
    stock             what `inventory/stock/remembered_stock.py` remembers of shops, by their ids
    """

    client_secrets: tuple[bytes, ...]
    platform: Platform
    token_endpoint: TokenEndpoint
    admin: AdminApi
    stock: TTLCache[int, Any] = field(
        default_factory=lambda: TTLCache(MAX_REMEMBERED_POOLS, REMEMBERED_SECONDS, getsizeof=len)
    )


def build(settings: Settings) -> Resources:
    """The resources that these settings name."""
    secret = resources.secret_of(settings)
    derived = [derived_secret.hex() for derived_secret in secret.derive_each("client secret")]
    present = [settings.client_secret] if settings.client_secret else derived
    client_secrets = tuple(
        secret_text.encode() for secret_text in (*present, settings.old_client_secret) if secret_text
    )
    platform = Platform(settings.platform_address, settings.platform_api_version)
    return Resources(
        settings,
        secret,
        mailer_of(settings),
        client_secrets,
        platform,
        TokenEndpoint(platform, settings.client_id, client_secrets[0].decode()),
        AdminApi(platform),
        webhooks=resources.webhook_client(settings),
    )


Reader: TypeAlias = database.Reader[Resources]
Tx: TypeAlias = database.Tx[Resources]
Database: TypeAlias = database.Database[Resources]
Steps: TypeAlias = steps.Steps[Resources]
