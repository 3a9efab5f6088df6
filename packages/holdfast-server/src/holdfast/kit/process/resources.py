"""Resources: the objects that operations and jobs use besides the database, built from the settings at start."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from holdfast.kit.environment.settings import Settings
from holdfast.kit.mail.transport import Mailer
from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.security.service_secret import Secret, secret
from holdfast.kit.webhooks.sending import ANSWER_SECONDS

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Resources(Generic[S]):
    """Base of a service's resources.

    secret      the secret from which all other secrets of the service are derived
    mailer      sends mails
    webhooks    the HTTP client for the addresses at which programs are told what happened
    """

    settings: S
    secret: Secret
    mailer: Mailer
    webhooks: OutboundClient = field(kw_only=True)


def webhook_client(settings: Settings) -> OutboundClient:
    """The HTTP client for endpoints of webhooks."""
    port = settings.webhook_test_port
    return OutboundClient(seconds=ANSWER_SECONDS, exempt=[("127.0.0.1", port)] if port else [])


def secret_of(settings: Settings) -> Secret:
    """The secret in the settings, or else the one in the data directory, which is created if it does not exist."""
    return secret(settings.secret_key, secret_file(settings), settings.old_secret_key, settings.service)


def secret_file(settings: Settings) -> Path:
    """The file of the secret, which is used if the settings have none."""
    return settings.data_dir / f"{settings.service}.secret"


def existing_secret(settings: Settings) -> str:
    """The secret in the settings, or else the one in the data directory; empty if there is none."""
    file = secret_file(settings)
    return settings.secret_key or (file.read_text(encoding="utf-8").strip() if file.exists() else "")
