"""The secret of a service, from which a key for each purpose is derived, and the sealing of stored secrets.

The key of one purpose can neither verify nor decrypt what the key of another has signed or sealed.
"""

import contextlib
import hmac
import os
import secrets
import tempfile
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from cryptography.fernet import Fernet, InvalidToken

SHORTEST = 32
"""The least number of characters in a secret."""


class TooShort(Exception):
    """The secret has fewer than `SHORTEST` characters."""


class Unreadable(Exception):
    """The text was sealed with another secret."""


@dataclass(frozen=True)
class Secret:
    """The service's secret."""

    value: bytes = field(repr=False)

    def derive(self, purpose: str) -> bytes:
        """A key of 32 bytes for one purpose."""
        return hmac.digest(self.value, purpose.encode(), sha256)

    @cached_property
    def _fernet(self) -> Fernet:
        return Fernet(urlsafe_b64encode(self.derive("seal")))

    def seal(self, text: str) -> bytes:
        """The text, encrypted and authenticated."""
        return self._fernet.encrypt(text.encode())

    def unseal(self, sealed: bytes) -> str:
        """The text that was sealed. Raises `Unreadable` when it was sealed with another secret."""
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken as error:
            raise Unreadable("This was encrypted under another secret key.") from error


class HasSecret(Protocol):
    """Resources with the secret of the service."""

    @property
    def secret(self) -> Secret: ...


def secret(value: str, path: Path) -> Secret:
    """The secret in a setting, or else the one in a file, which is created if it does not exist.

    Raises `TooShort`: keys that are derived from a short secret could be guessed.
    """
    if value:
        return _long_enough(value, "The secret key")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as fresh:  # only its owner can read it
            fresh.write(secrets.token_urlsafe(32))
        # The first process to create the link wins; no process ever reads a half-written file.
        with contextlib.suppress(FileExistsError):
            os.link(fresh.name, path)
        Path(fresh.name).unlink()
    return _long_enough(path.read_text(encoding="utf-8").strip(), f"The secret in {path}")


def _long_enough(value: str, what: str) -> Secret:
    if len(value) < SHORTEST:
        raise TooShort(f"{what} has {len(value)} characters; it needs {SHORTEST} or more.")
    return Secret(value.encode())
