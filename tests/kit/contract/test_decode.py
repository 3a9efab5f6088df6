"""Decoding the path, the query and the body of a request, valid or not."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest

from holdfast.kit.http.body import MAX_BODY
from holdfast.kit.http.index import segments
from tests.helpers.events_service import Client, Service
from tests.kit.raw_requests import Message, code_of, request_directly, with_key

KEY_BODY = b'{"api_key": {"name": "One more"}}'


def errors_of(response: httpx2.Response) -> dict[str, list[str]]:
    assert code_of(response, 422) == "validation_failed"
    return response.json()["errors"]


@pytest.fixture
async def ada(service: Service) -> Client:
    return await service.organizer()


async def test_a_repeated_parameter_is_refused(ada: Client) -> None:
    response = await ada.get("/api/events?offset=1&offset=2&limit=3")

    assert errors_of(response) == {"offset": ["is given more than once"]}


async def test_every_unacceptable_parameter_is_named_at_once(ada: Client) -> None:
    response = await ada.get("/api/events?offset=first&limit=0&page=2")

    assert errors_of(response).keys() == {"offset", "limit", "page"}


async def test_an_offset_that_is_no_number_in_range_is_refused(ada: Client, subtests: pytest.Subtests) -> None:
    for value in ("", "x", "1.5", "1.0", "1e3", "+1", "-1", "100001", "0x10", "null", "9" * 5000, "%00", "1%00"):
        with subtests.test(value=value[:50]):
            assert errors_of(await ada.get(f"/api/events?offset={value}")).keys() == {"offset"}


async def test_a_text_with_nul_is_refused_in_the_query(ada: Client) -> None:
    event = await ada.create_event()

    response = await ada.delete(f"/api/events/{event['id']}/photos?key=a%00b")

    assert errors_of(response) == {"key": ["must not contain NUL characters"]}


async def test_a_parameter_of_the_path_is_refused_in_the_query(ada: Client) -> None:
    event = await ada.create_event()

    assert errors_of(await ada.get(f"/api/events/{event['id']}?event_id=1")) == {
        "event_id": ["unknown field: it is part of the path"]
    }
    assert errors_of(await ada.delete(f"/api/events/{event['id']}?force=yes")).keys() == {"force"}
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["status"] == "active"


async def test_an_unknown_parameter_is_refused_also_beside_a_body(ada: Client) -> None:
    response = await ada.post("/api/keys?dry_run=true", {"api_key": {"name": "One more"}})

    assert errors_of(response).keys() == {"dry_run"}


async def test_a_query_that_cannot_be_read_is_refused(service: Service, ada: Client, subtests: pytest.Subtests) -> None:
    too_many = "&".join(f"p{number}=1" for number in range(60)).encode()
    for query in (b"offset=%ff", b"%ff=1", b"%ed%a0%80=1", b"offset=\xff", too_many):
        with subtests.test(query=query[:50]):
            response = await request_directly(service, "GET", "/api/events", headers=with_key(ada), query_string=query)

            assert code_of(response, 400) == "bad_request"


async def test_a_body_that_is_no_object_is_refused(ada: Client, subtests: pytest.Subtests) -> None:
    for body in (b"null", b"true", b"7", b'"text"', b"[]", b'[{"api_key": {"name": "x"}}]'):
        with subtests.test(body=body):
            assert code_of(await ada.post("/api/keys", content=body), 400) == "bad_request"


async def test_a_body_that_is_no_json_is_refused(ada: Client, subtests: pytest.Subtests) -> None:
    utf16 = KEY_BODY.decode().encode("utf-16")
    for body in (b"", b"{", b"{'api_key': 1}", KEY_BODY + b"}", b"\xef\xbb\xbf" + KEY_BODY, utf16):
        with subtests.test(body=body):
            assert code_of(await ada.post("/api/keys", content=body), 400) == "invalid_json"


async def test_a_body_without_its_wrapper_or_with_more_beside_it_is_refused(
    ada: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, dict[str, list[str]]]] = [
        ({}, {"api_key": ["is required"]}),
        ({"name": "One more"}, {"api_key": ["is required"], "name": ["unknown field"]}),
        ({"api_key": None}, {"api_key": ["is required"]}),
        ({"api_key": "One more"}, {"api_key": ["must be an object"]}),
        ({"api_key": [{"name": "One more"}]}, {"api_key": ["must be an object"]}),
        ({"api_key": {"name": "One more"}, "dry_run": True}, {"dry_run": ["unknown field"]}),
        ({"api_key": {"name": "One more"}, "Api_Key": {}}, {"Api_Key": ["unknown field"]}),
        ({"api_key": {}}, {"name": ["is required"]}),
        ({"api_key": {"name": "One more", "scope": "all"}}, {"scope": ["unknown field"]}),
    ]
    for body, failing in cases:
        with subtests.test(body=body):
            assert errors_of(await ada.post("/api/keys", body)) == failing
    assert len((await ada.get("/api/keys")).json()["data"]) == 1


async def test_a_body_with_a_field_of_the_path_is_refused(ada: Client) -> None:
    mine, other = await ada.create_event(title="Mine"), await ada.create_event(title="Other")

    response = await ada.patch(f"/api/events/{mine['id']}", {"event": {"event_id": other["id"], "title": "Changed"}})

    assert errors_of(response).keys() == {"event_id"}
    assert (await ada.get(f"/api/events/{other['id']}")).json()["data"]["title"] == "Other"


async def test_the_content_type_json_is_accepted_in_any_spelling(ada: Client, subtests: pytest.Subtests) -> None:
    for kind in ("application/json", "application/json; charset=utf-8", "APPLICATION/JSON", " application/json ;a=b"):
        with subtests.test(kind=kind):
            response = await ada.post("/api/keys", content=KEY_BODY, headers={"Content-Type": kind})

            assert response.status_code == 201


async def test_a_body_without_a_content_type_is_refused(service: Service, ada: Client) -> None:
    message = {"type": "http.request", "body": KEY_BODY}

    response = await request_directly(service, "POST", "/api/keys", headers=with_key(ada), messages=[message])

    assert code_of(response, 415) == "unsupported_media_type"
    assert "Content-Type: application/json" in response.json()["hint"]


async def test_a_body_of_another_content_type_is_refused(ada: Client, subtests: pytest.Subtests) -> None:
    forms = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    for kind in ("text/plain", "application/jsonx", "json", "", *forms):
        with subtests.test(kind=kind):
            response = await ada.post("/api/keys", content=KEY_BODY, headers={"Content-Type": kind})

            assert code_of(response, 415) == "unsupported_media_type"


def of_size(size: int) -> bytes:
    """A body of exactly this many bytes, acceptable except for the length of the name."""
    frame = b'{"api_key": {"name": "%s"}}'
    return frame % (b"x" * (size - len(frame) + 2))


async def test_a_body_of_exactly_1_mib_is_read_and_one_byte_more_is_not(ada: Client) -> None:
    assert errors_of(await ada.post("/api/keys", content=of_size(MAX_BODY))).keys() == {"name"}
    assert code_of(await ada.post("/api/keys", content=of_size(MAX_BODY + 1)), 413) == "payload_too_large"


async def test_a_body_in_chunks_is_joined(ada: Client) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for byte in KEY_BODY:
            yield bytes([byte])

    assert (await ada.post("/api/keys", content=chunks())).status_code == 201


async def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large(ada: Client) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 65_536
            yield b" " * 65_536

    response = await ada.post("/api/keys", content=chunks())

    assert code_of(response, 413) == "payload_too_large"
    assert sent <= MAX_BODY + 2 * 65_536


async def test_a_large_body_that_comes_in_one_piece_without_its_length_is_refused(
    service: Service, ada: Client
) -> None:
    message = {"type": "http.request", "body": of_size(MAX_BODY + 1), "more_body": False}

    response = await request_directly(service, "POST", "/api/keys", headers=with_key(ada), messages=[message])

    assert code_of(response, 413) == "payload_too_large"


async def test_a_body_that_is_announced_as_too_large_is_refused_before_it_comes(service: Service, ada: Client) -> None:
    announced = with_key(ada, (b"content-length", str(MAX_BODY + 1).encode()))

    response = await request_directly(service, "POST", "/api/keys", headers=announced, messages=[])

    assert code_of(response, 413) == "payload_too_large"


async def test_an_invalid_content_length_is_refused(service: Service, ada: Client, subtests: pytest.Subtests) -> None:
    broken: Message = {"type": "http.request", "body": b"{"}
    for length in (b"many", b"", b"-1", b"1e3", b"0x10", b"\xd9\xa3", b"9" * 5000, b"5, 5"):
        with subtests.test(length=length[:50]):
            headers = with_key(ada, (b"content-length", length))
            response = await request_directly(service, "POST", "/api/keys", headers=headers, messages=[broken])

            assert code_of(response, response.status_code) in ("bad_request", "payload_too_large", "invalid_json")


@pytest.mark.parametrize("begun", [[], [{"type": "http.request", "body": b'{"api_', "more_body": True}]])
async def test_a_body_that_never_arrives_is_refused_after_the_timeout(
    service: Service, ada: Client, monkeypatch: pytest.MonkeyPatch, begun: list[Message]
) -> None:
    monkeypatch.setattr("holdfast.kit.http.body.BODY_TIMEOUT_SECONDS", 0.05)

    response = await request_directly(service, "POST", "/api/keys", headers=with_key(ada), messages=begun)

    assert code_of(response, 400) == "bad_request"


async def test_a_client_that_disconnects_before_its_body_is_complete_changes_nothing(
    service: Service, ada: Client
) -> None:
    gone: Message = {"type": "http.disconnect"}
    for messages in ([gone], [{"type": "http.request", "body": KEY_BODY, "more_body": True}, gone]):
        await request_directly(service, "POST", "/api/keys", headers=with_key(ada), messages=messages)

    assert len((await ada.get("/api/keys")).json()["data"]) == 1


async def test_an_impossible_id_is_answered_with_404(ada: Client, subtests: pytest.Subtests) -> None:
    for junk in (
        *(
            "0",
            "-1",
            "+",
            "abc",
            "1.5",
            "null",
            "true",
            "%00",
            "1%00",
            "%ff",
            "%ed%a0%80",
            "%F0%9F%94%91",
            "%20",
            "%0a",
        ),
        *("%2e%2e", "1%2F2", "{event_id}", "%7Bevent_id%7D", "1;2", "9" * 5000, str(2**63), "%EF%BC%91", "%D9%A1"),
    ):
        with subtests.test(junk=junk[:50]):
            for path in (
                f"/api/events/{junk}",
                f"/api/events/{junk}/price_history",
                f"/api/registrations/{junk}/abcdefgh",
            ):
                assert code_of(await ada.get(path), 404) == "not_found"
            assert code_of(await ada.delete(f"/api/keys/{junk}"), 404) == "not_found"
            assert code_of(await ada.patch(f"/api/events/{junk}", {"event": {}}), 404) == "not_found"


async def test_an_impossible_public_id_is_answered_with_404(ada: Client, subtests: pytest.Subtests) -> None:
    event = await ada.create_event()
    for junk in ("", "ABCDEFGH", "abcdefg", "abcdefghi", "abcdefg1", "abcdefgh%0a", "abc%00efgh", "%ff"):
        with subtests.test(junk=junk):
            path = f"/api/registrations/{event['id']}/{junk}"

            assert code_of(await ada.get(path), 404) == "not_found"
            assert code_of(await ada.delete(path), 404) == "not_found"
            assert code_of(await ada.patch(path, {"registration": {}}), 404) == "not_found"


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b"/a/b", ["", "a", "b"]),
        (b"/a%2Fb/c", ["", "a/b", "c"]),
        (b"/a%252Fb", ["", "a%2Fb"]),
        (b"/%C3%A9/%20", ["", "\u00e9", " "]),
        (b"/a/%ff", ["", "a", ""]),
        (b"/a/%ed%a0%80", ["", "a", ""]),
        (b"/a/%zz", ["", "a", "%zz"]),
    ],
)
def test_an_escaped_slash_belongs_to_its_part_of_the_path(raw: bytes, parts: list[str]) -> None:
    assert segments({"path": unquote(raw.decode()), "raw_path": raw}) == parts


@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP, identity"])
async def test_a_compressed_body_is_refused_by_the_name_of_its_encoding(ada: Client, encoding: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding, "X-API-Key": str(ada.key)}
    response = await ada.http.post("/api/keys", content=KEY_BODY, headers=headers)

    assert code_of(response, 415) == "unsupported_media_type"
    assert encoding.lower() in response.json()["error"]
