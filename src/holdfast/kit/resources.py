"""Resources: what operations and jobs use besides the database. Built from the settings when a process starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from holdfast.kit.mailer import Mailer
from holdfast.kit.secrets import Secret, secret
from holdfast.kit.settings import Settings

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Resources(Generic[S]):
    """Base of a service's resources.

    secret    the secret from which all other secrets of the service are derived
    mailer    sends mails
    """

    settings: S
    secret: Secret
    mailer: Mailer


def secret_of(settings: Settings) -> Secret:
    """The secret in the settings, or else the one in the data directory, which is created if it does not exist."""
    return secret(settings.secret_key, secret_file(settings), settings.old_secret_key)


def secret_file(settings: Settings) -> Path:
    """Where the secret is kept if the settings have none."""
    return settings.data_dir / f"{settings.service}.secret"
