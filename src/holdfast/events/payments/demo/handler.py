"""The API over HTTP: who asks, in which version, with which key; what goes wrong on demand; and the answer."""

import asyncio
import base64
import binascii
import json
import re
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from holdfast.events.payments.demo import api, params, sessions
from holdfast.events.payments.demo.api import Call, Operation
from holdfast.events.payments.demo.errors import Refusal, failure, too_many
from holdfast.events.payments.demo.faults import Fault
from holdfast.events.payments.demo.idempotency import Answer, Keys, fingerprint
from holdfast.events.payments.demo.store import Thing, new_id
from holdfast.events.payments.demo.world import VERSION, World, public
from holdfast.kit.doubles.faults import Faults

MOST_BYTES = 1_000_000

_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(\.[a-z]+)?")


class Handler:
    """Answers the requests that stripe-python makes."""

    def __init__(self, world: World, faults: Faults[Fault]) -> None:
        self._world = world
        self._faults = faults
        self._keys = Keys(world.store)

    async def answer(self, request: Request) -> Response:
        fault = self._faults.take(lambda each: each.hits(request.method, request.url.path))
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
            answer = await self._answered(request, body, id, fault)
        except Refusal as refusal:
            answer = Answer(id, refusal.status, refusal.body())
        key = request.headers.get("idempotency-key")
        headers = {"Request-Id": id, "Stripe-Version": request.headers.get("stripe-version") or VERSION}
        if key:
            headers |= {"Idempotency-Key": key, "Original-Request": answer.id}
        if answer.replayed:
            headers["Idempotent-Replayed"] = "true"
        if fault and fault.kind == "after":
            answer = Answer(id, 500, failure().body())
        return JSONResponse(public(answer.body), answer.status, headers)

    async def _answered(self, request: Request, body: bytes, id: str, fault: Fault | None) -> Answer:
        self._require_key(request)
        operation, named = api.find(request.method, request.url.path)
        self._require_version(request, operation)
        scope = request.headers.get("stripe-account", "")
        if scope and not operation.scoped:
            raise Refusal("Demo payments do not do this in the name of a connected account.", checked=True)
        given = _params(request, body, operation)
        call = Call(request.url.path, named, {}, scope)
        key = request.headers.get("idempotency-key", "") if request.method == "POST" else ""
        asked = fingerprint(request.method, request.url.path, given)
        if key and (kept := self._keys.begin(key, asked, self._world.clock.now())):
            return kept
        try:
            checked = params.checked(given, operation.params, operation.modelled, json=_is_json(request, operation))
            answer = self._done(operation, Call(call.path, call.id, checked, scope), id, key, asked, fault)
            if fault and fault.kind == "slow":
                await asyncio.sleep(fault.seconds)
            return answer
        finally:
            self._keys.end(key)

    def _done(self, operation: Operation, call: Call, id: str, key: str, asked: str, fault: Fault | None) -> Answer:
        """Do what is asked, once: its effect and its answer are kept together."""
        world = self._world
        now = world.clock.now()
        with world.store.change():
            sessions.expire_due(world)
        world.request = {"id": id, "idempotency_key": key or None}
        try:
            with world.store.change():
                answer = Answer(id, 200, operation.act(world, call))
                if fault and fault.kind == "remembered":
                    answer = Answer(id, 500, failure().body())
                if key:
                    self._keys.keep(key, asked, now, answer)
        except Refusal as refusal:
            answer = Answer(id, refusal.status, refusal.body())
            # The second version does again what has failed.
            if key and not refusal.checked and not operation.is_v2:
                with world.store.change():
                    self._keys.keep(key, asked, now, answer)
        finally:
            world.request = None
        return answer

    def _require_key(self, request: Request) -> None:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).decode().partition(":")[0]
            except (binascii.Error, ValueError):
                given = ""
        if not given:
            message = "You did not provide an API key. You need to provide it in the Authorization header."
            raise Refusal(message, status=401, checked=True)
        if given != self._world.key:
            shown = f"{given[:7]}{'*' * 8}{given[-4:]}"
            raise Refusal(f"Invalid API Key provided: {shown}", status=401, checked=True)

    @staticmethod
    def _require_version(request: Request, operation: Operation) -> None:
        version = request.headers.get("stripe-version", "")
        if not version and operation.is_v2:
            raise Refusal("The Stripe-Version header is required.", code="missing_version", checked=True)
        if version and not _VERSION.fullmatch(version):
            raise Refusal(f"Invalid Stripe API version: {version}", checked=True)


async def _read(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise Refusal("The request is too large.", status=413, checked=True)
    return body


def _is_json(request: Request, operation: Operation) -> bool:
    return operation.is_v2 and request.method == "POST"


def _params(request: Request, body: bytes, operation: Operation) -> Thing:
    """The parameters of a request, before they are held to their types."""
    if request.method == "GET":
        return params.decode(request.url.query)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    wanted = "application/json" if operation.is_v2 else "application/x-www-form-urlencoded"
    if body and kind != wanted:
        raise Refusal(f"Invalid request: the content type has to be {wanted}.", checked=True)
    try:
        text = body.decode()
        read: Any = json.loads(text or "{}") if operation.is_v2 else params.decode(text)
    except (ValueError, RecursionError) as error:
        raise Refusal("The body of the request cannot be read.", checked=True) from error
    if not isinstance(read, dict):
        raise Refusal("The body of the request has to be an object.", checked=True)
    return cast(Thing, read)
