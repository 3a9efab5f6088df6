"""A request that comes again with its `Idempotency-Key` is done once, and answered as it was the first time.

The answer is stored in the transaction of the work, so there is never one without the other, in the table
`idempotency_answers` of the service's database. It is kept for a day, and sealed with the `secret` of the service's
settings, since it may hold secrets; of keys and requests only hashes are kept. What was refused or failed is not kept:
it may be tried again, with the same key.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from holdfast.kit.command import Command
from holdfast.kit.database import Tx
from holdfast.kit.operation import Caller, Operation
from holdfast.kit.problems import IDEMPOTENCY_KEY_REUSED, Problem
from holdfast.kit.secrets import Secret, Unreadable

KEPT_HOURS = 24

LOCK = 0x6964656D
"""Space of the advisory locks ("idem") under which a request is looked up, done and stored."""


class Request(NamedTuple):
    """A request that may come again.

    id       by which it is known again: its key, and whose that is
    print    what it asks for
    """

    id: bytes
    print: bytes


class Stored(NamedTuple):
    """What a request asked for, and how it was answered, sealed."""

    print: bytes
    sealed: bytes


def request(operation: Operation, caller: Caller, command: Command, key: str) -> Request:
    """The request of a caller. A key belongs to the API key it was sent with; others may use the same."""
    asked = operation.name.encode() + msgspec.json.encode(command)
    return Request(sha256(f"{caller.counted_as} {key}".encode()).digest(), sha256(asked).digest())


async def once(
    tx: Tx[Any], requests: Sequence[Request], work: Callable[[Sequence[int]], Awaitable[Sequence[Any]]]
) -> list[Any]:
    """How each request is answered: by `work`, or, to the byte, as it was when it came before.

    No two of the requests have the same id. A request that another process is at is waited for.

    work    answers the requests at the places it is given, the new ones; a `Problem` among its answers is not kept
    """
    # In a statement of its own: what is looked up after it includes what those who held the locks have stored.
    await tx.run(
        "select pg_advisory_xact_lock(%(space)s, lock) from unnest(%(locks)s::int[]) as lock",
        {"space": LOCK, "locks": sorted({int.from_bytes(each.id[:4], signed=True) for each in requests})},
    )
    known = await _recall(tx, requests)
    fresh = [place for place, each in enumerate(requests) if each.id not in known]
    done = dict(zip(fresh, await work(fresh), strict=True)) if fresh else {}
    secret: Secret = tx.settings.secret
    await _remember(
        tx,
        {
            requests[place]: secret.seal(msgspec.json.encode(answer).decode())
            for place, answer in done.items()
            if not isinstance(answer, Problem)
        },
    )
    return [
        done[place] if place in done else _replayed(secret, known[each.id], each) for place, each in enumerate(requests)
    ]


async def replay(tx: Tx[Any], request: Request) -> Raw | Problem | None:
    """How a request was answered when it came before; None when it has not."""
    known = await _recall(tx, [request])
    return _replayed(tx.settings.secret, known[request.id], request) if known else None


def _replayed(secret: Secret, stored: Stored, request: Request) -> Raw | Problem:
    if stored.print != request.print:
        return IDEMPOTENCY_KEY_REUSED()
    try:
        return Raw(secret.unseal(stored.sealed).encode())
    except Unreadable:
        return IDEMPOTENCY_KEY_REUSED(
            "This was done before, but its answer was stored under another secret key and cannot be read any more.",
            hint="Look at what was created; use a new key for a new request.",
        )


async def _recall(tx: Tx[Any], requests: Sequence[Request]) -> Mapping[bytes, Stored]:
    rows = await tx.tuples(
        """
        select id, print, sealed from idempotency_answers
         where id = any(%(ids)s) and inserted_at > now() - make_interval(hours => %(hours)s)
        """,
        {"ids": [each.id for each in requests], "hours": KEPT_HOURS},
    )
    return {id: Stored(print, sealed) for id, print, sealed in rows}


async def _remember(tx: Tx[Any], answers: Mapping[Request, bytes]) -> None:
    """Store answers, in the place of older ones that are no longer kept."""
    if not answers:
        return
    await tx.run(
        """
        insert into idempotency_answers (id, print, sealed)
        select * from unnest(%(ids)s::bytea[], %(prints)s::bytea[], %(sealed)s::bytea[])
            on conflict (id) do update
           set print = excluded.print, sealed = excluded.sealed, inserted_at = excluded.inserted_at
        """,
        {
            "ids": [each.id for each in answers],
            "prints": [each.print for each in answers],
            "sealed": list(answers.values()),
        },
    )


async def forget_answers(tx: Tx[Any]) -> int:
    """Delete the answers that are no longer kept; how many."""
    return await tx.value(
        """
        with deleted as (
            delete from idempotency_answers where inserted_at < now() - make_interval(hours => %(hours)s) returning 1)
        select count(*) from deleted
        """,
        {"hours": KEPT_HOURS},
    )
