"""The key that signs heads and promises: Ed25519, in the table `log_keys`, sealed with the secret of the service.

It is made when it is first needed, and never rotated, since receipts are verified with it for years. Only if the secret
that opens it was lost there is another one. The last key that can be opened signs.
"""

import contextlib
from collections.abc import Generator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast.events.resources import Database, Reader, Tx
from holdfast.kit.security.service_secret import Secret, UnsealError
from holdfast_verify.formats.signed_note import decode_base64, encode_base64

LOG_KEYS_CHANNEL = "log_keys"
"""A channel without messages. Its listeners are called when notices may have been lost."""

log = structlog.get_logger()

_cached_keys: WeakKeyDictionary[Database, Ed25519PrivateKey] = WeakKeyDictionary()


class PublicKey(NamedTuple):
    """A public key, 32 bytes, and since when it is stored."""

    key: bytes
    since: datetime


async def list_public_keys(reader: Reader) -> list[PublicKey]:
    """All keys that have ever signed, oldest first."""
    return [PublicKey(*row) for row in await reader.tuples("select public_key, inserted_at from log_keys order by id")]


async def open_keys(reader: Reader) -> Sequence[Ed25519PrivateKey]:
    """The keys that this service can open; the first one signs. There may be none."""
    keys: list[Ed25519PrivateKey] = []
    for id, sealed_key in await reader.tuples("select id, sealed from log_keys order by id desc"):
        try:
            keys.append(_unseal_key(reader.resources.secret, sealed_key))
        except UnsealError:
            log.warning("a key of the public logs was sealed under another secret key", id=id)
    return keys


async def signing_key(tx: Tx) -> Ed25519PrivateKey:
    """The key that signs. It is made if there is none; concurrent processes get the same one."""
    keys = await open_keys(tx)
    if not keys:
        # Other transactions that make the first key wait here, until this one ends.
        await tx.run("lock table log_keys in share row exclusive mode")
        keys = await open_keys(tx) or [await _make_key(tx)]
    return keys[0]


async def cached_signing_key(database: Database) -> Ed25519PrivateKey:
    """The key that signs, which this process reads once."""
    key = _cached_keys.get(database)
    if key is None:
        key = _cached_keys[database] = await database.transact(signing_key)
    return key


@contextlib.contextmanager
def forgetting(database: Database) -> Generator[None]:
    """While the block lasts, the kept key is forgotten whenever the database was out of reach: it may be restored."""

    def forget(_: str) -> None:
        _cached_keys.pop(database, None)

    with database.listen(LOG_KEYS_CHANNEL, forget):
        yield


async def _make_key(tx: Tx) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    await tx.run(
        "insert into log_keys (public_key, sealed) values (%(public_key)s, %(sealed)s)",
        {
            "public_key": key.public_key().public_bytes_raw(),
            "sealed": tx.resources.secret.seal(encode_base64(key.private_bytes_raw())),
        },
    )
    return key


@lru_cache(maxsize=16)
def _unseal_key(secret: Secret, sealed_key: bytes) -> Ed25519PrivateKey:
    """A stored key; cached, since it is read with every head. Raises `UnsealError`."""
    return Ed25519PrivateKey.from_private_bytes(decode_base64(secret.unseal(sealed_key)))
