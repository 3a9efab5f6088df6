"""The secret of a service, from which a key for each purpose is derived, and the sealing of stored secrets.

The key of one purpose can neither verify nor decrypt what the key of another has signed or sealed.
"""

import contextlib
import hmac
import os
import secrets
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

SHORTEST = 32
"""The least number of characters in a secret."""


class TooShort(Exception):
    """The secret has fewer than `SHORTEST` characters."""


class Unreadable(Exception):
    """The text was sealed with another secret."""


@dataclass(frozen=True)
class Signer:
    """Signs texts with the first of its keys, and accepts signatures made with any of them.

    length    how many hexadecimal digits a signature has; 32 are 128 bits
    """

    keys: Sequence[bytes] = field(repr=False)
    length: int = 64

    def sign(self, text: str) -> str:
        """The signature, in hexadecimal."""
        return self._signature(self.keys[0], text)

    def every(self, text: str) -> list[str]:
        """Every signature that is accepted; the first is that of `sign`."""
        return [self._signature(key, text) for key in self.keys]

    def accepts(self, text: str, signature: str) -> bool:
        return any(hmac.compare_digest(each.encode(), signature.encode()) for each in self.every(text))

    def _signature(self, key: bytes, text: str) -> str:
        return hmac.digest(key, text.encode(), sha256).hex()[: self.length]


@dataclass(frozen=True)
class Secret:
    """The service's secret.

    old    the secret before it was rotated, if any: what was sealed or signed with it is accepted too
    """

    value: bytes = field(repr=False)
    old: bytes = field(default=b"", repr=False)

    def derive(self, purpose: str) -> bytes:
        """A key of 32 bytes for one purpose."""
        return self.derive_each(purpose)[0]

    def derive_each(self, purpose: str) -> Sequence[bytes]:
        """The keys for one purpose: that of the present secret, and that of the old one if there is one."""
        return [hmac.digest(each, purpose.encode(), sha256) for each in (self.value, self.old) if each]

    def signer(self, purpose: str, length: int = 64) -> Signer:
        """Signs with the present secret, and accepts what the old one signed."""
        return Signer(self.derive_each(purpose), length)

    @cached_property
    def _fernet(self) -> MultiFernet:
        return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in self.derive_each("seal")])

    def seal(self, text: str) -> bytes:
        """The text, encrypted and authenticated."""
        return self._fernet.encrypt(text.encode())

    def unseal(self, sealed: bytes) -> str:
        """The text that was sealed. Raises `Unreadable` when it was sealed with another secret."""
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken as error:
            raise Unreadable("This was encrypted under another secret key.") from error

    def reseal(self, sealed: bytes) -> bytes:
        """The same text, sealed with the present secret. Raises `Unreadable`."""
        try:
            return self._fernet.rotate(sealed)
        except InvalidToken as error:
            raise Unreadable("This was encrypted under another secret key.") from error


class HasSecret(Protocol):
    """Resources with the secret of the service."""

    @property
    def secret(self) -> Secret: ...


def secret(value: str, path: Path, old: str = "") -> Secret:
    """The secret in a setting, or else the one in a file, which is created if it does not exist; and the old one.

    Raises `TooShort`: keys that are derived from a short secret could be guessed.
    """
    if value:
        return _long_enough(value, "The secret key", old)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as fresh:  # only its owner can read it
            fresh.write(secrets.token_urlsafe(32))
        # The first process to create the link wins; no process ever reads a half-written file.
        with contextlib.suppress(FileExistsError):
            os.link(fresh.name, path)
        Path(fresh.name).unlink()
    return _long_enough(path.read_text(encoding="utf-8").strip(), f"The secret in {path}", old)


def _long_enough(value: str, what: str, old: str) -> Secret:
    if len(value) < SHORTEST:
        raise TooShort(f"{what} has {len(value)} characters; it needs {SHORTEST} or more.")
    return Secret(value.encode(), old.encode())
