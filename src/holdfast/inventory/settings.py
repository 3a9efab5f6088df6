"""Settings of the inventory service; see `docs/settings.md`."""

from functools import cached_property
from typing import LiteralString, TypeAlias

from limits import RateLimitItem, RateLimitItemPerMinute, RateLimitItemPerSecond
from pydantic import Field

from holdfast.kit import database, secrets
from holdfast.kit import settings as kit


class Settings(kit.Settings):
    """Read from the environment once, at start."""

    service = "inventory"

    database_url: str = Field("", validation_alias="INVENTORY_DATABASE_URL", description=kit.DATABASE_URL)
    base_url: str = Field("", validation_alias="INVENTORY_BASE_URL", description=kit.BASE_URL)
    secret_key: str = Field(
        "",
        validation_alias="INVENTORY_SECRET_KEY",
        description="What stored secrets are encrypted with, at least 32 characters; empty makes one and keeps it in "
        "the data directory.",
    )
    client_id: str = Field(
        "", validation_alias="INVENTORY_CLIENT_ID", description="The app's client id at the storefront platform."
    )
    client_secret: str = Field(
        "",
        validation_alias="INVENTORY_CLIENT_SECRET",
        description="The app's client secret at the storefront platform, by which storefront requests are signed; "
        "empty derives one from the secret key.",
    )
    old_client_secret: str = Field(
        "",
        validation_alias="INVENTORY_OLD_CLIENT_SECRET",
        description="The client secret before it was rotated; accepted too.",
    )
    calls_per_second: int = Field(
        120, ge=1, validation_alias="MCP_RATE_LIMIT", description="Tool calls per API key and second."
    )
    identities_per_minute: int = Field(
        30,
        ge=1,
        validation_alias="API_IDENTITY_RATE_LIMIT",
        description="POST /api/agent/identity and /oauth/token per client address and minute.",
    )

    @cached_property
    def secret(self) -> secrets.Secret:
        """What all other secrets of the service are derived from."""
        return secrets.secret(self.secret_key, self.data_dir / "inventory.secret")

    @cached_property
    def client_secrets(self) -> tuple[bytes, ...]:
        """The secrets storefront requests may be signed with, the present one first."""
        present = self.client_secret or self.secret.derive("client secret").hex()
        return tuple(each.encode() for each in (present, self.old_client_secret) if each)

    @property
    def limits(self) -> dict[str, RateLimitItem]:
        return {
            "tool calls": RateLimitItemPerSecond(self.calls_per_second),
            "identities": RateLimitItemPerMinute(self.identities_per_minute),
        }


Tx: TypeAlias = database.Tx[Settings]
Database: TypeAlias = database.Database[Settings]

TENANCY: LiteralString = """
    select set_config('role', 'holdfast_shop', true), set_config('holdfast.shop', %(tenant)s, true)
"""
"""How a transaction enters a shop: from then on it is a role that row-level security shows that shop alone."""
