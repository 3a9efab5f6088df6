"""The secrets of the demo payments, made at random at the first start."""

import secrets
from pathlib import Path
from typing import NamedTuple

from holdfast.kit.security.secrets import secret


class ProcessorSecrets(NamedTuple):
    """The API key of requests, and the secret that signs webhooks."""

    api: str
    webhooks: str


def new() -> ProcessorSecrets:
    return ProcessorSecrets(f"sk_test_{secrets.token_urlsafe(32)}", f"whsec_{secrets.token_urlsafe(32)}")


def load_or_create(file: Path) -> ProcessorSecrets:
    """The secrets in files next to the database, made if they do not exist. Only their owner can read them."""
    api, webhooks = [secret("", file.with_suffix(suffix)).value.decode() for suffix in (".key", ".webhooks")]
    return ProcessorSecrets(f"sk_test_{api}", f"whsec_{webhooks}")
