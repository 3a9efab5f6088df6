"""Idempotency: a repeated request with the same key gets the stored answer, and is not executed again."""

import json
from hashlib import sha256

from holdfast_demo.stripe.errors import StripeRefusal
from holdfast_demo.stripe.store import Store, Thing

KEY_SECONDS = 24 * 3600
"""Seconds for which Stripe stores an answer."""

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


class ApiAnswer:
    """The answer to a request.

    id         the id of the request that was done first
    replayed   whether it is the stored answer of that request
    """

    def __init__(self, id: str, status: int, body: Thing, replayed: bool = False) -> None:
        self.id = id
        self.status = status
        self.body = body
        self.replayed = replayed


def fingerprint(method: str, path: str, params: Thing) -> str:
    """A hash of a request."""
    return sha256(json.dumps([method, path, params], sort_keys=True).encode()).hexdigest()


class RequestKeys:
    """The keys with stored answers, and the keys in use."""

    def __init__(self, store: Store) -> None:
        self._db = store.db
        self._db.executescript(_TABLES)
        self._busy: set[str] = set()

    def begin(self, key: str, request_hash: str, now: int) -> ApiAnswer | None:
        """The stored answer of a key; without one the key is in use until `end`. Raises `StripeRefusal`."""
        if len(key) > 255:
            raise StripeRefusal(
                "An idempotency key has at most 255 characters.", type="idempotency_error", checked=True
            )
        if key in self._busy:
            raise StripeRefusal(
                f"There is currently another in-progress request using this Idempotent Key: {key}",
                status=409,
                type="idempotency_error",
                code="idempotency_key_in_use",
                checked=True,
            )
        self._db.execute("delete from requests where at <= ?", (now - KEY_SECONDS,))
        columns = "fingerprint, id, status, body"
        row = self._db.execute(f"select {columns} from requests where key = ?", (key,)).fetchone()
        if row is None:
            self._busy.add(key)
            return None
        before, id, status, body = row
        if before != request_hash:
            raise StripeRefusal(
                "Keys for idempotent requests can only be used with the same parameters they were first used with. "
                f"Try using a key other than '{key}' if you meant to execute a different request.",
                type="idempotency_error",
                checked=True,
            )
        return ApiAnswer(id, status, json.loads(body), replayed=True)

    def keep(self, key: str, request_hash: str, now: int, answer: ApiAnswer) -> None:
        """Store the answer to a request, in the transaction of the request."""
        self._db.execute(
            "insert into requests (key, fingerprint, at, id, status, body) values (?, ?, ?, ?, ?, ?)",
            (key, request_hash, now, answer.id, answer.status, json.dumps(answer.body)),
        )

    def end(self, key: str) -> None:
        """Release the key of an answered request."""
        self._busy.discard(key)
