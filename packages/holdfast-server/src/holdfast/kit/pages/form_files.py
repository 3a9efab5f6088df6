"""Reads forms with files while they arrive, with one file in memory at a time and nothing on disk.

In such a form, the fields that decide whether it is accepted come before the files. So a form is refused before a file
is stored.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import NamedTuple

from python_multipart import MultipartParser
from python_multipart.multipart import parse_options_header

from holdfast.kit.contract.problems import BAD_REQUEST, PAYLOAD_TOO_LARGE
from holdfast.kit.http.body import BODY_TIMEOUT_SECONDS, MAX_BODY, declared_length, wrong_media_type
from holdfast.kit.http.handler import Request

MULTIPART_TYPE = "multipart/form-data"

MAX_FIELDS = 100
"""The maximum number of fields besides the files."""

MAX_NAME_LENGTH = 200
"""The maximum length of a file name, in characters; the rest is cut off."""

MIN_BYTES_PER_SECOND = 40_000
"""The minimum rate. A slower client is refused once it is `BODY_TIMEOUT_SECONDS` behind this rate."""


class UploadedFile(NamedTuple):
    """A file of a form.

    name       its name on the visitor's machine
    content    its bytes; None if there are more than a file may have
    """

    name: str
    content: bytes | None


class FileLimits(NamedTuple):
    """The maximum number of files of a form, and the maximum size of each in bytes."""

    files: int
    bytes: int


Check = Callable[[Mapping[str, str]], None]
TakeFile = Callable[[UploadedFile], Awaitable[None]]


async def read_files(request: Request, bounds: FileLimits, check: Check, take: TakeFile) -> dict[str, str]:
    """Read a form with files. Returns its fields, without the spaces around their values.

    Raises `bad_request` for a form that breaks off, takes too long or is malformed, and `payload_too_large`.

    check    called with the fields before the first file, or at the end; may raise a `Problem`
    take     called with each file once it has arrived; the next file waits until it returns
    """
    parts = _FormParts(bounds, check)
    parser = _parser(request, parts)
    room = bounds.files * bounds.bytes + MAX_BODY
    if declared_length(request) > room:
        raise _too_large(bounds)
    clock = asyncio.get_running_loop().time
    seconds_left, more = float(BODY_TIMEOUT_SECONDS), True
    while more:
        began = clock()
        try:
            async with asyncio.timeout(seconds_left):
                message = await request.receive()
        except TimeoutError as error:
            raise BAD_REQUEST("The form took too long to arrive.", hint="Send fewer files at a time.") from error
        if message["type"] == "http.disconnect":
            raise BAD_REQUEST("The client went away before the form was complete.")
        piece, more = message.get("body", b""), message.get("more_body", False)
        seconds_left = min(BODY_TIMEOUT_SECONDS, seconds_left + len(piece) / MIN_BYTES_PER_SECOND - (clock() - began))
        room -= len(piece)
        if room < 0:
            raise _too_large(bounds)
        try:
            parser.write(piece)
        except ValueError as error:
            raise _unreadable_form() from error
        del piece, message
        while parts.files:
            await take(parts.files.popleft())
    if not parts.are_whole:
        raise BAD_REQUEST("The form breaks off before its end.", hint="Send it again.")
    parts.check()
    return parts.fields


def _parser(request: Request, parts: "_FormParts") -> MultipartParser:
    kind, options = parse_options_header(request.headers.get(b"content-type", b"").decode("latin-1"))
    if kind.decode("latin-1") != MULTIPART_TYPE:
        raise wrong_media_type(MULTIPART_TYPE)
    if not (boundary := options.get(b"boundary")):
        raise _unreadable_form()
    try:
        return MultipartParser(
            boundary,
            {
                "on_header_field": parts.on_header_field,
                "on_header_value": parts.on_header_value,
                "on_header_end": parts.on_header_end,
                "on_headers_finished": parts.on_headers_finished,
                "on_part_data": parts.on_part_data,
                "on_part_end": parts.on_part_end,
                "on_end": parts.on_end,
            },
        )
    except ValueError as error:
        raise _unreadable_form() from error


class _FormParts:
    """Collects the parts of a form from the callbacks of the parser. Raises ValueError and problems.

    fields       the fields that have arrived
    files        the complete files that were not passed on yet
    are_whole    whether the form has ended
    """

    def __init__(self, bounds: FileLimits, check: Check) -> None:
        self.fields: dict[str, str] = {}
        self.files = deque[UploadedFile]()
        self.are_whole = False
        self._bounds = bounds
        self._check: Check | None = check
        self._files = 0
        self._field_bytes = 0
        self._header, self._value, self._disposition = b"", b"", b""
        self._name = ""
        self._file: str | None = None
        self._content = BytesIO()
        self._size = 0

    def check(self) -> None:
        """Check the fields, unless they were checked before."""
        if self._check:
            self._check(self.fields)
            self._check = None

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def on_headers_finished(self) -> None:
        kind, options = parse_options_header(self._disposition.decode("latin-1"))
        if kind != b"form-data":
            raise ValueError("a part is not declared as form data")
        self._name = options.get(b"name", b"").decode()
        self._file = None
        self._disposition = b""
        self._content, self._size = BytesIO(), 0
        if b"filename" in options:
            self._file = options[b"filename"].decode(errors="replace")[:MAX_NAME_LENGTH]
            self._files += 1
            if self._files > self._bounds.files:
                raise _too_large(self._bounds)
            self.check()

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._file is None:
            self._field_bytes += end - start
            if self._field_bytes > MAX_BODY:
                raise _too_large(self._bounds)
        if self._file is None or self._size <= self._bounds.bytes:
            self._content.write(memoryview(data)[start:end])
        else:
            self._content = BytesIO()

    def on_part_end(self) -> None:
        # This hands over the bytes without copying them.
        content, self._content = self._content.getvalue(), BytesIO()
        if self._file is None:
            if self._name in self.fields or len(self.fields) >= MAX_FIELDS:
                raise ValueError("a field is given twice, or there are too many fields")
            self.fields[self._name] = content.decode().strip()
        elif self._file or content:  # a browser sends an empty part if no file was chosen
            self.files.append(UploadedFile(self._file, content if self._size <= self._bounds.bytes else None))

    def on_end(self) -> None:
        self.are_whole = True


def _unreadable_form() -> Exception:
    return BAD_REQUEST("The form cannot be read.", hint="Open the page again and send its form.")


def _too_large(bounds: FileLimits) -> Exception:
    return PAYLOAD_TOO_LARGE(
        f"The form is too large: it may have {bounds.files} files of {bounds.bytes:,} bytes.",
        hint="Send fewer files at a time.",
    )
