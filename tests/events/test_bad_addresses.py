"""Any path, query, method or key is refused in words, never with a failure or a trace."""

import json
from urllib.parse import quote

import pytest

from holdfast.kit.operations.operation import Operation
from tests.events.refusal_scene import (
    DEEP,
    RefusalScene,
    every_operation,
    in_one_loop,
    with_a_key,
    with_a_path,
    with_a_query,
)
from tests.events.routed import ROUTED

WRONG_QUERIES = (
    *("no_such_option=1", "Offset=1", "offset[]=1", "offset", "=", "%00=1", "%F0%9F%94%91=1"),
    *("offset=" + quote(value) for value in ("", "x", "-1", "1.5", "100001", "NaN", "null", "[]", "{}", "' or 1=1 --")),
    *("limit=" + quote(value) for value in ("", "x", "0", "-1", "501", "1.5", "\x00", "1\x00", "1\n", "\u0661")),
    *("offset=%ff", "%ff=1", "offset=%ed%a0%80", "offset=1&offset=1", "offset=1&offset=2"),
    f"offset={'9' * 5000}",
    f"limit={'9' * 5000}",
    f"limit={2**63}",
    "&".join(f"p{number}=1" for number in range(1000)),
    "x" * 60_000,
)


@with_a_query
@in_one_loop
async def test_a_query_of_any_kind_is_answered_or_refused_with_a_reason(
    scene: RefusalScene, operation: Operation, subtests: pytest.Subtests
) -> None:
    for query in WRONG_QUERIES:
        with subtests.test(query=query[:50]):
            scene.refusal_code(await scene.send(operation, path=f"{scene.path(operation)}?{query}"), operation)


WRONG_SEGMENTS = (
    *("0", "-1", "-", "+", "abc", "1.5", "null", "NaN", "x" * 60_000, "9" * 5000, "-" + "9" * 5000, str(2**63)),
    *("%00", "1%00", "%00abcdefg", "%ff", "%ed%a0%80", "%c0%80", "%2F", "1%2F1", "..%2F..", "%20", "%0a", "1%0a"),
    *("%EF%BC%91", "%D9%A1", "%F0%9F%94%91", "'%20or%201=1%20--", "%7Bid%7D", "abcdefgh%0a", "ABCDEFGH", "1;1"),
)


@with_a_path
@in_one_loop
async def test_an_invalid_path_is_answered_with_404(
    scene: RefusalScene, operation: Operation, subtests: pytest.Subtests
) -> None:
    content = json.dumps(scene.body(operation)).encode() if operation.has_body_fields else None
    # Any text may be a visitor's name; see queues/test_visitor_ids.py.
    for name in set(operation.path_fields) - {"visitor_id"}:
        for segment in WRONG_SEGMENTS:
            with subtests.test(name=name, segment=segment[:50]):
                response = await scene.send(operation, content, path=scene.path(operation, **{name: segment}))
                assert scene.refusal_code(response, operation) == "not_found"


@with_a_key
@in_one_loop
async def test_a_caller_without_a_valid_key_learns_nothing_about_any_path(
    scene: RefusalScene, operation: Operation, subtests: pytest.Subtests
) -> None:
    for path in (scene.path(operation), scene.path(operation, event_id="0", user_id="x", id="x")):
        for key, expected in (
            (None, "missing_api_key"),
            (b"x", "invalid_api_key"),
            (b"\xff\xfe", "invalid_api_key"),
            (b"hf_" + b"A" * 43, "invalid_api_key"),
        ):
            for content in (b"", b"[" * DEEP, b" " * 2_000_000):
                with subtests.test(path=path, key=key, size=len(content)):
                    headers = [(b"x-api-key", key)] if key else []
                    response = await scene.service.http.request(
                        operation.method, path, content=content, headers=headers
                    )
                    assert scene.refusal_code(response, operation) == expected


@every_operation
@in_one_loop
async def test_a_method_the_path_does_not_know_is_refused(
    scene: RefusalScene, operation: Operation, subtests: pytest.Subtests
) -> None:
    known = {other.method for other in ROUTED if other.path == operation.path}
    known |= {"HEAD"} if "GET" in known else set()
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "X"} - known:
        with subtests.test(method=method):
            response = await scene.ada.request(method, scene.path(operation), content=b"[" * DEEP)
            assert scene.refusal_code(response) == "method_not_allowed"
            assert set(response.headers["allow"].split(", ")) == known


@in_one_loop
async def test_a_route_that_does_not_exist_is_not_found(scene: RefusalScene, subtests: pytest.Subtests) -> None:
    for path in (
        *("/api/nothing", "/api/event", "/api/events/1/price", "/api/keys/1/2", "/api/registrations/1", "/api/%00"),
        *("/api/%ff", "/api/..%2f..%2fetc%2fpasswd", "/nothing", "/favicon.ico", "/.env", "/admin"),
        *(
            "/api/" + "x/" * 1000 + "x",
            "/wp-login.php",
            "/api/organizers/register/again",
            "/events/0/nothing",
            "/api//keys",
        ),
    ):
        for method in ("GET", "POST", "DELETE"):
            with subtests.test(path=path[:50], method=method):
                assert scene.refusal_code(await scene.ada.request(method, path)) == "not_found"
