"""What a method of the protocol is: asked with parameters it is admitted or refused, and only then run.

The two steps are apart so that a batch can be admitted as a whole before the first of its messages changes anything.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field
from prometheus_client import Histogram

from holdfast.kit.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fault, Params
from holdfast.kit.metrics import REQUEST_SECONDS
from holdfast.kit.operation import Caller, Operation
from holdfast.kit.problems import INSUFFICIENT_SCOPE, RATE_LIMITED, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.rest import Header, answered, unexpected

OVER_HTTP = (INSUFFICIENT_SCOPE, RATE_LIMITED, SERVICE_UNAVAILABLE)
"""What the HTTP answer itself says, wherever it is found: clients and proxies know what to do about these."""

DEFINITIONS_LAST = 300_000
"""Milliseconds for which clients may keep what only a new release changes."""


class Result(Struct, kw_only=True, rename="camel"):
    """What a method answers with. The first two members are for 2026-07-28 alone."""

    result_type: str | UnsetType = UNSET
    about: Raw | UnsetType = field(default=UNSET, name="_meta")


class Cacheable(Result, kw_only=True, rename="camel"):
    """A result that clients may keep for a while; 2026-07-28 alone tells them so."""

    ttl_ms: int | UnsetType = DEFINITIONS_LAST
    cache_scope: str | UnsetType = UNSET


class Outcome(NamedTuple):
    """A result, and the HTTP status that the same outcome has over REST, by which it is counted."""

    result: Result
    status: int = 200


class Work(NamedTuple):
    """What was admitted. `name` is what logs and figures call it."""

    name: str
    run: Callable[[], Awaitable[Outcome]]


Method: TypeAlias = Callable[[Caller, Params], Awaitable[Work]]
"""Admits a request: raises `Fault`, or a `Problem` that is told over HTTP. The work changes nothing until it is run."""

Methods: TypeAlias = Mapping[str, Method]


def done(name: str, result: Result) -> Work:
    """The work of a method whose answer is at hand."""

    async def run() -> Outcome:
        return Outcome(result)

    return Work(name, run)


def required(value: str | UnsetType, name: str) -> str:
    """A parameter that must be there."""
    if isinstance(value, UnsetType):
        raise Fault(INVALID_PARAMS, f"`params.{name}` is required.")
    return value


def require_scope(caller: Caller, operation: Operation) -> None:
    """Raises `insufficient_scope` when a caller may not run an operation."""
    if not caller.has(operation.scope):
        raise INSUFFICIENT_SCOPE(f"This needs the scope {operation.scope}.", scope=operation.scope)


class Reply(NamedTuple):
    """What HTTP answers with."""

    status: int
    content: bytes
    kind: bytes = b"application/json"
    headers: Sequence[Header] = ()


ACCEPTED = Reply(202, b"")


async def perform(work: Work) -> Result:
    """Run what was admitted, measured. Raises `Fault`, or a `Problem` that is told over HTTP."""
    started = time.perf_counter()
    status = 200
    try:
        result, status = await work.run()
    except Fault:
        status = 400
        raise
    except Problem as problem:
        status = problem.status
        if problem.kind in OVER_HTTP:
            raise
        raise as_fault(problem, INVALID_PARAMS) from problem
    except Exception as error:
        status = 500
        raise as_fault(unexpected(error, work.name), INTERNAL_ERROR) from error
    finally:
        seconds(work.name).observe(time.perf_counter() - started)
        answered(work.name, status).inc()
    return result


@cache
def seconds(name: str) -> Histogram:
    return REQUEST_SECONDS.labels(name)


def as_fault(problem: Problem, code: int) -> Fault:
    """A refusal in the words of JSON-RPC."""
    return Fault(code, problem.message, {"code": problem.code, "hint": problem.hint, **problem.extra})
