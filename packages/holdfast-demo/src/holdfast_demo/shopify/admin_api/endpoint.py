"""The Admin API over HTTP: authentication, validation, query cost, planned faults, and the answer."""

import asyncio
import contextlib
import json
import uuid
from functools import lru_cache, partial
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

from holdfast_demo.shared.testing import Faults
from holdfast_demo.shopify.admin_api import mutations, queries
from holdfast_demo.shopify.admin_api.bulk import Bulks
from holdfast_demo.shopify.admin_api.connections import Info, Paging
from holdfast_demo.shopify.admin_api.cost import (
    BUCKET_SECONDS,
    MAX_QUERY_COST,
    VERSION,
    Buckets,
    Pricing,
    actual_cost,
    execute,
    may_be_missing,
    resolve_field,
    schema,
)
from holdfast_demo.shopify.admin_api.inventory import MutationKeys
from holdfast_demo.shopify.errors import Fault, graphql_error, user_error
from holdfast_demo.shopify.model import Shop
from holdfast_demo.shopify.oauth import OAuth
from holdfast_demo.shopify.platform_state import PlatformState

MAX_BODY_BYTES = 1_000_000

Body = dict[str, Any]


class GraphQLRequest(NamedTuple):
    """The query, variables and operation name of a request."""

    query: str
    variables: Body
    operation: str | None


class _MalformedRequest(Exception):
    """The request is malformed; the message says why."""


class Admin:
    """Answers the requests of the app.

    throttle_status   the status of the answer to a request that exceeds the rate limit: 200, or 429
    """

    def __init__(self, platform: PlatformState, oauth: OAuth, bulks: Bulks, faults: Faults[Fault]) -> None:
        self._platform = platform
        self._oauth = oauth
        self._bulks = bulks
        self._faults = faults
        self._keys = MutationKeys(platform)
        self._buckets = Buckets()
        self.throttle_status = 200

    async def answer(self, request: Request) -> Response:
        """Answer a request over HTTP."""
        domain, version = request.path_params["shop"], request.path_params["version"]
        headers = {"X-Request-Id": str(uuid.uuid4()), "X-Shopify-API-Version": VERSION}
        try:
            raw = await _read(request)
            graphql_request = _read_request(request, raw)
        except _MalformedRequest as error:
            return JSONResponse({"errors": {"query": str(error)}}, 400, headers)
        fault = self._faults.take(lambda fault: fault.hits(domain, graphql_request.query))
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
        status, body = self._execute(shop, graphql_request, fault)
        if fault and fault.kind == "slow":
            await _wait_or_disconnect(request, fault.seconds)
        if fault and fault.kind == "after":
            return JSONResponse({"errors": "Internal Server Error"}, 500, headers)
        return JSONResponse(body, status, headers)

    def _execute(self, shop: Shop, graphql_request: GraphQLRequest, fault: Fault | None) -> tuple[int, Body]:
        document, errors = _read_query(graphql_request.query)
        if document is None:
            return 200, {"errors": errors}
        operation = get_operation_ast(document, graphql_request.operation)
        if operation is None:
            return 200, {"errors": [graphql_error("An operation name is required", "BAD_REQUEST").formatted]}
        cost = Pricing(schema(), document, graphql_request.variables).of(operation)
        if cost > MAX_QUERY_COST:
            message = f"Query cost is {cost}, which exceeds the single query max cost limit ({MAX_QUERY_COST})."
            return 200, {
                "errors": [graphql_error(message, "MAX_COST_EXCEEDED", cost=cost, maxCost=MAX_QUERY_COST).formatted]
            }
        throttled = fault is not None and fault.kind == "throttle"
        if throttled or not self._buckets.take(shop.domain, shop.points, self._platform.now(), cost):
            documentation = "https://shopify.dev/api/usage/rate-limits"
            errors = [graphql_error("Throttled", "THROTTLED", documentation=documentation).formatted]
            return self.throttle_status, {"errors": errors, **self._costs(shop, cost, None)}
        result = self._run(shop, document, operation, graphql_request, fault)
        used_points = min(
            cost, max(0, actual_cost(result.data) - 1) + (9 if operation.operation == OperationType.MUTATION else 0)
        )
        self._buckets.take(shop.domain, shop.points, self._platform.now(), used_points - cost)
        return 200, {**result.formatted, **self._costs(shop, cost, used_points)}

    def _run(
        self,
        shop: Shop,
        document: DocumentNode,
        operation: OperationDefinitionNode,
        graphql_request: GraphQLRequest,
        fault: Fault | None,
    ) -> ExecutionResult:
        kind = fault.kind if fault else ""
        if operation.operation == OperationType.MUTATION:
            root = mutations.root(self._platform, shop, self._keys, self._bulks)
            if kind == "busy":
                root = dict.fromkeys(root, _busy)
            elif kind in _NOT_ADJUSTED:
                root["inventoryAdjustQuantities"] = partial(_not_adjusted, kind)
        else:
            root = queries.root(self._platform, shop, Paging(shifted=kind == "shifted"), stale=kind == "stale")
        resolver = _HalfFailingResolver().resolve if kind == "half" else None
        return execute(document, root, graphql_request.variables, graphql_request.operation, resolver=resolver)

    def _costs(self, shop: Shop, cost: int, used_points: int | None) -> Body:
        points_left = self._buckets.left(shop.domain, shop.points, self._platform.now())
        status = {
            "maximumAvailable": shop.points * BUCKET_SECONDS,
            "currentlyAvailable": int(points_left),
            "restoreRate": shop.points,
        }
        return {
            "extensions": {
                "cost": {"requestedQueryCost": cost, "actualQueryCost": used_points, "throttleStatus": status}
            }
        }


class _HalfFailingResolver:
    """A resolver in which every second nullable object field fails, after the request has taken effect."""

    def __init__(self) -> None:
        self._count = 0

    def resolve(self, source: Any, info: Info, **arguments: Any) -> Any:
        value = resolve_field(source, info, **arguments)
        if may_be_missing(cast(Any, info).return_type):
            self._count += 1
            if self._count % 2:
                raise graphql_error(
                    "Internal error. Looks like something went wrong on our end.", "INTERNAL_SERVER_ERROR"
                )
        return value


def _busy(*_: Any, **__: Any) -> Body:
    message = "This request is currently in progress, please try again."
    return {"userErrors": [user_error(message, "IDEMPOTENCY_CONCURRENT_REQUEST")]}


_NOT_ADJUSTED = {
    "away": ("The service is temporarily unavailable. Try again later.", "SERVICE_UNAVAILABLE"),
    "failing": ("The quantities couldn't be adjusted. Try again.", "ADJUST_QUANTITIES_FAILED"),
}


def _not_adjusted(kind: str, *_: Any, **__: Any) -> Body:
    return {"userErrors": [user_error(*_NOT_ADJUSTED[kind])]}


@lru_cache(maxsize=500)
def _read_query(query: str) -> tuple[DocumentNode | None, list[Body]]:
    """A query that is valid against the schema, or its errors."""
    try:
        document = parse(query, max_tokens=5000)
    except GraphQLError as error:
        return None, [cast(Body, error.formatted)]
    errors = validate(schema(), document)
    return (None, [cast(Body, error.formatted) for error in errors]) if errors else (document, [])


async def _read(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise _MalformedRequest("The request is too large.")
    return body


def _read_request(request: Request, raw: bytes) -> GraphQLRequest:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _MalformedRequest("Required parameter missing or invalid: the content type has to be application/json.")
    try:
        content: Any = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _MalformedRequest("The body of the request is no JSON.") from error
    if not isinstance(content, dict) or not isinstance(content.get("query"), str):  # pyright: ignore[reportUnknownMemberType]
        raise _MalformedRequest("Required parameter missing or invalid")
    body = cast(Body, content)
    variables: Any = body.get("variables") or {}
    if not isinstance(variables, dict):
        raise _MalformedRequest("Variables have to be an object.")
    return GraphQLRequest(body["query"], cast(Body, variables), body.get("operationName"))


async def _wait_or_disconnect(request: Request, seconds: float) -> None:
    """Wait for a number of seconds, or until the client disconnects."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while (await request.receive())["type"] != "http.disconnect":
                pass
