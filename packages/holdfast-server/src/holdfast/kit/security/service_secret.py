"""The secret of a service, the keys that are derived from it for each purpose, and what they seal in the database.

The key for one purpose can neither verify signatures nor decrypt contents of another purpose. A rotation of the secret
seals all sealed contents again.
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
from typing import Any, LiteralString, NamedTuple, Protocol

import psycopg
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from holdfast.kit.environment.settings import MIN_SECRET_LENGTH
from holdfast.kit.postgres.database import Database, Tx


class SecretTooShort(Exception):
    """The secret has fewer than `MIN_SECRET_LENGTH` characters."""


class UnsealError(Exception):
    """The text was sealed with another secret."""


@dataclass(frozen=True)
class HmacSigner:
    """Signs texts with the first of its keys, and accepts signatures made with any of them.

    length    the number of hexadecimal digits of a signature; 32 are 128 bits
    """

    keys: Sequence[bytes] = field(repr=False)
    length: int = 64

    def sign(self, text: str) -> str:
        """The signature, in hexadecimal."""
        return self._signature(self.keys[0], text)

    def every(self, text: str) -> list[str]:
        """All accepted signatures. The first one is that of `sign`."""
        return [self._signature(key, text) for key in self.keys]

    def accepts(self, text: str, signature: str) -> bool:
        return any(hmac.compare_digest(accepted.encode(), signature.encode()) for accepted in self.every(text))

    def _signature(self, key: bytes, text: str) -> str:
        return hmac.digest(key, text.encode(), sha256).hex()[: self.length]


@dataclass(frozen=True)
class Secret:
    """The service's secret.

    old        the secret before its rotation, if any; contents and signatures made with it are accepted too
    service    the name of the service
    """

    value: bytes = field(repr=False)
    old: bytes = field(default=b"", repr=False)
    service: str = ""

    def derive(self, purpose: str) -> bytes:
        """A key of 32 bytes for one purpose."""
        return self.derive_each(purpose)[0]

    def derive_each(self, purpose: str) -> Sequence[bytes]:
        """The keys for one purpose, from the present secret and, if there is one, from the old secret.

        Each purpose is a text of the code, so there are few, and their keys are kept.
        """
        keys = self._keys.get(purpose)
        if keys is None:
            values = [value for value in (self.value, self.old) if value]
            keys = self._keys[purpose] = tuple(hmac.digest(value, purpose.encode(), sha256) for value in values)
        return keys

    @cached_property
    def _keys(self) -> dict[str, Sequence[bytes]]:
        return {}

    def signer(self, purpose: str, length: int = 64) -> HmacSigner:
        """A signer with the present secret, which also accepts signatures of the old one."""
        return HmacSigner(self.derive_each(purpose), length)

    def own_signer(self, purpose: str, length: int = 64) -> HmacSigner:
        """A signer for a purpose that several services have. No service accepts the signatures of another one."""
        return self.signer(f"{self.service}: {purpose}", length)

    @cached_property
    def _fernet(self) -> MultiFernet:
        return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in self.derive_each("seal")])

    def seal(self, text: str) -> bytes:
        """The text, encrypted and authenticated."""
        return self._fernet.encrypt(text.encode())

    def unseal(self, sealed: bytes) -> str:
        """The unsealed text. Raises `UnsealError` if it was sealed with another secret."""
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken as error:
            raise self._another_key() from error

    def reseal(self, sealed: bytes) -> bytes:
        """The text, sealed with the present secret. Raises `UnsealError`."""
        try:
            return self._fernet.rotate(sealed)
        except InvalidToken as error:
            raise self._another_key() from error

    def _another_key(self) -> "UnsealError":
        present, old = (f"{self.service.upper()}_{name}" for name in ("SECRET_KEY", "OLD_SECRET_KEY"))
        return UnsealError(
            f"This was encrypted under another secret key. Set {present} to that key; or set {old} to it, and run: "
            f"holdfast {self.service} reseal"
        )


class HasSecret(Protocol):
    """Resources with the secret of the service."""

    @property
    def secret(self) -> Secret: ...


def secret(value: str, path: Path, old: str = "", service: str = "") -> Secret:
    """The secret from a setting, or else from a file, which is created if it does not exist; with the old secret.

    Raises `SecretTooShort`, since keys from a short secret could be guessed.
    """
    if value:
        return _long_enough(value, "The secret key", old, service)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as fresh:  # only its owner can read it
            fresh.write(secrets.token_urlsafe(32))
        # The first process to create the link wins; no process ever reads a half-written file.
        with contextlib.suppress(FileExistsError):
            os.link(fresh.name, path)
        Path(fresh.name).unlink()
    return _long_enough(path.read_text(encoding="utf-8").strip(), f"The secret in {path}", old, service)


def _long_enough(value: str, what: str, old: str, service: str) -> Secret:
    if len(value) < MIN_SECRET_LENGTH:
        raise SecretTooShort(f"{what} has {len(value)} characters; it needs {MIN_SECRET_LENGTH} or more.")
    return Secret(value.encode(), old.encode(), service)


RESEAL_BATCH_SIZE = 200
"""Rows that one transaction locks and seals again."""


class SealedTable(NamedTuple):
    """A table with a column `sealed`, and the name and type of its primary key."""

    table: LiteralString
    key: LiteralString
    type: LiteralString


class ResealedTable(NamedTuple):
    """The number of rows of a table that were sealed again, and of rows that are unreadable and stay unchanged."""

    table: str
    rows: int
    unreadable: int


def is_anything_sealed(url: str, tables: Sequence[SealedTable]) -> bool:
    """Whether a database has contents that were sealed with its secret."""
    with psycopg.connect(url, connect_timeout=10) as connection:
        return any(_has_sealed(connection, table.table) for table in tables)


def _has_sealed(connection: psycopg.Connection[Any], table: LiteralString) -> bool:
    if connection.execute("select to_regclass(%s)", [table]).fetchone() == (None,):
        return False
    return connection.execute(f"select from {table} where sealed <> '' limit 1").fetchone() is not None


async def reseal(database: Database[Any], tables: Sequence[SealedTable]) -> list[ResealedTable]:
    """Seal all contents again. It may be repeated, and services may run meanwhile."""
    async with database.pool:
        return [await _reseal_table(database, table) for table in tables]


async def _reseal_table(database: Database[Any], table: SealedTable) -> ResealedTable:
    resealed, unreadable, last = await database.transact(lambda tx: _reseal_batch(tx, table, None))
    while last is not None:
        resealed_now, unreadable_now, last = await database.transact(
            lambda tx, after=last: _reseal_batch(tx, table, after)
        )
        resealed, unreadable = resealed + resealed_now, unreadable + unreadable_now
    return ResealedTable(table.table, resealed, unreadable)


async def _reseal_batch(tx: Tx[HasSecret], table: SealedTable, after: Any) -> tuple[int, int, Any]:
    """Seal the next rows again. Returns how many were sealed, how many were not, and the last key (None at the end)."""
    rows = await tx.tuples(
        f"""
        select {table.key}, sealed from {table.table}
         where %(after)s::{table.type} is null or {table.key} > %(after)s::{table.type}
         order by {table.key} limit %(max_count)s for update
        """,
        {"after": after, "max_count": RESEAL_BATCH_SIZE},
    )
    fresh: dict[Any, bytes] = {}
    for key, sealed in rows:
        try:
            fresh[key] = tx.resources.secret.reseal(sealed)
        except UnsealError:
            continue
    if fresh:
        await tx.run(
            f"""
            update {table.table} set sealed = fresh.sealed
              from unnest(%(keys)s::{table.type}[], %(sealed)s::bytea[]) as fresh (key, sealed)
             where {table.table}.{table.key} = fresh.key
            """,
            {"keys": list(fresh), "sealed": list(fresh.values())},
        )
    return len(fresh), len(rows) - len(fresh), rows[-1][0] if rows else None
