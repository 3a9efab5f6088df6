"""The API over HTTP: authentication, version, idempotency keys and their answers, planned faults, and the answer."""

import asyncio
import base64
import binascii
import contextlib
import json
import re
from hashlib import sha256
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from holdfast_demo.shared.testing import Faults
from holdfast_demo.stripe import api, params, sessions
from holdfast_demo.stripe.api import Call, Operation
from holdfast_demo.stripe.errors import Fault, StripeRefusal, failure, too_many
from holdfast_demo.stripe.processor_state import VERSION, ProcessorState, without_private
from holdfast_demo.stripe.store import Store, StripeObject, new_id

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

    def __init__(self, id: str, status: int, body: StripeObject, replayed: bool = False) -> None:
        self.id = id
        self.status = status
        self.body = body
        self.replayed = replayed


def fingerprint(method: str, path: str, params: StripeObject) -> str:
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


MAX_BODY_BYTES = 1_000_000

_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(\.[a-z]+)?")


class ApiHandler:
    """Answers the requests that stripe-python makes."""

    def __init__(self, processor: ProcessorState, faults: Faults[Fault]) -> None:
        self._processor = processor
        self._faults = faults
        self._keys = RequestKeys(processor.store)
        self._slowness_ended = asyncio.Event()

    def end_slowness(self) -> None:
        """Send the slow answers that are waiting."""
        self._slowness_ended.set()
        self._slowness_ended = asyncio.Event()

    async def answer(self, request: Request) -> Response:
        fault = self._faults.take(lambda fault: fault.hits(request.method, request.url.path))
        if fault and fault.kind == "down":
            return PlainTextResponse("upstream connect error", 503)
        if fault and fault.kind == "limited":
            return JSONResponse(too_many("rate_limit").body(), 429, {"Retry-After": f"{fault.seconds:.0f}"})
        if fault and fault.kind == "locked":
            return JSONResponse(too_many("lock_timeout").body(), 429)
        id = new_id("req")
        try:
            body = await _read(request)
            if fault and fault.kind == "before":
                raise failure()
            answer = await self._execute(request, body, id, fault)
        except StripeRefusal as refusal:
            answer = ApiAnswer(id, refusal.status, refusal.body())
        key = request.headers.get("idempotency-key")
        headers = {"Request-Id": id, "Stripe-Version": request.headers.get("stripe-version") or VERSION}
        if key:
            headers |= {"Idempotency-Key": key, "Original-Request": answer.id}
        if answer.replayed:
            headers["Idempotent-Replayed"] = "true"
        if fault and fault.kind == "after":
            answer = ApiAnswer(id, 500, failure().body())
        return JSONResponse(without_private(answer.body), answer.status, headers)

    async def _execute(self, request: Request, body: bytes, id: str, fault: Fault | None) -> ApiAnswer:
        self._require_key(request)
        operation, named = api.find(request.method, request.url.path)
        self._require_version(request, operation)
        scope = request.headers.get("stripe-account", "")
        if scope and not operation.scoped:
            raise StripeRefusal("Demo payments do not do this in the name of a connected account.", checked=True)
        parameters = _params(request, body, operation)
        call = Call(request.url.path, named, {}, scope)
        key = request.headers.get("idempotency-key", "") if request.method == "POST" else ""
        request_hash = fingerprint(request.method, request.url.path, parameters)
        if key and (stored_answer := self._keys.begin(key, request_hash, self._processor.clock.now())):
            return stored_answer
        try:
            checked = params.check_params(
                parameters, operation.params, operation.modelled, json=_is_json(request, operation)
            )
            answer = self._run(operation, Call(call.path, call.id, checked, scope), id, key, request_hash, fault)
            if fault and fault.kind == "slow":
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(fault.seconds):
                        await self._slowness_ended.wait()
            return answer
        finally:
            self._keys.end(key)

    def _run(
        self, operation: Operation, call: Call, id: str, key: str, request_hash: str, fault: Fault | None
    ) -> ApiAnswer:
        """Execute an operation once: its effect and its answer are committed together."""
        processor = self._processor
        now = processor.clock.now()
        with processor.store.change():
            sessions.expire_due(processor)
        processor.request = {"id": id, "idempotency_key": key or None}
        try:
            with processor.store.change():
                answer = ApiAnswer(id, 200, operation.action(processor, call))
                if fault and fault.kind == "remembered":
                    answer = ApiAnswer(id, 500, failure().body())
                if key:
                    self._keys.keep(key, request_hash, now, answer)
        except StripeRefusal as refusal:
            answer = ApiAnswer(id, refusal.status, refusal.body())
            # The second version does again what has failed.
            if key and not refusal.checked and not operation.is_v2:
                with processor.store.change():
                    self._keys.keep(key, request_hash, now, answer)
        finally:
            processor.request = None
        return answer

    def _require_key(self, request: Request) -> None:
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                key = base64.b64decode(key, validate=True).decode().partition(":")[0]
            except (binascii.Error, ValueError):
                key = ""
        if not key:
            message = "You did not provide an API key. You need to provide it in the Authorization header."
            raise StripeRefusal(message, status=401, checked=True)
        if key != self._processor.key:
            masked = f"{key[:7]}{'*' * 8}{key[-4:]}"
            raise StripeRefusal(f"Invalid API Key provided: {masked}", status=401, checked=True)

    @staticmethod
    def _require_version(request: Request, operation: Operation) -> None:
        version = request.headers.get("stripe-version", "")
        if not version and operation.is_v2:
            raise StripeRefusal("The Stripe-Version header is required.", code="missing_version", checked=True)
        if version and not _VERSION.fullmatch(version):
            raise StripeRefusal(f"Invalid Stripe API version: {version}", checked=True)


async def _read(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise StripeRefusal("The request is too large.", status=413, checked=True)
    return body


def _is_json(request: Request, operation: Operation) -> bool:
    return operation.is_v2 and request.method == "POST"


def _params(request: Request, body: bytes, operation: Operation) -> StripeObject:
    """The parameters of a request, before their types are checked."""
    if request.method == "GET":
        return params.decode(request.url.query)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    content_type = "application/json" if operation.is_v2 else "application/x-www-form-urlencoded"
    if body and kind != content_type:
        raise StripeRefusal(f"Invalid request: the content type has to be {content_type}.", checked=True)
    try:
        text = body.decode()
        content: Any = json.loads(text or "{}") if operation.is_v2 else params.decode(text)
    except (ValueError, RecursionError) as error:
        raise StripeRefusal("The body of the request cannot be read.", checked=True) from error
    if not isinstance(content, dict):
        raise StripeRefusal("The body of the request has to be an object.", checked=True)
    return cast(StripeObject, content)
