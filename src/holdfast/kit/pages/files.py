"""Forms with files: read while they arrive, with one file in memory at a time, and nothing on the disk.

In such a form the fields that say whether it may be sent stand before the files. So a form that may not be sent is
refused before a file of it is kept.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import NamedTuple

from python_multipart import MultipartParser
from python_multipart.multipart import parse_options_header

from holdfast.kit.body import BODY_SECONDS, MAX_BODY, length, undeclared
from holdfast.kit.handler import Request
from holdfast.kit.problems import BAD_REQUEST, PAYLOAD_TOO_LARGE

KIND = "multipart/form-data"

FIELDS = 100
"""The most fields of a form with files, besides the files."""

NAME = 200
"""The most characters of a file's name that are kept."""

SLOWEST = 40_000
"""Bytes a second. A client that sends fewer is refused once it has fallen behind by `BODY_SECONDS`."""


class File(NamedTuple):
    """A file of a form.

    name       what it is called where it comes from
    content    None if it is larger than a file may be
    """

    name: str
    content: bytes | None


class Bounds(NamedTuple):
    """How many files a form may have, and how many bytes each."""

    files: int
    bytes: int


Check = Callable[[Mapping[str, str]], None]
Take = Callable[[File], Awaitable[None]]


async def read_files(request: Request, bounds: Bounds, check: Check, take: Take) -> dict[str, str]:
    """Read a form with files. Returns its fields, without the spaces around their values.

    Raises `bad_request` for a form that breaks off, takes too long or is malformed, and `payload_too_large`.

    check    told the fields before the first file, or at the end; may raise a `Problem`
    take     told each file once it has arrived; the next ones wait until it is done
    """
    parts = _Parts(bounds, check)
    parser = _parser(request, parts)
    room = bounds.files * bounds.bytes + MAX_BODY
    if length(request) > room:
        raise _too_large(bounds)
    clock = asyncio.get_running_loop().time
    patience, more = float(BODY_SECONDS), True
    while more:
        began = clock()
        try:
            async with asyncio.timeout(patience):
                message = await request.receive()
        except TimeoutError as error:
            raise BAD_REQUEST("The form took too long to arrive.", hint="Send fewer files at a time.") from error
        if message["type"] == "http.disconnect":
            raise BAD_REQUEST("The client went away before the form was complete.")
        piece, more = message.get("body", b""), message.get("more_body", False)
        patience = min(BODY_SECONDS, patience + len(piece) / SLOWEST - (clock() - began))
        room -= len(piece)
        if room < 0:
            raise _too_large(bounds)
        try:
            parser.write(piece)
        except ValueError as error:
            raise _unreadable() from error
        del piece, message
        while parts.files:
            await take(parts.files.popleft())
    if not parts.are_whole:
        raise BAD_REQUEST("The form breaks off before its end.", hint="Send it again.")
    parts.check()
    return parts.fields


def _parser(request: Request, parts: "_Parts") -> MultipartParser:
    kind, options = parse_options_header(request.headers.get(b"content-type", b"").decode("latin-1"))
    if kind.decode("latin-1") != KIND:
        raise undeclared(KIND)
    if not (boundary := options.get(b"boundary")):
        raise _unreadable()
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
        raise _unreadable() from error


class _Parts:
    """The parts of a form, put together from what the parser says. Raises ValueError and problems.

    fields       the fields so far
    files        the files that are complete, and that nobody has taken yet
    are_whole    whether the form has ended
    """

    def __init__(self, bounds: Bounds, check: Check) -> None:
        self.fields: dict[str, str] = {}
        self.files = deque[File]()
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
        """Have the fields checked, unless they were."""
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
            self._file = options[b"filename"].decode(errors="replace")[:NAME]
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
        # This takes the bytes over, and does not copy them.
        content, self._content = self._content.getvalue(), BytesIO()
        if self._file is None:
            if self._name in self.fields or len(self.fields) >= FIELDS:
                raise ValueError("a field is given twice, or there are too many fields")
            self.fields[self._name] = content.decode().strip()
        elif self._file or content:  # a browser sends an empty part if no file was chosen
            self.files.append(File(self._file, content if self._size <= self._bounds.bytes else None))

    def on_end(self) -> None:
        self.are_whole = True


def _unreadable() -> Exception:
    return BAD_REQUEST("The form cannot be read.", hint="Open the page again and send its form.")


def _too_large(bounds: Bounds) -> Exception:
    return PAYLOAD_TOO_LARGE(
        f"The form is too large: it may have {bounds.files} files of {bounds.bytes:,} bytes.",
        hint="Send fewer files at a time.",
    )
