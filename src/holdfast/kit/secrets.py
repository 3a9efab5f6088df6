"""Secrets at rest: one secret of the service, from which a key for each purpose is derived.

Purposes cannot stand in for each other: what one key signed or sealed, no other opens.
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

from cryptography.fernet import Fernet, InvalidToken

SHORTEST = 32
"""Characters a secret has at least."""


class TooShort(Exception):
    """A secret too short to be one."""


class Unreadable(Exception):
    """What was sealed was sealed under another secret."""


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
        """The text that was sealed. Raises `Unreadable` when it was sealed under another secret."""
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken as error:
            raise Unreadable("This was encrypted under another secret key.") from error


def secret(value: str, path: Path) -> Secret:
    """The secret a setting gives, or else the one in a file, which is made when it does not exist.

    Raises `TooShort`: all that is derived from a short secret could be guessed.
    """
    if value:
        return _long_enough(value, "The secret key")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as fresh:  # readable by its owner alone
            fresh.write(secrets.token_urlsafe(32))
        # Whoever links first wins; a half-written file is never seen.
        with contextlib.suppress(FileExistsError):
            os.link(fresh.name, path)
        Path(fresh.name).unlink()
    return _long_enough(path.read_text(encoding="utf-8").strip(), f"The secret in {path}")


def _long_enough(value: str, what: str) -> Secret:
    if len(value) < SHORTEST:
        raise TooShort(f"{what} has {len(value)} characters; it needs {SHORTEST} or more.")
    return Secret(value.encode())
