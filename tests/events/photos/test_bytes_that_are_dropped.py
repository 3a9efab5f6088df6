"""Bytes of a file that are dropped do not decide whether it is accepted as a photo."""

import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.events.photos.container import UnfitFile
from holdfast.events.photos.image import check_photo
from tests.helpers.pictures import TYPES, animation, frames, jpeg_segment, picture, png_chunk, zip_archive

every_type = pytest.mark.parametrize("content_type", TYPES)
thoroughly = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])


def samsung_trailer() -> bytes:
    """What phones of Samsung write after each photo: a block of data, its directory, and the mark SEFT."""
    name = b"Image_UTC_Data"
    block = b"\0\0\x01\x0a" + struct.pack("<I", len(name)) + name + b"1546516543000"
    directory = b"SEFH" + struct.pack("<II", 107, 1) + b"\0\0\x01\x0a" + struct.pack("<II", len(block), len(block))
    return block + directory + struct.pack("<I", len(directory)) + b"SEFT"


def film() -> bytes:
    """The beginning of the film of a motion photo."""
    return b"\0\0\0\x18ftypmp42\0\0\0\0isommp42" + b"\0\0\0\x08free" + b"\0\0\0\x10mdat" + b"\xff\xd8\xff\xd9" * 2


BEHIND = {
    "a trailer of Samsung": samsung_trailer(),
    "a film": film(),
    "a film and a trailer of Samsung": film() + samsung_trailer(),
    "padding and a film": b"\0" * 9 + film(),
    "a smaller picture": b"\0\0" + picture("image/jpeg", comment=b"smaller"),
    "a picture that breaks off": picture("image/jpeg")[:-9],
    "another picture and a film": picture("image/jpeg") + film(),
    "a picture of another type": picture("image/png"),
    "a script": b"<script>alert(1)</script>",
    "a document": b"%PDF-1.7",
    "an archive": zip_archive(),
    "a letter": b"x",
    "line breaks": b"\r\n\0 ",
}


@every_type
@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
def test_bytes_after_the_end_of_a_picture_are_dropped(content_type: str, behind: bytes) -> None:
    original = picture(content_type)

    assert check_photo(original + behind) == check_photo(original)


@every_type
@thoroughly
@given(behind=st.binary(max_size=60))
def test_no_bytes_after_the_end_decide_or_are_stored(content_type: str, behind: bytes) -> None:
    original = picture(content_type, 12, 9)

    assert check_photo(original + behind) == check_photo(original)


# Inside the file


def with_crc(content: bytes, kind: bytes, crc: bytes = b"\0\0\0\0") -> bytes:
    """A PNG file with another check value of the first chunk of a kind."""
    at = content.index(kind)
    end = at + 4 + struct.unpack(">I", content[at - 4 : at])[0]
    return content[:end] + crc + content[end + 4 :]


def with_chunk(kind: bytes, data: bytes) -> bytes:
    """A PNG file with a chunk after its header."""
    original = picture("image/png")
    return original[:33] + png_chunk(kind, data) + original[33:]


@pytest.mark.parametrize("kind", [b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf", b"caBX", b"iDOT", b"vpAg", b"IEND"])
def test_a_wrong_checksum_of_a_dropped_chunk_is_ignored(kind: bytes) -> None:
    content = picture("image/png") if kind == b"IEND" else with_chunk(kind, b"Software\0editor")

    assert check_photo(with_crc(content, kind)) == check_photo(picture("image/png"))


@pytest.mark.parametrize("kind", [b"IHDR", b"IDAT", b"gAMA"])
def test_a_wrong_checksum_of_a_kept_chunk_is_refused(kind: bytes) -> None:
    content = with_chunk(b"gAMA", struct.pack(">I", 45455))

    with pytest.raises(UnfitFile, match="is damaged"):
        check_photo(with_crc(content, kind))


def test_a_wrong_checksum_of_a_frame_is_refused() -> None:
    with pytest.raises(UnfitFile, match="is damaged"):
        check_photo(with_crc(animation("image/png"), b"fdAT"))


def jpeg_with(segment: bytes) -> bytes:
    original = picture("image/jpeg")
    return original[:2] + segment + original[2:]


@pytest.mark.parametrize(
    "metadata",
    [
        *(
            jpeg_segment(0xE1, b"Exif\0\0" + tiff)
            for tiff in (b"", b"II", b"MM\0*\xff\xff\xff\xff", b"II*\0\x08\0\0\0\xff\xff")
        ),
        jpeg_segment(0xE2, b"MPF\0broken"),
        jpeg_segment(0xED, b"Photoshop 3.0\0" + b"8BIM" * 9),
        jpeg_segment(0xFE, b"\xff\xd9"),
        jpeg_segment(0xE1, b""),
    ],
)
def test_malformed_metadata_of_a_jpeg_is_ignored(metadata: bytes) -> None:
    assert check_photo(jpeg_with(metadata)) == check_photo(picture("image/jpeg"))


def webp_with(tail: bytes) -> bytes:
    """A WebP file with bytes behind its picture, inside its declared length."""
    original = picture("image/webp")
    size = struct.unpack("<I", original[4:8])[0] + len(tail)
    return original[:4] + struct.pack("<I", size) + original[8:] + tail


@pytest.mark.parametrize(
    "tail",
    [
        b"XMP \xff\xff\0\0<x:xmpmeta",
        b"EXIF\xff\0\0\0II*\0",
        b"JUNK\x03\0\0\0abc",
        b"\0\0",
        b"XMP ",
        b"EXIF\x04\0\0\0II*\0",
    ],
    ids=["XMP that is longer", "EXIF that is longer", "an odd length", "two bytes", "half a head", "half an EXIF"],
)
def test_truncated_metadata_of_a_webp_is_ignored(tail: bytes) -> None:
    assert check_photo(webp_with(tail)) == check_photo(picture("image/webp"))


def test_a_webp_picture_that_breaks_off_is_refused() -> None:
    original = picture("image/webp")
    size = struct.unpack("<I", original[16:20])[0] + 100

    with pytest.raises(UnfitFile, match="breaks off"):
        check_photo(original[:16] + struct.pack("<I", size) + original[20:])


def test_bytes_between_the_parts_of_a_jpeg_are_dropped_as_decoders_drop_them() -> None:
    original = picture("image/jpeg")
    at = original.index(b"\xff\xdb")

    assert check_photo(original[:at] + b"\0\0abc\xff\0" + original[at:]) == check_photo(original)


@every_type
def test_the_pixels_of_a_photo_with_dropped_bytes_are_unchanged(content_type: str) -> None:
    original = picture(content_type)

    assert frames(check_photo(original + film())[1]) == frames(original)


def script_in_a_gif() -> bytes:
    """A file that browsers once took for a script: its width reads as the beginning of a comment."""
    return b"GIF89a/*" + picture("image/gif")[8:] + b"*/=1;alert(1)"


HIDDEN: dict[str, Callable[[], bytes]] = {
    "a script": lambda: picture("image/png") + b"<script>alert(1)</script>",
    "a script in a chunk": lambda: with_crc(with_chunk(b"tEXt", b"<script>alert(1)</script>"), b"tEXt"),
    "a script that is a GIF": script_in_a_gif,
    "an archive": lambda: picture("image/gif") + zip_archive(),
    "packed text": lambda: with_chunk(b"zTXt", b"k\0\0" + zlib.compress(b"alert(1)", 0)),
}


@pytest.mark.parametrize("make", HIDDEN.values(), ids=HIDDEN)
def test_a_file_hidden_behind_a_picture_is_not_stored(make: Callable[[], bytes]) -> None:
    _, checked = check_photo(make())

    assert b"alert(1)" not in checked
    assert b"PK" not in checked[-200:]
