"""Settings of the inventory service; see `docs/settings.md`."""

import re
from urllib.parse import urlsplit

from limits import RateLimitItem, RateLimitItemPerMinute, RateLimitItemPerSecond
from pydantic import Field, field_validator

from holdfast.accounts.settings import SignInSettings
from holdfast.kit.contract.addresses import is_web_address
from holdfast.kit.environment import settings as kit

_VERSION = re.compile(r"20[0-9]{2}-(01|04|07|10)|unstable")


class Settings(SignInSettings):
    """Read from the environment once, at start."""

    service = "inventory"
    variables_of_others = frozenset({"MAX_STREAMS_PER_ORGANIZER"})

    database_url: str = Field("", repr=False, validation_alias="INVENTORY_DATABASE_URL", description=kit.DATABASE_URL)
    base_url: str = Field("", validation_alias="INVENTORY_BASE_URL", description=kit.BASE_URL)
    secret_key: str = Field(
        "",
        repr=False,
        validation_alias="INVENTORY_SECRET_KEY",
        description="Secret of 32 or more characters that encrypts what is stored. Required with "
        "`INVENTORY_DATABASE_URL`; else empty makes one in the data directory.",
    )
    old_secret_key: str = Field("", repr=False, validation_alias="INVENTORY_OLD_SECRET_KEY", description=kit.OLD_KEY)
    client_id: str = Field(
        "", validation_alias="INVENTORY_CLIENT_ID", description="Client id of the app at the storefront platform."
    )
    client_secret: str = Field(
        "",
        repr=False,
        validation_alias="INVENTORY_CLIENT_SECRET",
        description="Client secret of the app at the platform, which signs storefront requests; empty derives one "
        "from the secret key.",
    )
    old_client_secret: str = Field(
        "",
        repr=False,
        validation_alias="INVENTORY_OLD_CLIENT_SECRET",
        description="The client secret before it was rotated; accepted too.",
    )
    platform_address: str = Field(
        "https://{shop}",
        validation_alias="PLATFORM_ADDRESS",
        description="Address of a shop at the storefront platform, with `{shop}` for its domain.",
    )
    platform_api_version: str = Field(
        "2026-10",
        validation_alias="PLATFORM_API_VERSION",
        description="Version of the platform's Admin API.",
    )
    app_bridge: str = Field(
        "https://cdn.shopify.com/shopifycloud/app-bridge.js",
        validation_alias="APP_BRIDGE_ADDRESS",
        description="Address of the platform's script for pages inside its admin.",
    )
    identities_per_minute: int = Field(
        30,
        ge=1,
        validation_alias="API_IDENTITY_RATE_LIMIT",
        description="POST /api/agent/identity and /oauth/token per client address and minute.",
    )
    installs_per_minute: int = Field(
        30,
        ge=1,
        validation_alias="INSTALL_RATE_LIMIT",
        description="/auth, /auth/install, /auth/session and /console/enter per client address and minute.",
    )

    streams_per_key: int = Field(
        100,
        ge=1,
        validation_alias="MAX_STREAMS_PER_KEY",
        description="Open event streams of `/mcp` of one API key to one process.",
    )
    streams_per_shop: int = Field(
        10_000,
        ge=1,
        validation_alias="MAX_STREAMS_PER_SHOP",
        description="Open event streams of one shop to one process.",
    )

    @field_validator("client_secret", "old_client_secret")
    @classmethod
    def _without_blanks(cls, secret: str) -> str:
        # A blank secret would be easy to guess.
        return secret.strip()

    @field_validator("platform_address")
    @classmethod
    def _names_a_shop(cls, address: str) -> str:
        if address.count("{shop}") != 1 or not is_web_address(address.replace("{shop}", "shop")):
            raise ValueError("must be an http or https address with {shop} in it once, such as https://{shop}")
        return address.rstrip("/")

    @field_validator("app_bridge")
    @classmethod
    def _is_a_script(cls, address: str) -> str:
        if not is_web_address(address):
            raise ValueError("must be an http or https address")
        return address

    @field_validator("platform_api_version")
    @classmethod
    def _is_a_version(cls, version: str) -> str:
        if not _VERSION.fullmatch(version):
            raise ValueError("must be a quarter such as 2026-10, or unstable")
        return version

    @property
    def forms_to_platform(self) -> str:
        """Where a form that connects a shop leads, for `form-action` of a policy.

        It is the scheme alone: the platform redirects to further addresses of its own, which browsers check too.
        """
        return f"{urlsplit(self.platform_address).scheme}:"

    @property
    def limits(self) -> dict[str, RateLimitItem]:
        return {
            "messages": RateLimitItemPerSecond(self.messages_per_second),
            "identities": RateLimitItemPerMinute(self.identities_per_minute),
            "installs": RateLimitItemPerMinute(self.installs_per_minute),
            **self.sign_in_limits,
        }
