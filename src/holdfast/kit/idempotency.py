"""Idempotency keys: a request that is repeated with its key is done once, and gets the first answer again.

The answer is stored in the table `idempotency_answers` of the service's database, in the same transaction as the work:
either both are stored or neither. It is sealed with the `secret` of the service's resources, since it may contain
secrets. Keys and requests are stored as hashes only. A refusal or an error is not stored: the request may be tried
again with the same key.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from holdfast.kit.batch import Locked
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.database import Reader, Tx
from holdfast.kit.problems import IDEMPOTENCY_KEY_REUSED, Problem, ProblemType
from holdfast.kit.secrets import HasSecret, Secret, Unreadable

LOCK = 0x6964656D
"""The first key of the advisory locks ("idem") that are held while a request is looked up, done and stored."""


LARGE = 16_384
"""Stored answers with more bytes are large."""

MOST_LARGE = 16_777_216
"""The most bytes of large answers that are kept for one tenant. Beyond it, only the fact that it answered is kept."""

PORTION = 5_000
"""The most answers that one statement deletes."""


class Request(NamedTuple):
    """A request that may be repeated.

    id             the hash of its key and of the key's owner
    fingerprint    the hash of the operation and the command
    account        whose large answers are counted together
    """

    id: bytes
    fingerprint: bytes
    account: str


class Stored(NamedTuple):
    """A stored request: its fingerprint, and its sealed answer."""

    fingerprint: bytes
    sealed: bytes


@dataclass(frozen=True)
class Idempotency:
    """How a service treats idempotency keys.

    hours     how long an answer is kept
    reused    the problem when a key was used for another request
    owner     returns the owner of a key: two owners may use the same key
    """

    hours: int = 24
    reused: ProblemType = IDEMPOTENCY_KEY_REUSED
    owner: Callable[[Caller], str] = lambda caller: caller.name

    def request(self, operation: str, caller: Caller, command: Command, key: str) -> Request:
        asked = operation.encode() + msgspec.json.encode(command)
        id = sha256(f"{self.owner(caller)} {key}".encode()).digest()
        return Request(id, sha256(asked).digest(), caller.account)

    async def once(
        self,
        tx: Tx[HasSecret],
        requests: Sequence[Request],
        work: Callable[[Sequence[int]], Awaitable[Sequence[Any]]],
    ) -> list[Any]:
        """Return the answer to each request: the stored one, byte for byte, if there is one, else the one of `work`.

        The requests are locked, and no two of them have the same id.

        work    answers the new requests, given by their indexes; a `Problem` among its answers is not stored
        """
        stored = await self._find(tx, requests)
        first = {each.id: place for place, each in reversed([*enumerate(requests)])}
        fresh = sorted(place for id, place in first.items() if id not in stored)
        done = dict(zip(fresh, await work(fresh), strict=True)) if fresh else {}
        if stored:
            await tx.confirm()
        secret = tx.resources.secret
        await self._insert(
            tx,
            {
                requests[place]: secret.seal(msgspec.json.encode(answer).decode())
                for place, answer in done.items()
                if not isinstance(answer, Problem | Locked)
            },
        )
        return [
            self._replayed(secret, stored[each.id], each)
            if each.id in stored
            else done[first[each.id]]
            if each.fingerprint == requests[first[each.id]].fingerprint
            else self.reused()
            for each in requests
        ]

    async def lock(self, tx: Tx[Any], requests: Sequence[Request]) -> None:
        """Lock requests until the transaction ends. If another process works on one of them, this waits for it."""
        # A statement of its own, so that the next one sees what the transactions that held these locks have stored.
        await tx.run(
            "select pg_advisory_xact_lock(%(space)s, lock) from unnest(%(locks)s::int[]) as lock",
            {"space": LOCK, "locks": sorted({_lock(each) for each in requests})},
        )

    async def lock_free(self, tx: Tx[Any], requests: Sequence[Request]) -> list[bool]:
        """Lock those of the requests that no other process works on. Returns for each whether it is locked now."""
        rows = await tx.tuples(
            "select lock from unnest(%(locks)s::int[]) as lock where pg_try_advisory_xact_lock(%(space)s, lock)",
            {"space": LOCK, "locks": [_lock(each) for each in requests]},
        )
        locked = {lock for (lock,) in rows}
        return [_lock(each) in locked for each in requests]

    async def replay(self, reader: Reader[HasSecret], request: Request) -> Raw | Problem | None:
        """Return the stored answer to a request, or None if there is none."""
        stored = await self._find(reader, [request])
        return self._replayed(reader.resources.secret, stored[request.id], request) if stored else None

    def _replayed(self, secret: Secret, stored: Stored, request: Request) -> Raw | Problem:
        if stored.fingerprint != request.fingerprint:
            return self.reused()
        if not stored.sealed:
            return self.reused(
                "This was done before, but its answer cannot be read any more: it was too large beside others, or is "
                "of an earlier release.",
                hint="Look at what was created; use a new key for a new request.",
            )
        try:
            return Raw(secret.unseal(stored.sealed).encode())
        except Unreadable:
            return self.reused(
                "This was done before, but its answer was stored under another secret key or by an earlier release "
                "and cannot be read any more.",
                hint="Look at what was created; use a new key for a new request.",
            )

    async def _find(self, reader: Reader[Any], requests: Sequence[Request]) -> Mapping[bytes, Stored]:
        rows = await reader.tuples(
            """
            select id, fingerprint, sealed from idempotency_answers
             where id = any(%(ids)s) and inserted_at > now() - make_interval(hours => %(hours)s)
            """,
            {"ids": [each.id for each in requests], "hours": self.hours},
        )
        return {id: Stored(fingerprint, sealed) for id, fingerprint, sealed in rows}

    async def forget_answers(self, tx: Tx[Any]) -> int:
        """Delete a portion of the answers that are older than `hours`. Returns how many were deleted."""
        return await tx.value(
            """
            with deleted as (
                delete from idempotency_answers
                 where id = any(array(select id from idempotency_answers
                                       where inserted_at < now() - make_interval(hours => %(hours)s)
                                       limit %(limit)s for update skip locked))
             returning 1)
            select count(*) from deleted
            """,
            {"hours": self.hours, "limit": PORTION},
        )

    async def _insert(self, tx: Tx[Any], answers: Mapping[Request, bytes]) -> None:
        """Store answers; each replaces an expired answer with the same id.

        Of a large one only the hash of its request is stored, if the tenant's large ones are too many bytes already.
        """
        if not answers:
            return
        await tx.run(
            """
            insert into idempotency_answers (id, fingerprint, sealed, account)
            select id, fingerprint,
                   case when answer.account is null
                          or (select coalesce(sum(octet_length(kept.sealed)), 0) from idempotency_answers as kept
                               where kept.account = answer.account
                                 and kept.inserted_at > now() - make_interval(hours => %(hours)s))
                             + octet_length(answer.sealed) <= %(most)s
                        then answer.sealed else '' end,
                   answer.account
              from unnest(%(ids)s::bytea[], %(fingerprints)s::bytea[], %(sealed)s::bytea[], %(accounts)s::text[])
                   as answer (id, fingerprint, sealed, account)
                on conflict (id) do update
               set fingerprint = excluded.fingerprint, sealed = excluded.sealed, account = excluded.account,
                   inserted_at = excluded.inserted_at
            """,
            {
                "ids": [each.id for each in answers],
                "fingerprints": [each.fingerprint for each in answers],
                "sealed": list(answers.values()),
                "accounts": [each.account if len(sealed) > LARGE else None for each, sealed in answers.items()],
                "hours": self.hours,
                "most": MOST_LARGE,
            },
        )


def _lock(request: Request) -> int:
    return int.from_bytes(request.id[:4], signed=True)
