"""What operations and jobs of the inventory service reach beside its database."""

from dataclasses import dataclass
from typing import LiteralString, TypeAlias

from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify.admin import Admin
from holdfast.inventory.shopify.platform import Platform
from holdfast.inventory.shopify.token_endpoint import TokenEndpoint
from holdfast.kit import database, resources, steps
from holdfast.kit.mailer import mailer_of


@dataclass(frozen=True)
class Resources(resources.Resources[Settings]):
    """The inventory service's resources.

    client_secrets    the secrets the platform's requests may be signed with, the present one first
    platform          how shops are reached at the platform
    token_endpoint    where they give tokens
    admin             their Admin API
    """

    client_secrets: tuple[bytes, ...]
    platform: Platform
    token_endpoint: TokenEndpoint
    admin: Admin


def build(settings: Settings) -> Resources:
    """The resources that these settings name."""
    secret = resources.secret_of(settings)
    derived = [each.hex() for each in secret.derive_each("client secret")]
    present = [settings.client_secret] if settings.client_secret else derived
    client_secrets = tuple(each.encode() for each in (*present, settings.old_client_secret) if each)
    platform = Platform(settings.platform_address, settings.platform_api_version)
    return Resources(
        settings,
        secret,
        mailer_of(settings),
        client_secrets,
        platform,
        TokenEndpoint(platform, settings.client_id, client_secrets[0].decode()),
        Admin(platform),
    )


Reader: TypeAlias = database.Reader[Resources]
Tx: TypeAlias = database.Tx[Resources]
Database: TypeAlias = database.Database[Resources]
Steps: TypeAlias = steps.Steps[Resources]

TENANCY: LiteralString = """
    select set_config('role', 'holdfast_shop', true), set_config('holdfast.shop', %(tenant)s, true)
"""
"""How a transaction enters a shop: from then on it is a role that row-level security shows that shop alone."""
