"""Idempotency keys: a request that is repeated with the same key runs once, and gets the first answer again.

The answer is stored in the table `idempotency_answers` of the service's database, in the same transaction as the work:
either both are stored or neither. It is sealed with the `secret` of the service's resources, since it may contain
secrets. Keys and requests are stored as hashes only. A refusal or an error is not stored: the request may be retried
with the same key.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, LiteralString, NamedTuple

import msgspec
from msgspec import Raw

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import IDEMPOTENCY_KEY_REUSED, Problem, ProblemType
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast.kit.security.service_secret import HasSecret, Secret, UnsealError

LOCK_SPACE = 0x6964656D
"""The first key of the advisory locks ("idem") that are held while a request is looked up, run and stored."""


LARGE_ANSWER_BYTES = 16_384
"""Bytes. Stored answers with more bytes count as large."""

MAX_LARGE_ANSWERS_BYTES = 16_777_216
"""Bytes of large answers that are stored for one tenant. Beyond it, only the fact that a request was done is stored."""

DELETE_BATCH_SIZE = 5_000
"""Answers that one statement deletes."""

ERASED_FINGERPRINT = bytes(32)
"""Stands for the hash of a request that was about a person whose data was erased."""


class RepeatableRequest(NamedTuple):
    """A request that may be repeated.

    id             the hash of its key and of the key's owner
    fingerprint    the hash of the operation and the command
    account        the account whose large answers are counted together
    """

    id: bytes
    fingerprint: bytes
    account: str


class StoredAnswer(NamedTuple):
    """A stored request: its fingerprint, and its sealed answer."""

    fingerprint: bytes
    sealed: bytes


class NewAnswer(NamedTuple):
    """A sealed answer that is to be stored, and the person that it is about."""

    sealed: bytes
    person: str | None


@dataclass(frozen=True)
class PeopleInAnswers:
    """The people that answers are about. Their answers are erased with them, by `forget_people`.

    person_of    returns the public id of the person that an answer is about; None: it is about no person
    find_known   SQL: the public ids among `%(people)s` of people who are not erased. It locks them, so that no person
                 is erased between this statement and the commit. It may leave out people whom others have locked
    """

    person_of: Callable[[Any], str | None]
    find_known: LiteralString


NO_PEOPLE = PeopleInAnswers(lambda answer: None, "")


@dataclass(frozen=True)
class Idempotency:
    """The handling of idempotency keys in a service.

    hours     the hours for which an answer is stored
    reused    the problem for a key that was used for another request
    owner     returns the owner of a key; two owners may use the same key
    people    the people that answers are about; the table has the column `person` if there can be any
    """

    hours: int = 24
    reused: ProblemType = IDEMPOTENCY_KEY_REUSED
    owner: Callable[[Caller], str] = lambda caller: caller.name
    people: PeopleInAnswers = NO_PEOPLE

    def request(self, operation: str, caller: Caller, command: Command, key: str) -> RepeatableRequest:
        content = operation.encode() + msgspec.json.encode(command)
        id = sha256(f"{self.owner(caller)} {key}".encode()).digest()
        return RepeatableRequest(id, sha256(content).digest(), caller.account)

    async def answer_once(
        self,
        tx: Tx[HasSecret],
        requests: Sequence[RepeatableRequest],
        work: Callable[[Sequence[int]], Awaitable[Sequence[Any]]],
    ) -> list[Any]:
        """The answer to each request: the stored answer, byte for byte, if there is one, else that of `work`.

        The requests are locked, and no two of them have the same id.

        work    answers the new requests, given by their indexes; a `Problem` among its answers is not stored
        """
        stored_answers = await self._find_answers(tx, requests)
        new_indexes = [index for index, request in enumerate(requests) if request.id not in stored_answers]
        new_answers = dict(zip(new_indexes, await work(new_indexes), strict=True)) if new_indexes else {}
        if stored_answers:
            await tx.wait_for_earlier_commits()
        secret = tx.resources.secret
        await self._insert_answers(
            tx,
            {
                requests[index]: NewAnswer(
                    secret.seal(msgspec.json.encode(answer).decode()), self.people.person_of(answer)
                )
                for index, answer in new_answers.items()
                if not isinstance(answer, Problem | LockedRow)
            },
        )
        return [
            self._stored_or_problem(secret, stored_answers[request.id], request)
            if request.id in stored_answers
            else new_answers[index]
            for index, request in enumerate(requests)
        ]

    async def lock(self, tx: Tx[Any], requests: Sequence[RepeatableRequest]) -> None:
        """Lock requests until the transaction ends. Waits for other processes that work on them."""
        # A separate statement, so that the next one sees the rows of the transactions that held these locks.
        await tx.run(
            "select pg_advisory_xact_lock(%(space)s, lock) from unnest(%(locks)s::int[]) as lock",
            {"space": LOCK_SPACE, "locks": sorted({_lock_key(request) for request in requests})},
        )

    async def lock_skip_locked(self, tx: Tx[Any], requests: Sequence[RepeatableRequest]) -> list[bool]:
        """Lock the requests that no other process works on. Returns for each request whether it is locked now."""
        rows = await tx.tuples(
            "select lock from unnest(%(locks)s::int[]) as lock where pg_try_advisory_xact_lock(%(space)s, lock)",
            {"space": LOCK_SPACE, "locks": [_lock_key(request) for request in requests]},
        )
        locked = {lock for (lock,) in rows}
        return [_lock_key(request) in locked for request in requests]

    async def find_answer(self, reader: Reader[HasSecret], request: RepeatableRequest) -> Raw | Problem | None:
        """The stored answer to a request, or None if there is none."""
        stored_answers = await self._find_answers(reader, [request])
        return (
            self._stored_or_problem(reader.resources.secret, stored_answers[request.id], request)
            if stored_answers
            else None
        )

    def _stored_or_problem(
        self, secret: Secret, stored_answer: StoredAnswer, request: RepeatableRequest
    ) -> Raw | Problem:
        if stored_answer.fingerprint == ERASED_FINGERPRINT:
            return self.reused(
                "The request with this key was done. It was about a person whose data was erased since.",
                hint="Use a new key for a new request.",
            )
        if stored_answer.fingerprint != request.fingerprint:
            return self.reused()
        if not stored_answer.sealed:
            return self.reused(
                "This was done before, but its answer cannot be read any more: it was too large beside others, or is "
                "of an earlier release.",
                hint="Look at what was created; use a new key for a new request.",
            )
        try:
            return Raw(secret.unseal(stored_answer.sealed).encode())
        except UnsealError:
            return self.reused(
                "This was done before, but its answer was stored under another secret key or by an earlier release "
                "and cannot be read any more.",
                hint="Look at what was created; use a new key for a new request.",
            )

    async def _find_answers(
        self, reader: Reader[Any], requests: Sequence[RepeatableRequest]
    ) -> Mapping[bytes, StoredAnswer]:
        rows = await reader.tuples(
            """
            select id, fingerprint, sealed from idempotency_answers
             where id = any(%(ids)s) and inserted_at > now() - make_interval(hours => %(hours)s)
            """,
            {"ids": [request.id for request in requests], "hours": self.hours},
        )
        return {id: StoredAnswer(fingerprint, sealed) for id, fingerprint, sealed in rows}

    async def forget_answers(self, tx: Tx[Any]) -> int:
        """Delete a batch of the answers that are older than `hours`. Returns the number of deleted answers."""
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
            {"hours": self.hours, "limit": DELETE_BATCH_SIZE},
        )

    async def _insert_answers(self, tx: Tx[Any], answers: Mapping[RepeatableRequest, NewAnswer]) -> None:
        """Store answers. Each replaces an expired answer with the same id.

        A large answer is left out, and only the hash of its request is stored, if the tenant's large answers have too
        many bytes. If an answer is about a person who is being erased, only the fact that the request was done is
        stored.
        """
        if not answers:
            return
        parameters = {
            "ids": [request.id for request in answers],
            "fingerprints": [request.fingerprint for request in answers],
            "sealed": [answer.sealed for answer in answers.values()],
            "accounts": [
                request.account if len(answer.sealed) > LARGE_ANSWER_BYTES else None
                for request, answer in answers.items()
            ],
            "hours": self.hours,
            "max_bytes": MAX_LARGE_ANSWERS_BYTES,
        }
        people = [answer.person for answer in answers.values()]
        if any(people):
            erased = {"people": people, "erased": ERASED_FINGERPRINT}
            await tx.run(_with_people(self.people.find_known), parameters | erased)
        else:
            await tx.run(ANSWER_ROWS, parameters)


_SEALED: LiteralString = """
    case when answer.account is null
           or (select coalesce(sum(octet_length(earlier.sealed)), 0) from idempotency_answers as earlier
                where earlier.account = answer.account
                  and earlier.inserted_at > now() - make_interval(hours => %(hours)s))
              + octet_length(answer.sealed) <= %(max_bytes)s
         then answer.sealed else '' end
"""

ANSWER_ROWS: LiteralString = f"""
    insert into idempotency_answers (id, fingerprint, sealed, account)
    select id, fingerprint, {_SEALED}, account
      from unnest(%(ids)s::bytea[], %(fingerprints)s::bytea[], %(sealed)s::bytea[], %(accounts)s::text[])
           as answer (id, fingerprint, sealed, account)
        on conflict (id) do update
       set fingerprint = excluded.fingerprint, sealed = excluded.sealed, account = excluded.account,
           inserted_at = excluded.inserted_at
"""


def _with_people(find_known: LiteralString) -> LiteralString:
    return f"""
    with known_person (person) as materialized ({find_known})
    insert into idempotency_answers (id, fingerprint, sealed, account, person)
    select id, case when is_erased then %(erased)s::bytea else fingerprint end,
           case when is_erased then '' else {_SEALED} end, account, case when not is_erased then person end
      from unnest(%(ids)s::bytea[], %(fingerprints)s::bytea[], %(sealed)s::bytea[], %(accounts)s::text[],
                  %(people)s::text[])
           as answer (id, fingerprint, sealed, account, person)
     cross join lateral (select person is not null and person not in (select person from known_person))
           as erasure (is_erased)
        on conflict (id) do update
       set fingerprint = excluded.fingerprint, sealed = excluded.sealed, account = excluded.account,
           person = excluded.person, inserted_at = excluded.inserted_at
    """


async def forget_people(tx: Tx[Any], people: Sequence[str]) -> None:
    """Erase the stored answers about people, who are named by their public ids. That the requests were done is kept."""
    await tx.run(
        """
        update idempotency_answers set fingerprint = %(erased)s, sealed = '', account = null, person = null
         where person = any(%(people)s)
        """,
        {"people": list(people), "erased": ERASED_FINGERPRINT},
    )


def _lock_key(request: RepeatableRequest) -> int:
    return int.from_bytes(request.id[:4], signed=True)
