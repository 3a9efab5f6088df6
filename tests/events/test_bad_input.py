"""Whatever is sent to any operation, it is refused in words, never with a failure or a trace."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import quote

import httpx2
import jsonschema
import psycopg
import pytest
import pytest_asyncio
from psycopg.conninfo import make_conninfo

from holdfast.events.api import OPERATIONS
from holdfast.events.problems import ALL
from holdfast.kit.operation import Operation
from holdfast.kit.problems import EVERYWHERE
from tests.support import Client, Service, event_fields, fresh_migrations, running, scratch_database, unlimited

in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""For tests that share the service of this module."""

KINDS = {kind.code: kind for kind in (*EVERYWHERE, *ALL)}

LEAKS = re.compile(
    r"""Traceback|psycopg|msgspec|File "|\.py\b|<class|insert into|\bselect .* from\b|unnest|jsonb|returning
      | violates | constraint | relation\ " | column\ " | DETAIL: | bigint | pg_ """,
    re.VERBOSE | re.IGNORECASE,
)
"""What our own code, the driver, or the database would say; nobody outside should ever read it."""


@dataclass
class Scene:
    """A service with something in it to ask for, asked by the organizer who owns it."""

    service: Service
    ada: Client
    spec: dict[str, Any]
    ids: dict[str, Any]

    def path(self, operation: Operation, **other: str) -> str:
        return operation.path.format(**{**self.ids, **other})

    def documented(self, operation: Operation) -> dict[str, Any]:
        return self.spec["paths"][operation.path][operation.method.lower()]

    def body(self, operation: Operation, **fields: Any) -> dict[str, Any]:
        """A body this operation accepts, but for the fields."""
        acceptable: dict[str, dict[str, Any]] = {
            "register_organizer": {"name": "Ben Events", "email": "ben@example.com", "slug": "ben-events"},
            "create_api_key": {"name": "One more"},
            "create_event": event_fields(),
            "create_registration": {"event_id": self.ids["event_id"], "email": "cal@example.com"},
        }
        return {str(operation.body): {**acceptable.get(operation.name, {}), **fields}}

    async def send(self, operation: Operation, content: bytes | None = None, **options: Any) -> httpx2.Response:
        """Send the operation with a body and a query as they are."""
        path = options.pop("path", self.path(operation))
        if content is not None:
            options["headers"] = {"Content-Type": "application/json", **options.get("headers", {})}
        return await self.ada.request(operation.method, path, content=content, **options)

    def refused(self, response: httpx2.Response, operation: Operation | None = None) -> str:
        """The code of a refusal that has the envelope, gives nothing away, and is documented."""
        assert 400 <= response.status_code < 500, (response.status_code, response.text[:300])
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        for member in ("error", "code", "hint"):
            assert isinstance(body[member], str)
            assert body[member]
        assert not LEAKS.search(response.text), response.text[:1000]
        assert KINDS[body["code"]].status == response.status_code
        jsonschema.validate(body, {"$ref": "#/components/schemas/Error", **self.spec})
        if operation:
            assert str(response.status_code) in self.documented(operation)["responses"]
        return body["code"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """One scene for all the tests that share it: what is refused changes nothing."""
    with scratch_database(template_url, "bad_input") as url:
        async with running(unlimited(url, tmp_path_factory.mktemp("data"))) as service:
            ada = await service.organizer()
            event = await ada.create_event()
            poll = await ada.register(event["id"], email="ann@example.com")
            await service.settle()
            key = (await ada.post("/api/keys", {"api_key": {"name": "One more"}})).json()["data"]
            spec = (await service.http.get("/openapi.json")).json()
            ids = {"id": key["id"], "event_id": event["id"], "user_id": poll.rpartition("/")[2]}
            yield Scene(service, ada, spec, ids)


def named(operations: list[Operation]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operation", operations, ids=[each.name for each in operations])


every_operation = named(list(OPERATIONS))
with_a_body = named([each for each in OPERATIONS if each.body])
with_a_query = named([each for each in OPERATIONS if not each.body])
with_a_path = named([each for each in OPERATIONS if each.path_fields])
with_a_key = named([each for each in OPERATIONS if not each.public])

HUGE = b"9" * 5000
DEEP = 100_000


def wrong_documents(wrapper: str) -> dict[str, bytes]:
    """Bodies no operation accepts, whatever its fields are."""
    inside = b'{"%s": ' % wrapper.encode()
    return {
        "nothing": b"",
        "blank": b" \n\t",
        "half an object": b"{",
        "half a wrapper": inside,
        "single quotes": b"{'%s': {}}" % wrapper.encode(),
        "something after it": inside + b"{}} {}",
        "a comment": inside + b"{}} // done",
        "not a number": inside + b'{"price": NaN}}',
        "infinity": inside + b'{"price": -Infinity}}',
        "null": b"null",
        "true": b"true",
        "a number": b"7",
        "a huge number": HUGE,
        "a huge fraction": b"1." + HUGE,
        "a huge exponent": b"1e" + HUGE,
        "a text": b'"text"',
        "a list": b"[]",
        "a list of the object": b"[" + inside + b"{}}]",
        "an empty object": b"{}",
        "another wrapper": b'{"something": {}}',
        "a wrapper of null": inside + b"null}",
        "a wrapper of text": inside + b'"text"}',
        "a wrapper of a number": inside + b"7}",
        "a wrapper of a huge number": inside + HUGE + b"}",
        "a wrapper of a list": inside + b"[]}",
        "an unknown field": inside + b'{"no_such_field": 1}}',
        "an unknown field that is huge": inside + b'{"no_such_field": ' + HUGE + b"}}",
        "a member beside the wrapper": inside + b'{}, "no_such_member": 1}',
        "a huge member beside the wrapper": inside + b'{}, "no_such_member": ' + HUGE + b"}",
        "NUL as a name": inside + b'{"\\u0000": 1}}',
        "NUL as it is": inside + b'{"\x00": 1}}',
        "a lone surrogate as a name": inside + b'{"\\ud800": 1}}',
        "a lone surrogate beside the wrapper": inside + b'{}, "a": "\\udfff"}',
        "invalid UTF-8": inside + b'{"no_such_field": "\xff\xfe"}}',
        "an encoded surrogate": inside + b'{"no_such_field": "\xed\xa0\x80"}}',
        "half a character": inside + b'{"no_such_field": "\xe2\x82"}}',
        "UTF-16": (inside.decode() + "{}}").encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + inside + b"{}}",
        "2 MB of blanks": b" " * 2_000_000,
        "2 MB of text": inside + b'{"no_such_field": "' + b"x" * 2_000_000 + b'"}}',
        "brackets": b"[" * DEEP,
        "brackets and their ends": b"[" * DEEP + b"]" * DEEP,
        "braces": b'{"a":' * DEEP,
        "braces and their ends": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "brackets in the wrapper": inside + b"[" * DEEP + b"]" * DEEP + b"}",
        "brackets in an unknown field": inside + b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}}",
        "brackets beside the wrapper": inside + b'{}, "a":' + b"[" * DEEP + b"]" * DEEP + b"}",
    }


@with_a_body
@in_one_loop
async def test_a_body_that_makes_no_sense_is_refused(
    scene: Scene, operation: Operation, subtests: pytest.Subtests
) -> None:
    for name, content in wrong_documents(str(operation.body)).items():
        with subtests.test(body=name):
            scene.refused(await scene.send(operation, content), operation)


WRONG_VALUES: dict[str, bytes] = {
    "null": b"null",
    "true": b"true",
    "zero": b"0",
    "a negative number": b"-1",
    "a fraction": b"1.5",
    "a number of 32 bits": b"2147483648",
    "a number of 64 bits": b"9223372036854775808",
    "a negative number of 64 bits": b"-9223372036854775809",
    "a number of 128 bits": b"340282366920938463463374607431768211456",
    "a huge number": HUGE,
    "a huge negative number": b"-" + HUGE,
    "a number too large for a float": b"1e400",
    "an empty text": b'""',
    "a text": b'"text"',
    "a number as a text": b'"7"',
    "a huge number as a text": b'"' + HUGE + b'"',
    "a text with a line break at its end": b'"abcdefgh\\n"',
    "an address with a line break at its end": b'"abc@example.com\\n"',
    "a long text": b'"' + b"x" * 200_000 + b'"',
    "a date that never was": b'"2030-02-30T10:00:00Z"',
    "a date before all others": b'"0001-01-01T00:00:00+14:00"',
    "a date after all others": b'"9999-12-31T23:59:59-12:00"',
    "an empty list": b"[]",
    "a list of numbers": b"[1]",
    "a list of lists": b"[[]]",
    "an empty object": b"{}",
    "an object": b'{"a": 1}',
    "a huge number in a list": b"[" + HUGE + b"]",
}
"""Values that are wrong for most fields; which ones, the documented schema says."""

NEVER_RIGHT: dict[str, bytes] = {
    "NUL": b'"abcdefgh\\u0000"',
    "only NUL": b'"\\u0000"',
    "NUL in a list": b'["\\u0000"]',
    "NUL as it is": b'"abcdefgh\x00"',
    "a lone surrogate": b'"abcdefgh\\ud800"',
    "a lone low surrogate": b'"\\udc00abcdefgh"',
    "surrogates in the wrong order": b'"\\udc00\\ud800"',
    "invalid UTF-8": b'"abcdefgh\xff"',
    "an encoded surrogate": b'"abcdefgh\xed\xa0\x80"',
    "an overlong character": b'"abcdefgh\xc0\x80"',
    "brackets": b"[" * DEEP + b"]" * DEEP,
    "braces": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
}
"""Values no field of any operation takes."""


def fits(validator: Any, content: bytes) -> bool:
    try:
        return validator.is_valid(json.loads(content))
    except ValueError:  # a number so long that Python does not read it either
        return False


@with_a_body
@in_one_loop
async def test_a_field_that_makes_no_sense_is_refused(
    scene: Scene, operation: Operation, subtests: pytest.Subtests
) -> None:
    documented = scene.documented(operation)["requestBody"]["content"]["application/json"]["schema"]
    # `$` is the very end in JSON Schema, but not in Python's regular expressions.
    schema = json.loads(json.dumps({**documented, "components": scene.spec["components"]}).replace('$"', r'\\Z"'))
    validator: Any = jsonschema.Draft202012Validator(schema)
    placeholder = "the value under test"
    tried = 0
    for field in operation.command.__struct_fields__:
        if field in operation.path_fields:
            continue
        frame = json.dumps(scene.body(operation, **{field: placeholder})).encode()
        for name, value in (WRONG_VALUES | NEVER_RIGHT).items():
            content = frame.replace(json.dumps(placeholder).encode(), value)
            if name in WRONG_VALUES and fits(validator, content):
                continue
            tried += 1
            with subtests.test(field=field, value=name):
                scene.refused(await scene.send(operation, content), operation)
    assert tried > len(NEVER_RIGHT)


@with_a_body
@in_one_loop
async def test_a_field_documented_as_required_may_not_be_missing(
    scene: Scene, operation: Operation, subtests: pytest.Subtests
) -> None:
    schemas = scene.spec["components"]["schemas"]
    wrapper = str(operation.body)
    request = scene.documented(operation)["requestBody"]["content"]["application/json"]["schema"]
    inner = schemas[request["$ref"].rpartition("/")[2]]["properties"][wrapper]
    for field in schemas[inner["$ref"].rpartition("/")[2]].get("required", []):
        with subtests.test(field=field):
            body = scene.body(operation)
            del body[wrapper][field]
            response = await scene.send(operation, json.dumps(body).encode())

            assert scene.refused(response, operation) == "validation_failed"
            assert response.json()["errors"] == {field: ["is required"]}


@with_a_body
@in_one_loop
async def test_a_body_of_another_type_is_refused(scene: Scene, operation: Operation, subtests: pytest.Subtests) -> None:
    for kind in ("text/plain", "application/xml", "multipart/form-data; boundary=x", "\x7f"):
        with subtests.test(kind=kind):
            response = await scene.send(operation, b"{}", headers={"Content-Type": kind})
            assert scene.refused(response, operation) == "unsupported_media_type"


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
async def test_a_query_that_makes_no_sense_is_refused(
    scene: Scene, operation: Operation, subtests: pytest.Subtests
) -> None:
    for query in WRONG_QUERIES:
        with subtests.test(query=query[:50]):
            scene.refused(await scene.send(operation, path=f"{scene.path(operation)}?{query}"), operation)


WRONG_SEGMENTS = (
    *("0", "-1", "-", "+", "abc", "1.5", "null", "NaN", "x" * 60_000, "9" * 5000, "-" + "9" * 5000, str(2**63)),
    *("%00", "1%00", "%00abcdefg", "%ff", "%ed%a0%80", "%c0%80", "%2F", "1%2F1", "..%2F..", "%20", "%0a", "1%0a"),
    *("%EF%BC%91", "%D9%A1", "%F0%9F%94%91", "'%20or%201=1%20--", "%7Bid%7D", "abcdefgh%0a", "ABCDEFGH", "1;1"),
)


@with_a_path
@in_one_loop
async def test_a_path_that_makes_no_sense_is_not_found(
    scene: Scene, operation: Operation, subtests: pytest.Subtests
) -> None:
    content = json.dumps(scene.body(operation)).encode() if operation.body else None
    for name in operation.path_fields:
        for segment in WRONG_SEGMENTS:
            with subtests.test(name=name, segment=segment[:50]):
                response = await scene.send(operation, content, path=scene.path(operation, **{name: segment}))
                assert scene.refused(response, operation) == "not_found"


@with_a_key
@in_one_loop
async def test_without_a_valid_key_nobody_learns_more_than_that(
    scene: Scene, operation: Operation, subtests: pytest.Subtests
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
                    assert scene.refused(response, operation) == expected


@every_operation
@in_one_loop
async def test_a_method_the_path_does_not_know_is_refused(
    scene: Scene, operation: Operation, subtests: pytest.Subtests
) -> None:
    known = {each.method for each in OPERATIONS if each.path == operation.path}
    known |= {"HEAD"} if "GET" in known else set()
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "X"} - known:
        with subtests.test(method=method):
            response = await scene.ada.request(method, scene.path(operation), content=b"[" * DEEP)
            assert scene.refused(response) == "method_not_allowed"
            assert set(response.headers["allow"].split(", ")) == known


@in_one_loop
async def test_a_route_that_does_not_exist_is_not_found(scene: Scene, subtests: pytest.Subtests) -> None:
    for path in (
        *("/api/nothing", "/api/event", "/api/events/1/price", "/api/keys/1/2", "/api/registrations/1", "/api/%00"),
        *("/api/%ff", "/api/..%2f..%2fetc%2fpasswd", "/nothing", "/favicon.ico", "/.env", "/admin"),
        *("/api/" + "x/" * 1000 + "x", "/wp-login.php", "/api/organizers/register/again", "/events/0", "/api//keys"),
    ):
        for method in ("GET", "POST", "DELETE"):
            with subtests.test(path=path[:50], method=method):
                assert scene.refused(await scene.ada.request(method, path)) == "not_found"


@in_one_loop
async def test_nothing_of_all_this_has_changed_anything(scene: Scene) -> None:
    events = (await scene.ada.get("/api/events")).json()["data"]
    keys = (await scene.ada.get("/api/keys")).json()["data"]
    registrations = (await scene.ada.get("/api/registrations")).json()["data"]

    assert [(each["title"], each["status"], each["registration_count"]) for each in events] == [
        ("Life drawing", "active", 1)
    ]
    assert [each["name"] for each in keys] == ["First key", "One more"]
    assert [each["status"] for each in registrations] == ["registered"]
    assert await scene.service.run_sql("select count(*) from users") == [(2,)]


async def test_letters_newer_than_python_are_no_failure(template_url: str, tmp_path: Path) -> None:
    # A database may know capitals that Python takes for small letters: U+1C89 came with Unicode 16.
    with psycopg.connect(make_conninfo(template_url, dbname="postgres")) as connection:
        if connection.info.server_version < 17_00_00:
            pytest.skip("PostgreSQL has had its own table of letters since version 17")
    modern: LiteralString = "template template0 locale_provider builtin builtin_locale 'C.UTF-8'"
    with scratch_database(template_url, "letters", modern) as url:
        fresh_migrations(url)
        async with running(unlimited(url, tmp_path)) as service:
            ada = await service.organizer()
            event = await ada.create_event()
            for letter in "\u1c89\ua7cb\ua7da":
                person = {"event_id": event["id"], "email": f"{letter}@example.com"}
                organizer = {"name": "Ben Events", "email": f"{letter}b@example.com", "slug": f"ben-{ord(letter)}"}
                for response in (
                    await ada.post("/api/registrations", {"registration": person}),
                    await ada.post("/api/organizers/register", {"organizer": organizer}),
                ):
                    assert response.status_code < 500
