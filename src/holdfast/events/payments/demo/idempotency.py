"""A request that comes again with its key is answered as before, and not done again."""

import json
from hashlib import sha256

from holdfast.events.payments.demo.errors import Refusal
from holdfast.events.payments.demo.store import Store, Thing

KEPT = 24 * 3600
"""Seconds for which Stripe keeps an answer."""

_TABLES = """
create table if not exists requests (
    key text primary key,
    fingerprint text not null,
    at integer not null,
    id text not null,
    status integer not null,
    body text not null
);
"""


class Answer:
    """The answer to a request.

    id         the id of the request that was done first
    replayed   whether it was kept from then
    """

    def __init__(self, id: str, status: int, body: Thing, replayed: bool = False) -> None:
        self.id = id
        self.status = status
        self.body = body
        self.replayed = replayed


def fingerprint(method: str, path: str, params: Thing) -> str:
    """What a request asks for, as a hash."""
    return sha256(json.dumps([method, path, params], sort_keys=True).encode()).hexdigest()


class Keys:
    """The keys that have been used, and those in use at this moment."""

    def __init__(self, store: Store) -> None:
        self._db = store.db
        self._db.executescript(_TABLES)
        self._busy: set[str] = set()

    def begin(self, key: str, asked: str, now: int) -> Answer | None:
        """The answer that was kept for a key; without one the key is in use until `end`. Raises `Refusal`."""
        if len(key) > 255:
            raise Refusal("An idempotency key has at most 255 characters.", type="idempotency_error", checked=True)
        if key in self._busy:
            raise Refusal(
                f"There is currently another in-progress request using this Idempotent Key: {key}",
                status=409,
                type="idempotency_error",
                code="idempotency_key_in_use",
                checked=True,
            )
        self._db.execute("delete from requests where at <= ?", (now - KEPT,))
        columns = "fingerprint, id, status, body"
        row = self._db.execute(f"select {columns} from requests where key = ?", (key,)).fetchone()
        if row is None:
            self._busy.add(key)
            return None
        before, id, status, body = row
        if before != asked:
            raise Refusal(
                "Keys for idempotent requests can only be used with the same parameters they were first used with. "
                f"Try using a key other than '{key}' if you meant to execute a different request.",
                type="idempotency_error",
                checked=True,
            )
        return Answer(id, status, json.loads(body), replayed=True)

    def keep(self, key: str, asked: str, now: int, answer: Answer) -> None:
        """Keep the answer to a request, in the transaction that did it."""
        self._db.execute(
            "insert into requests (key, fingerprint, at, id, status, body) values (?, ?, ?, ?, ?, ?)",
            (key, asked, now, answer.id, answer.status, json.dumps(answer.body)),
        )

    def end(self, key: str) -> None:
        """The request has been answered."""
        self._busy.discard(key)
