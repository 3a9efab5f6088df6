"""Removes from image files everything that is not part of the picture: metadata, thumbnails, and what follows its end.

A file is a sequence of parts. The parts of the picture are copied byte for byte. The orientation is the only metadata
that is copied. Dropped parts are not checked, and never make a file unfit: phones store films and data of their own
after the picture, and editors store wrong check values. Pictures are not decoded here: see `image.py`.
"""

import re
import zlib
from collections.abc import Callable, Iterator

from holdfast.kit.contract.messages import translatable

MAX_PIXELS = 40_000_000


class UnfitFile(Exception):
    """A file cannot be a photo. The message says why, as the end of a sentence about the file."""


TOO_LARGE = translatable("has more than 40 million pixels")


class FileReader:
    """Reads a file from its beginning. Raises `UnfitFile` if the file ends too early."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return len(self._content) - self._at

    def begins(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether the unread bytes begin with a match of the pattern."""
        return pattern.match(self._content, self._at) is not None

    def take(self, length: int) -> bytes:
        piece = self._content[self._at : self._at + length]
        if length < 0 or len(piece) < length:
            raise UnfitFile(translatable("breaks off before its end"))
        self._at += length
        return piece

    def until(self, pattern: re.Pattern[bytes]) -> bytes:
        """Read and return everything before the next match."""
        match = pattern.search(self._content, self._at)
        return self.take(match.start() - self._at if match else -1)


def strip_metadata(content: bytes) -> tuple[str, bytes]:
    """The media type of an image file, and the file without its metadata. Raises `UnfitFile`."""
    for content_type, (signature, walk) in FORMATS.items():
        file = FileReader(content)
        if file.begins(signature):
            return content_type, b"".join(walk(file))
    raise UnfitFile(translatable("is no JPEG, PNG, WebP or GIF image"))


def _jpeg(file: FileReader) -> Iterator[bytes]:
    yield file.take(2)
    while True:
        file.until(SEGMENT)
        kind = file.take(2)[1]
        if kind in NOT_SEGMENTS:
            raise UnfitFile(translatable("is damaged"))
        if kind == END_OF_IMAGE:
            yield b"\xff\xd9"
            return
        length = int.from_bytes(file.take(2), "big")
        content = _jpeg_segment(kind, file.take(length - 2))
        if content:
            yield bytes((0xFF, kind)) + (len(content) + 2).to_bytes(2, "big") + content
        if kind == START_OF_SCAN:
            yield file.until(MARKER)


START_OF_SCAN, END_OF_IMAGE = 0xDA, 0xD9
NOT_SEGMENTS = {0x01, *range(0xD0, 0xD9)}
SEGMENT = re.compile(rb"\xff[^\x00\xff]")
"""The marker of a segment. Bytes before it are skipped, as decoders skip them."""

MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""The marker that ends a scan. FF followed by 00, and restart markers, belong to the scan."""


def _jpeg_segment(kind: int, content: bytes) -> bytes | None:
    """The content of a segment to copy; None if the segment is dropped."""
    match kind:
        case 0xE0 if content.startswith(b"JFIF\0"):
            return content[:12] + b"\0\0"  # without a thumbnail
        case 0xE1 if content.startswith(b"Exif\0\0"):
            upright = _only_orientation(content[6:])
            return b"Exif\0\0" + upright if upright else None
        case 0xE2 if content.startswith(b"ICC_PROFILE\0"):
            return content
        case 0xEE if content.startswith(b"Adobe"):
            return content
        case _:
            return None if kind >= 0xE0 else content


def _png(file: FileReader) -> Iterator[bytes]:
    yield file.take(8)
    kind = b""
    while kind != b"IEND":
        length = int.from_bytes(file.take(4), "big")
        kind = file.take(4)
        content = file.take(length)
        is_intact = file.take(4) == _crc(kind, content)
        if kind == b"IEND":
            content = b""
        elif kind == b"eXIf":
            content = _only_orientation(content) if is_intact else b""
        elif kind in PNG_CHUNKS and not is_intact:
            raise UnfitFile(translatable("is damaged"))
        if kind in PNG_CHUNKS or (kind == b"eXIf" and content):
            yield len(content).to_bytes(4, "big") + kind + content + _crc(kind, content)


PNG_CHUNKS = set(b"IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB iCCP cICP mDCV cLLI sBIT bKGD pHYs acTL fcTL fdAT".split())


def _crc(kind: bytes, content: bytes) -> bytes:
    return zlib.crc32(content, zlib.crc32(kind)).to_bytes(4, "big")


def _gif(file: FileReader) -> Iterator[bytes]:
    header = file.take(13)
    yield header + file.take(_colours(header[10]))
    while True:
        kind = file.take(1)
        if kind == b";":
            yield kind
            return
        if kind == b",":
            place = file.take(9)
            yield kind + place + file.take(_colours(place[8])) + file.take(1) + _blocks(file)
        elif kind == b"!":
            label, content = file.take(1), _blocks(file)
            if label == b"\xf9":
                yield kind + label + content
            elif label == b"\xff" and content.startswith(REPEATS):
                yield kind + label + content[:16] + b"\0"
        else:
            raise UnfitFile(translatable("is damaged"))


REPEATS = b"\x0bNETSCAPE2.0\x03\x01"


def _colours(flags: int) -> int:
    """The length in bytes of the table of colours that follows."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _blocks(file: FileReader) -> bytes:
    blocks = bytearray()
    while True:
        size = file.take(1)
        blocks += size + file.take(size[0])
        if size == b"\0":
            return bytes(blocks)


def _webp(file: FileReader) -> Iterator[bytes]:
    size = int.from_bytes(file.take(12)[4:8], "little")
    chunks = dict[bytes, bytes]()
    frames = bytearray()
    for kind, content in _chunks(FileReader(file.take(size - 4))):
        match kind:
            case b"ANMF":
                pictures = b"".join(
                    _chunk(*chunk) for chunk in _chunks(FileReader(content[16:])) if chunk[0] in WEBP_PICTURES
                )
                frames += _chunk(kind, content[:16] + pictures)
            case b"EXIF":
                chunks[kind] = _only_orientation(content.removeprefix(b"Exif\0\0"))
            case b"VP8X" | b"ICCP" | b"ANIM" | b"ALPH" | b"VP8 " | b"VP8L":
                # Checked here because the decoder allocates the memory before it reports the size.
                if _webp_pixels(kind, content) > MAX_PIXELS:
                    raise UnfitFile(TOO_LARGE)
                chunks.setdefault(kind, content)
            case _:
                pass
    upright = chunks.pop(b"EXIF", b"")
    if extended_header := chunks.get(b"VP8X"):
        chunks[b"VP8X"] = bytes((extended_header[0] & ~0b1100 | (0b1000 if upright else 0),)) + extended_header[1:]
    body = b"".join(_chunk(*chunk) for chunk in chunks.items()) + frames
    body += _chunk(b"EXIF", upright) if upright and extended_header else b""
    yield b"RIFF" + (len(body) + 4).to_bytes(4, "little") + b"WEBP" + body


WEBP_PICTURES = {b"ALPH", b"VP8 ", b"VP8L"}


WEBP_CHUNKS = {b"VP8X", b"ICCP", b"ANIM", b"ANMF", *WEBP_PICTURES}


def _chunks(file: FileReader) -> Iterator[tuple[bytes, bytes]]:
    """The chunks, up to one that breaks off and would be dropped."""
    while file.left >= 8:
        kind = file.take(4)
        size = int.from_bytes(file.take(4), "little")
        if size > file.left and kind not in WEBP_CHUNKS:
            return
        content = file.take(size)
        file.take(min(size % 2, file.left))
        yield kind, content


def _chunk(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4, "little") + content + b"\0" * (len(content) % 2)


def _webp_pixels(kind: bytes, content: bytes) -> int:
    def number(start: int, end: int) -> int:
        return int.from_bytes(content[start:end], "little")

    match kind:
        case b"VP8X":
            return (number(4, 7) + 1) * (number(7, 10) + 1)
        case b"VP8 ":
            return (number(6, 8) & 0x3FFF) * (number(8, 10) & 0x3FFF)
        case b"VP8L":
            return ((number(1, 5) & 0x3FFF) + 1) * ((number(1, 5) >> 14 & 0x3FFF) + 1)
        case _:
            return 0


def _only_orientation(tiff: bytes) -> bytes:
    """EXIF data with only the orientation; empty without an orientation, or if the picture is upright already."""
    order = "little" if tiff[:2] == b"II" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(tiff[at : at + size], order)

    directory = number(4, 4)
    for entry in range(directory + 2, directory + 2 + 12 * number(directory, 2), 12):
        if number(entry, 2) == 0x0112 and 2 <= number(entry + 8, 2) <= 8:
            return b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes((number(entry + 8, 2),)) + b"\0" * 6
    return b""


FORMATS: dict[str, tuple[re.Pattern[bytes], Callable[[FileReader], Iterator[bytes]]]] = {
    "image/jpeg": (re.compile(rb"\xff\xd8\xff"), _jpeg),
    "image/png": (re.compile(rb"\x89PNG\r\n\x1a\n"), _png),
    "image/gif": (re.compile(rb"GIF8[79]a"), _gif),
    "image/webp": (re.compile(rb"RIFF....WEBP", re.DOTALL), _webp),
}
