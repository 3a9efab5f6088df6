"""The Admin API over HTTP: who asks, whether it is valid, what it costs; what goes wrong on demand; and the answer."""

import asyncio
import contextlib
import json
import uuid
from functools import lru_cache
from typing import Any, NamedTuple, cast

from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    OperationDefinitionNode,
    OperationType,
    parse,
    validate,
)
from graphql.utilities import get_operation_ast
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from holdfast.inventory.shopify.double import mutations, queries
from holdfast.inventory.shopify.double.bulk import Bulks
from holdfast.inventory.shopify.double.connections import Info, Paging
from holdfast.inventory.shopify.double.cost import HIGHEST, SECONDS, Buckets, Pricing, spent
from holdfast.inventory.shopify.double.errors import failed, user_error
from holdfast.inventory.shopify.double.faults import Fault
from holdfast.inventory.shopify.double.inventory import Keys
from holdfast.inventory.shopify.double.model import Shop
from holdfast.inventory.shopify.double.oauth import OAuth
from holdfast.inventory.shopify.double.schema import VERSION, executed, may_be_missing, resolved, schema
from holdfast.inventory.shopify.double.world import World
from holdfast.kit.doubles.faults import Faults

MOST_BYTES = 1_000_000

Body = dict[str, Any]


class Asked(NamedTuple):
    """A request that was understood."""

    query: str
    variables: Body
    operation: str | None


class _Malformed(Exception):
    """The request is no request; the message says why."""


class Admin:
    """Answers what the app asks.

    throttle_status   with which a request that costs too much is refused: 200, or 429
    """

    def __init__(self, world: World, oauth: OAuth, bulks: Bulks, faults: Faults[Fault]) -> None:
        self._world = world
        self._oauth = oauth
        self._bulks = bulks
        self._faults = faults
        self._keys = Keys(world)
        self._buckets = Buckets()
        self.throttle_status = 200

    async def answer(self, request: Request) -> Response:
        """Answer a request over HTTP."""
        domain, version = request.path_params["shop"], request.path_params["version"]
        headers = {"X-Request-Id": str(uuid.uuid4()), "X-Shopify-API-Version": VERSION}
        try:
            raw = await _read(request)
            asked = _asked(request, raw)
        except _Malformed as error:
            return JSONResponse({"errors": {"query": str(error)}}, 400, headers)
        fault = self._faults.take(lambda each: each.hits(domain, asked.query))
        if fault and fault.kind == "down":
            return PlainTextResponse("<html>upstream connect error</html>", 503)
        if fault and fault.kind == "before":
            return JSONResponse({"errors": "Internal Server Error"}, 500, headers)
        if version != VERSION:
            return JSONResponse({"errors": "Not Found"}, 404, headers)
        shop = self._oauth.allowed(domain, request.headers.get("x-shopify-access-token", ""))
        if shop is None:
            message = "[API] Invalid API key or access token (unrecognized login or wrong password)"
            return JSONResponse({"errors": message}, 401, headers)
        status, body = self._answered(shop, asked, fault)
        if fault and fault.kind == "slow":
            await _left(request, fault.seconds)
        if fault and fault.kind == "after":
            return JSONResponse({"errors": "Internal Server Error"}, 500, headers)
        return JSONResponse(body, status, headers)

    def _answered(self, shop: Shop, asked: Asked, fault: Fault | None) -> tuple[int, Body]:
        document, errors = _read_query(asked.query)
        if document is None:
            return 200, {"errors": errors}
        operation = get_operation_ast(document, asked.operation)
        if operation is None:
            return 200, {"errors": [failed("An operation name is required", "BAD_REQUEST").formatted]}
        cost = Pricing(schema(), document, asked.variables).of(operation)
        if cost > HIGHEST:
            message = f"Query cost is {cost}, which exceeds the single query max cost limit ({HIGHEST})."
            return 200, {"errors": [failed(message, "MAX_COST_EXCEEDED", cost=cost, maxCost=HIGHEST).formatted]}
        throttled = fault is not None and fault.kind == "throttle"
        if throttled or not self._buckets.take(shop.domain, shop.points, self._world.now(), cost):
            documentation = "https://shopify.dev/api/usage/rate-limits"
            errors = [failed("Throttled", "THROTTLED", documentation=documentation).formatted]
            return self.throttle_status, {"errors": errors, **self._costs(shop, cost, None)}
        result = self._done(shop, document, operation, asked, fault)
        used = min(cost, max(0, spent(result.data) - 1) + (9 if operation.operation == OperationType.MUTATION else 0))
        self._buckets.take(shop.domain, shop.points, self._world.now(), used - cost)
        return 200, {**result.formatted, **self._costs(shop, cost, used)}

    def _done(
        self, shop: Shop, document: DocumentNode, operation: OperationDefinitionNode, asked: Asked, fault: Fault | None
    ) -> ExecutionResult:
        kind = fault.kind if fault else ""
        if operation.operation == OperationType.MUTATION:
            root = mutations.root(self._world, shop, self._keys, self._bulks)
            if kind == "busy":
                root = dict.fromkeys(root, _busy)
        else:
            root = queries.root(self._world, shop, Paging(shifted=kind == "shifted"), stale=kind == "stale")
        resolver = _Half().resolve if kind == "half" else None
        return executed(document, root, asked.variables, asked.operation, resolver=resolver)

    def _costs(self, shop: Shop, cost: int, used: int | None) -> Body:
        left = self._buckets.left(shop.domain, shop.points, self._world.now())
        status = {
            "maximumAvailable": shop.points * SECONDS,
            "currentlyAvailable": int(left),
            "restoreRate": shop.points,
        }
        return {"extensions": {"cost": {"requestedQueryCost": cost, "actualQueryCost": used, "throttleStatus": status}}}


class _Half:
    """Resolves every second field that may be null with an error, whatever else it has done."""

    def __init__(self) -> None:
        self._count = 0

    def resolve(self, source: Any, info: Info, **given: Any) -> Any:
        found = resolved(source, info, **given)
        if may_be_missing(cast(Any, info).return_type):
            self._count += 1
            if self._count % 2:
                raise failed("Internal error. Looks like something went wrong on our end.", "INTERNAL_SERVER_ERROR")
        return found


def _busy(*_: Any, **__: Any) -> Body:
    message = "This request is currently in progress, please try again."
    return {"userErrors": [user_error(message, "IDEMPOTENCY_CONCURRENT_REQUEST")]}


@lru_cache(maxsize=500)
def _read_query(query: str) -> tuple[DocumentNode | None, list[Body]]:
    """A query that is valid against the schema, or the errors in it."""
    try:
        document = parse(query, max_tokens=5000)
    except GraphQLError as error:
        return None, [cast(Body, error.formatted)]
    errors = validate(schema(), document)
    return (None, [cast(Body, each.formatted) for each in errors]) if errors else (document, [])


async def _read(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise _Malformed("The request is too large.")
    return body


def _asked(request: Request, raw: bytes) -> Asked:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _Malformed("Required parameter missing or invalid: the content type has to be application/json.")
    try:
        read: Any = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _Malformed("The body of the request is no JSON.") from error
    if not isinstance(read, dict) or not isinstance(read.get("query"), str):  # pyright: ignore[reportUnknownMemberType]
        raise _Malformed("Required parameter missing or invalid")
    given = cast(Body, read)
    variables: Any = given.get("variables") or {}
    if not isinstance(variables, dict):
        raise _Malformed("Variables have to be an object.")
    return Asked(given["query"], cast(Body, variables), given.get("operationName"))


async def _left(request: Request, seconds: float) -> None:
    """Wait, or until somebody has hung up."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while (await request.receive())["type"] != "http.disconnect":
                pass
