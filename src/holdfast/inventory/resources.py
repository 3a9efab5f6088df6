"""What operations and jobs of the inventory service reach beside its database."""

from dataclasses import dataclass
from typing import LiteralString, TypeAlias

from holdfast.inventory.settings import Settings
from holdfast.kit import database, resources
from holdfast.kit.mailer import mailer_of


@dataclass(frozen=True)
class Resources(resources.Resources[Settings]):
    """The inventory service's resources.

    client_secrets    the secrets storefront requests may be signed with, the present one first
    """

    client_secrets: tuple[bytes, ...]


def build(settings: Settings) -> Resources:
    """The resources that these settings name."""
    secret = resources.secret_of(settings)
    derived = [each.hex() for each in secret.derive_each("client secret")]
    present = [settings.client_secret] if settings.client_secret else derived
    client_secrets = tuple(each.encode() for each in (*present, settings.old_client_secret) if each)
    return Resources(settings, secret, mailer_of(settings), client_secrets)


Reader: TypeAlias = database.Reader[Resources]
Tx: TypeAlias = database.Tx[Resources]
Database: TypeAlias = database.Database[Resources]

TENANCY: LiteralString = """
    select set_config('role', 'holdfast_shop', true), set_config('holdfast.shop', %(tenant)s, true)
"""
"""How a transaction enters a shop: from then on it is a role that row-level security shows that shop alone."""
