"""Any body, sent to any operation, is refused in words, never with a failure or a trace."""

import json
from pathlib import Path
from typing import Any, LiteralString

import jsonschema
import psycopg
import pytest
from msgspec import UNSET
from psycopg.conninfo import make_conninfo

from holdfast.events.service import EVENTS
from holdfast.kit.contract.command import fields
from holdfast.kit.operations.operation import Operation
from tests.events.refusal_scene import (
    DEEP,
    HUGE,
    RefusalScene,
    in_one_loop,
    with_a_body,
)
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import running_events, unlimited


def wrong_documents(wrapper: str | None) -> dict[str, bytes]:
    """Bodies no operation accepts, whatever its fields are and whether they stand in a wrapper."""
    opened = b'{"%s": {' % wrapper.encode() if wrapper else b"{"
    closed = b"}}" if wrapper else b"}"

    def inside(content: bytes) -> bytes:
        return opened + content + closed

    documents = {
        "nothing": b"",
        "blank": b" \n\t",
        "half an object": b"{",
        "single quotes": b"{'key': 'photo'}",
        "something after it": inside(b"") + b" {}",
        "a comment": inside(b"") + b" // done",
        "not a number": inside(b'"price": NaN'),
        "infinity": inside(b'"price": -Infinity'),
        "null": b"null",
        "true": b"true",
        "a number": b"7",
        "a huge number": HUGE,
        "a huge fraction": b"1." + HUGE,
        "a huge exponent": b"1e" + HUGE,
        "a text": b'"text"',
        "a list": b"[]",
        "a list of the object": b"[" + inside(b"") + b"]",
        "an unknown field": inside(b'"no_such_field": 1'),
        "an unknown field that is huge": inside(b'"no_such_field": ' + HUGE),
        "NUL as a name": inside(b'"\\u0000": 1'),
        "NUL as it is": inside(b'"\x00": 1'),
        "a lone surrogate as a name": inside(b'"\\ud800": 1'),
        "invalid UTF-8": inside(b'"no_such_field": "\xff\xfe"'),
        "an encoded surrogate": inside(b'"no_such_field": "\xed\xa0\x80"'),
        "half a character": inside(b'"no_such_field": "\xe2\x82"'),
        "UTF-16": inside(b"").decode().encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + inside(b""),
        "2 MB of blanks": b" " * 2_000_000,
        "2 MB of text": inside(b'"no_such_field": "' + b"x" * 2_000_000 + b'"'),
        "brackets": b"[" * DEEP,
        "brackets and their ends": b"[" * DEEP + b"]" * DEEP,
        "braces": b'{"a":' * DEEP,
        "braces and their ends": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "brackets in an unknown field": inside(b'"a":' + b"[" * DEEP + b"]" * DEEP),
    }
    return documents | (wrong_wrappers(b'{"%s": ' % wrapper.encode()) if wrapper else {})


def wrong_wrappers(begin: bytes) -> dict[str, bytes]:
    """Bodies no operation accepts whose fields stand in a wrapper, which begins like this."""
    return {
        "half a wrapper": begin,
        "an empty object": b"{}",
        "another wrapper": b'{"something": {}}',
        "a wrapper of null": begin + b"null}",
        "a wrapper of text": begin + b'"text"}',
        "a wrapper of a number": begin + b"7}",
        "a wrapper of a huge number": begin + HUGE + b"}",
        "a wrapper of a list": begin + b"[]}",
        "a member beside the wrapper": begin + b'{}, "no_such_member": 1}',
        "a huge member beside the wrapper": begin + b'{}, "no_such_member": ' + HUGE + b"}",
        "a lone surrogate beside the wrapper": begin + b'{}, "a": "\\udfff"}',
        "brackets in the wrapper": begin + b"[" * DEEP + b"]" * DEEP + b"}",
        "brackets beside the wrapper": begin + b'{}, "a":' + b"[" * DEEP + b"]" * DEEP + b"}",
    }


@with_a_body
@in_one_loop
async def test_an_invalid_body_is_refused_with_a_reason(
    scene: RefusalScene, operation: Operation, subtests: pytest.Subtests
) -> None:
    for name, content in wrong_documents(operation.body_member).items():
        with subtests.test(body=name):
            scene.refusal_code(await scene.send(operation, content), operation)


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
async def test_an_invalid_field_of_a_body_is_refused_by_name(
    scene: RefusalScene, operation: Operation, subtests: pytest.Subtests
) -> None:
    documented = scene.documented(operation)["requestBody"]["content"]["application/json"]["schema"]
    # `$` is the very end in JSON Schema, but not in Python's regular expressions.
    schema = json.loads(json.dumps({**documented, "components": scene.spec["components"]}).replace('$"', r'\\Z"'))
    validator: Any = jsonschema.Draft202012Validator(schema)
    placeholder = "the value under test"
    tried = 0
    # On create null means absent.
    optional = {field.name for field in fields(operation.command) if not field.required and field.default is not UNSET}
    for field in operation.command.__struct_fields__:
        if field in operation.path_fields:
            continue
        frame = json.dumps(scene.body(operation, **{field: placeholder})).encode()
        for name, value in (WRONG_VALUES | NEVER_RIGHT).items():
            content = frame.replace(json.dumps(placeholder).encode(), value)
            if (name in WRONG_VALUES and fits(validator, content)) or (name == "null" and field in optional):
                continue
            tried += 1
            with subtests.test(field=field, value=name):
                scene.refusal_code(await scene.send(operation, content), operation)
    assert tried > len(NEVER_RIGHT)


@with_a_body
@in_one_loop
async def test_a_field_documented_as_required_may_not_be_missing(
    scene: RefusalScene, operation: Operation, subtests: pytest.Subtests
) -> None:
    schemas = scene.spec["components"]["schemas"]
    request = schemas[scene.documented(operation)["requestBody"]["content"]["application/json"]["schema"]["$ref"][21:]]
    content = schemas[request["properties"][operation.body_member]["$ref"][21:]] if operation.body_member else request
    for field in content.get("required", []):
        with subtests.test(field=field):
            body = scene.body(operation)
            del (body[operation.body_member] if operation.body_member else body)[field]
            response = await scene.send(operation, json.dumps(body).encode())

            assert scene.refusal_code(response, operation) == "validation_failed"
            assert response.json()["errors"] == {field: ["is required"]}


@with_a_body
@in_one_loop
async def test_a_body_of_another_type_is_refused(
    scene: RefusalScene, operation: Operation, subtests: pytest.Subtests
) -> None:
    for kind in ("text/plain", "application/xml", "multipart/form-data; boundary=x", "\x7f"):
        with subtests.test(kind=kind):
            response = await scene.send(operation, b"{}", headers={"Content-Type": kind})
            assert scene.refusal_code(response, operation) == "unsupported_media_type"


async def test_letters_that_only_newer_unicode_has_are_no_failure(template_url: str, tmp_path: Path) -> None:
    # A database may know capitals that Python takes for small letters: U+1C89 came with Unicode 16.
    with psycopg.connect(make_conninfo(template_url, dbname="postgres")) as connection:
        if connection.info.server_version < 17_00_00:
            pytest.skip("PostgreSQL has had its own table of letters since version 17")
    modern: LiteralString = "template template0 locale_provider builtin builtin_locale 'C.UTF-8'"
    with scratch_database(template_url, "letters", modern) as url:
        EVENTS.migrate(url)
        async with running_events(unlimited(url, tmp_path)) as service:
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
