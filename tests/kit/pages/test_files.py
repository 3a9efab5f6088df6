"""A form with files is read while it arrives, within bounds; what is broken, slow or too large is refused."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from holdfast.kit.contract.problems import (
    BAD_REQUEST,
    FORBIDDEN,
    PAYLOAD_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    Problem,
    ProblemType,
)
from holdfast.kit.http.body import MAX_BODY
from holdfast.kit.http.handler import Request
from holdfast.kit.pages import form_files
from holdfast.kit.pages.form_files import FileLimits, UploadedFile, read_files
from tests.kit.pages.form_requests import request

KIND = b"multipart/form-data; boundary=edge"
END = b"--edge--\r\n"
BOUNDS = FileLimits(files=3, bytes=1000)


def part(disposition: str, content: bytes = b"") -> bytes:
    return b"--edge\r\nContent-Disposition: form-data; " + disposition.encode() + b"\r\n\r\n" + content + b"\r\n"


def file(content: bytes, name: str = "a.jpg") -> bytes:
    return part(f'name="files"; filename="{name}"', content)


TOKEN = part('name="token"', b"good")


async def read(*pieces: bytes, kind: bytes = KIND) -> tuple[Mapping[str, str], list[UploadedFile]]:
    files: list[UploadedFile] = []

    async def take(file: UploadedFile) -> None:
        files.append(file)

    form = request((b"content-type", kind), body=pieces or (b"",), method="POST")
    return await read_files(form, BOUNDS, _check, take), files


def _check(fields: Mapping[str, str]) -> None:
    if fields.get("token") != "good":
        raise FORBIDDEN()


async def refusal(*pieces: bytes, kind: bytes = KIND) -> ProblemType:
    with pytest.raises(Problem) as error:
        await read(*pieces, kind=kind)
    return error.value.type


async def test_fields_and_files_are_read_in_their_order() -> None:
    fields, files = await read(
        TOKEN, part('name="title"', b" J\xc3\xbcrg \r\n"), file(b"\x00\r\n--edg"), file(b"two", "\u00e4 %22.jpg"), END
    )

    assert fields == {"token": "good", "title": "J\u00fcrg"}
    assert files == [UploadedFile("a.jpg", b"\x00\r\n--edg"), UploadedFile("\u00e4 %22.jpg", b"two")]


@given(st.lists(st.binary(max_size=60) | st.just(b"\r\n--edge") | st.just(b"--edge--"), max_size=3), st.integers(1, 50))
async def test_files_are_whole_however_they_are_cut_on_the_way(contents: Sequence[bytes], size: int) -> None:
    contents = [content for content in contents if b"\r\n--edge" not in b"\r\n" + content]
    body = TOKEN + b"".join(map(file, contents)) + END

    _, files = await read(*(body[place : place + size] for place in range(0, len(body), size)))

    assert [file_read.content for file_read in files] == contents


async def test_a_field_without_a_chosen_file_has_no_file_and_an_empty_file_counts() -> None:
    assert (await read(TOKEN, file(b"", name=""), END))[1] == []
    assert (await read(TOKEN, file(b""), END))[1] == [UploadedFile("a.jpg", b"")]


async def test_a_file_that_is_too_large_is_reported_without_its_content_and_the_next_ones_too() -> None:
    _, files = await read(TOKEN, file(b"x" * 1000), file(b"x" * 1001, "b.jpg"), file(b"c", "c.jpg"), END)

    assert files == [UploadedFile("a.jpg", b"x" * 1000), UploadedFile("b.jpg", None), UploadedFile("c.jpg", b"c")]


async def test_no_file_is_kept_of_a_form_that_may_not_be_sent() -> None:
    sent: list[bytes] = []

    async def take(file: UploadedFile) -> None:
        raise AssertionError("a file was taken")

    for before in (b"", part('name="token"', b"forged")):
        pieces = [before + file(b"never kept")[:-5], b"never read", END]
        form = request((b"content-type", KIND), body=pieces, method="POST")
        with pytest.raises(Problem) as error:
            await read_files(_with_notes(form, sent), BOUNDS, _check, take)
        assert error.value.type is FORBIDDEN
    assert b"never read" not in sent
    assert await refusal(part('name="token"', b"forged"), END) is FORBIDDEN


def _with_notes(form: Request, sent: list[bytes]) -> Request:
    """The same request; what is received of it is noted."""

    async def receive() -> Message:
        message = await form.receive()
        sent.append(message["body"])
        return message

    return Request(form.scope, receive, form.send, form.headers)


async def test_more_files_than_allowed_are_refused() -> None:
    assert await refusal(TOKEN, *[file(b"x")] * 4, END) is PAYLOAD_TOO_LARGE


async def test_a_form_with_files_that_is_too_large_is_refused_before_all_of_it_is_read() -> None:
    room = 3 * 1000 + MAX_BODY

    assert await refusal(TOKEN, part('name="title"', b"x" * MAX_BODY), b"never parsed") is PAYLOAD_TOO_LARGE
    assert await refusal(TOKEN + file(b"x" * room), b"never parsed") is PAYLOAD_TOO_LARGE
    declared = request((b"content-type", KIND), (b"content-length", str(room + 1).encode()), body=[])
    with pytest.raises(Problem) as error:
        await read_files(declared, BOUNDS, _check, _none)
    assert error.value.type is PAYLOAD_TOO_LARGE


@pytest.mark.parametrize("length", [b"many", b"-1", b"", b"9" * 19])
async def test_a_form_with_an_invalid_content_length_is_refused(length: bytes) -> None:
    with pytest.raises(Problem) as error:
        await read_files(request((b"content-type", KIND), (b"content-length", length)), BOUNDS, _check, _none)

    assert error.value.type is BAD_REQUEST


async def _none(file: UploadedFile) -> None:
    raise AssertionError("there is no file")


@pytest.mark.parametrize("kind", [b"application/x-www-form-urlencoded", b"multipart/mixed; boundary=edge", b"", b";;"])
async def test_a_form_with_files_of_another_type_is_refused(kind: bytes) -> None:
    assert await refusal(TOKEN, END, kind=kind) is UNSUPPORTED_MEDIA_TYPE


@pytest.mark.parametrize(
    "kind",
    [
        b"multipart/form-data",
        b"multipart/form-data; boundary=",
        b"multipart/form-data; boundary=other",
        b"multipart/form-data; boundary=" + b"x" * 1_000_000,
    ],
    ids=["none", "empty", "another one", "a million letters"],
)
async def test_a_boundary_that_cannot_be_one_is_refused(kind: bytes) -> None:
    assert await refusal(TOKEN, END, kind=kind) is BAD_REQUEST


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (TOKEN,),
        (TOKEN, file(b"x" * 9)[:-5]),
        (TOKEN, b"--edge\r\nContent-Disposition: form-data; name=\r\n"),
        (TOKEN, b"--edge\r\nno header\r\n\r\nx\r\n", END),
        (TOKEN, b"--edge\r\n\r\nx\r\n", END),
        (TOKEN, b"--edge\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n", END),
        (TOKEN, b"--edge\r\nX-Long: " + b"x" * 10_000 + b"\r\n\r\nx\r\n", END),
        (TOKEN, b"--edge\r\n" + b"X-Many: x\r\n" * 20 + b"\r\nx\r\n", END),
        (TOKEN, TOKEN, END),
        (TOKEN, part('name="title"', b"\xff"), END),
        (TOKEN, TOKEN.replace(b"token", b"\xff"), END),
        (TOKEN, *[part(f'name="f{number}"') for number in range(form_files.MAX_FIELDS)], END),
        (b"{}",),
    ],
)
async def test_a_form_that_is_broken_is_refused(pieces: Sequence[bytes]) -> None:
    assert await refusal(*pieces) is BAD_REQUEST


@given(st.lists(st.binary(max_size=200) | st.sampled_from([TOKEN, END, file(b"x"), b"--edge", b"\r\n"]), max_size=5))
async def test_bytes_sent_as_a_form_with_files_are_a_form_or_a_refusal_with_a_reason(pieces: Sequence[bytes]) -> None:
    error: Problem | None = None
    fields: Mapping[str, str] = {}
    try:
        fields, _ = await read(*pieces)
    except Problem as problem:
        error = problem

    assert (400 <= error.status < 500) if error else fields["token"] == "good"


async def test_a_name_is_cut_where_it_is_too_long_and_need_not_be_text() -> None:
    _, [long] = await read(TOKEN, file(b"x", "n" * 3000), END)
    _, [odd] = await read(TOKEN, file(b"x").replace(b"a.jpg", b"\xff.jpg"), END)

    assert (len(long.name), odd.name) == (form_files.MAX_NAME_LENGTH, "\ufffd.jpg")


def _stalling_request(pieces: Sequence[bytes]) -> Request:
    """A request whose client sends nothing more after these pieces, and does not go away."""
    left = [*pieces]

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": left.pop(0), "more_body": True}

    form = request((b"content-type", KIND), method="POST")
    return Request(form.scope, receive, form.send, form.headers)


async def test_a_client_that_sends_too_slowly_is_given_up_on_however_often_it_sends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(form_files, "BODY_TIMEOUT_SECONDS", 0.05)
    for body in ([], [TOKEN, file(b"x" * 1000)[:-5]]):
        with pytest.raises(Problem) as error:
            await read_files(_stalling_request(body), BOUNDS, _check, _none)
        assert error.value.type is BAD_REQUEST

    async def byte_by_byte() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"\n", "more_body": True}

    begun = request((b"content-type", KIND), method="POST")
    monkeypatch.setattr(form_files, "MIN_BYTES_PER_SECOND", 10**9)
    endless = Request(begun.scope, byte_by_byte, begun.send, begun.headers)
    async with asyncio.timeout(20):
        with pytest.raises(Problem) as error:
            await read_files(endless, BOUNDS, _check, _none)
    assert "too long" in error.value.message


async def test_a_client_that_goes_away_is_not_waited_for() -> None:
    async def gone() -> Message:
        return {"type": "http.disconnect"}

    form = request((b"content-type", KIND), method="POST")
    with pytest.raises(Problem) as error:
        await read_files(Request(form.scope, gone, form.send, form.headers), BOUNDS, _check, _none)
    assert error.value.type is BAD_REQUEST
