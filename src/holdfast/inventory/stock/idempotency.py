"""A call that is repeated with its key does nothing and answers as it did before.

A key belongs to its shop and to the arguments it first came with. Its shop must be locked, so that of two calls at
once the second finds the answer of the first.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from hashlib import sha256
from typing import NamedTuple, TypeVar

import msgspec

from holdfast.inventory.problems import IDEMPOTENCY_KEY_REUSED
from holdfast.inventory.settings import Tx
from holdfast.inventory.stock.model import Repeatable

T = TypeVar("T")

KEPT_DAYS = 30
"""How long an answer is kept for a repetition."""


class Remembered(NamedTuple):
    """A call that was answered, as JSON."""

    fingerprint: bytes
    answer: bytes


def key_of(command: Repeatable) -> str | None:
    """The key of a call that may be repeated. A dry run answers anew each time, and needs none."""
    return None if command.dry_run else command.idempotency_key


def fingerprint(source: str, command: Repeatable) -> bytes:
    """What makes two calls the same call."""
    return sha256(source.encode() + msgspec.json.encode(command)).digest()


def replayed(earlier: Remembered, print: bytes, answer: type[T]) -> T:
    """The answer a call was given before. Raises `idempotency_key_reused` when that was another call."""
    if earlier.fingerprint != print:
        raise IDEMPOTENCY_KEY_REUSED()
    return msgspec.json.decode(earlier.answer, type=answer)


async def once(
    tx: Tx,
    shop_id: int,
    source: str,
    command: Repeatable,
    answer: type[T],
    work: Callable[[], Awaitable[T]],
    *,
    stored: Callable[[T], bool] = lambda _: True,
) -> T:
    """What `work` answers, or answered when the same call came before.

    Only what stored something is remembered: refusals and dry runs are tried again.
    """
    key = key_of(command)
    if key is None:
        return await work()
    print = fingerprint(source, command)
    if earlier := (await recall(tx, shop_id, [key])).get(key):
        return replayed(earlier, print, answer)
    done = await work()
    if stored(done):
        await remember(tx, shop_id, {key: Remembered(print, msgspec.json.encode(done))})
    return done


async def recall(tx: Tx, shop_id: int, keys: Collection[str]) -> Mapping[str, Remembered]:
    """The calls among those keys that were answered before."""
    rows = await tx.tuples(
        """
        select key, fingerprint, answer from idempotency_keys where shop_id = %(shop_id)s and key = any(%(keys)s)
        """,
        {"shop_id": shop_id, "keys": list(keys)},
    )
    return {key: Remembered(fingerprint, answer) for key, fingerprint, answer in rows}


async def remember(tx: Tx, shop_id: int, answers: Mapping[str, Remembered]) -> None:
    await tx.run(
        """
        insert into idempotency_keys (shop_id, key, fingerprint, answer)
        select %(shop_id)s, * from unnest(%(keys)s::text[], %(fingerprints)s::bytea[], %(answers)s::bytea[])
        """,
        {
            "shop_id": shop_id,
            "keys": list(answers),
            "fingerprints": [each.fingerprint for each in answers.values()],
            "answers": [each.answer for each in answers.values()],
        },
    )


async def forget(tx: Tx) -> int:
    """Forget the answers nobody will ask for again; how many."""
    return await tx.value(
        """
        with gone as (
            delete from idempotency_keys where created_at < now() - make_interval(days => %(days)s) returning 1)
        select count(*) from gone
        """,
        {"days": KEPT_DAYS},
    )
