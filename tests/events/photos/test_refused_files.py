"""A file that is not wholly a photo, or too large a one to show, is refused in words."""

import contextlib
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from holdfast.events.photos.container import UnfitFile
from holdfast.events.photos.image import check_photo
from tests.helpers.pictures import TYPES, animation, encode_image, frames, picture, png_chunk, riff, zip_archive

every_type = pytest.mark.parametrize("content_type", TYPES)
thoroughly = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])


def refusal(content: bytes) -> str:
    with pytest.raises(UnfitFile) as error:
        check_photo(content)
    return str(error.value)


@every_type
@thoroughly
@given(data=st.data())
def test_a_file_that_breaks_off_is_refused(content_type: str, data: st.DataObject) -> None:
    moves = content_type != "image/jpeg" and data.draw(st.booleans())
    content = animation(content_type) if moves else picture(content_type)

    assert refusal(content[: data.draw(st.integers(0, len(content) - 1))])


@every_type
@thoroughly
@given(data=st.data())
def test_a_damaged_file_is_accepted_or_refused_and_never_a_failure(content_type: str, data: st.DataObject) -> None:
    content = bytearray(picture(content_type, 12, 9))
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnfitFile):
        assert frames(check_photo(bytes(content))[1])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"photo",
        b"<html><script>alert(1)</script></html>",
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        b"%PDF-1.7\n" + picture("image/jpeg"),
        zip_archive(),
        b"BM" + b"\0" * 100,
        b"RIFF\x24\0\0\0WAVEfmt ",
        b"\xff\xd8\xff\xd9",
        b"GIF89a",
        b"GIF89a\x01\0\x01\0\0\0\0;",
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"IEND", b""),
        riff(),
        riff((b"VP8X", b"\x02" + b"\0" * 9)),
        b"\n" + picture("image/png"),
    ],
)
def test_a_file_that_is_no_photo_is_refused(content: bytes) -> None:
    assert refusal(content)


def png_of(width: int, height: int) -> bytes:
    """A file that says it is of this size, and holds less."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 10_000)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)


def growing_gif() -> bytes:
    """Its first frame is small, and says so; a later one is not."""
    small, large = picture("image/gif", 2, 2), encode_image(Image.new("L", (6400, 6300)), "image/gif")
    return small[:-1] + large[large.index(b",\0\0\0\0") :]


def with_size(content: bytes, at: int, size: bytes) -> bytes:
    return content[:at] + size + content[at + len(size) :]


BOMBS: dict[str, Callable[[], bytes]] = {
    "PNG": lambda: png_of(60_000, 60_000),
    "PNG just too large": lambda: png_of(10_000, 4_001),
    "PNG of one row": lambda: png_of(2**31 - 1, 1),
    "GIF": lambda: with_size(picture("image/gif"), 6, b"\xff\xff\xff\xff"),
    "GIF that grows": growing_gif,
    "JPEG": lambda: encode_image(Image.new("L", (6400, 6300)), "image/jpeg"),
    "WebP": lambda: encode_image(Image.new("RGB", (6400, 6300)), "image/webp", method=0),
    "WebP without loss": lambda: encode_image(Image.new("RGB", (6400, 6300)), "image/webp", lossless=True, method=0),
    "WebP canvas": lambda: with_size(animation("image/webp"), 24, b"\xff\xff\xff\xff\xff\xff"),
}


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_more_than_40_million_pixels_are_refused(make: Callable[[], bytes]) -> None:
    content = make()
    assert len(content) < 5_000_000
    assert refusal(content) == "has more than 40 million pixels"


def test_40_million_pixels_are_a_photo() -> None:
    assert check_photo(encode_image(Image.new("L", (8_000, 5_000)), "image/png"))[0] == "image/png"


def test_an_animation_with_too_many_pixels_in_all_frames_is_refused() -> None:
    still = encode_image(Image.new("L", (4000, 4000)), "image/gif")
    begin = still.index(b",\0\0\0\0")
    content = still[:begin] + still[begin:-1] * 16 + still[-1:]

    assert len(content) < 5_000_000
    assert refusal(content).startswith("moves too much")
