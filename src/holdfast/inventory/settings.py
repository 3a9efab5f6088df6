"""Settings of the inventory service; see `docs/settings.md`."""

from limits import RateLimitItem, RateLimitItemPerMinute, RateLimitItemPerSecond
from pydantic import Field

from holdfast.kit import settings as kit


class Settings(kit.Settings):
    """Read from the environment once, at start."""

    service = "inventory"

    database_url: str = Field("", validation_alias="INVENTORY_DATABASE_URL", description=kit.DATABASE_URL)
    base_url: str = Field("", validation_alias="INVENTORY_BASE_URL", description=kit.BASE_URL)
    secret_key: str = Field(
        "",
        validation_alias="INVENTORY_SECRET_KEY",
        description="What stored secrets are encrypted with, at least 32 characters. Required with "
        "`INVENTORY_DATABASE_URL`; otherwise, empty makes one and keeps it in the data directory.",
    )
    old_secret_key: str = Field("", validation_alias="INVENTORY_OLD_SECRET_KEY", description=kit.OLD_KEY)
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
    identities_per_minute: int = Field(
        30,
        ge=1,
        validation_alias="API_IDENTITY_RATE_LIMIT",
        description="POST /api/agent/identity and /oauth/token per client address and minute.",
    )

    streams_per_address: int = Field(
        256,
        ge=1,
        validation_alias="MAX_STREAMS_PER_ADDRESS",
        description="Event streams that one client address may have open to one process.",
    )
    streams_per_key: int = Field(
        100,
        ge=1,
        validation_alias="MAX_STREAMS_PER_KEY",
        description="Event streams of `/mcp` that one API key may have open to one process.",
    )
    streams_per_shop: int = Field(
        10_000,
        ge=1,
        validation_alias="MAX_STREAMS_PER_SHOP",
        description="Event streams that one shop may have open to one process.",
    )

    @property
    def limits(self) -> dict[str, RateLimitItem]:
        return {
            "messages": RateLimitItemPerSecond(self.messages_per_second),
            "identities": RateLimitItemPerMinute(self.identities_per_minute),
        }
