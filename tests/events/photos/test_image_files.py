"""A photo keeps every pixel, and loses everything else that is in its file."""

import io
import struct
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from holdfast.events.photos.image import check_photo
from tests.helpers.pictures import (
    TYPES,
    animation,
    encode_image,
    frames,
    jpeg_segment,
    noise,
    picture,
    png_chunk,
    riff,
)

every_type = pytest.mark.parametrize("content_type", TYPES)
moving_type = pytest.mark.parametrize("content_type", ["image/gif", "image/webp", "image/png"])
thoroughly = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])

SECRET = b"at 51.5074 N, by Ada's camera"


ENCODERS = {
    "image/jpeg": st.fixed_dictionaries(
        {"quality": st.integers(1, 100), "progressive": st.booleans(), "subsampling": st.sampled_from([0, 1, 2])},
        optional={"restart_marker_rows": st.just(1), "optimize": st.just(True), "dpi": st.just((300, 300))},
    ),
    "image/png": st.fixed_dictionaries({"compress_level": st.integers(0, 9)}),
    "image/webp": st.fixed_dictionaries({"lossless": st.booleans(), "quality": st.integers(1, 100)}),
    "image/gif": st.fixed_dictionaries({"interlace": st.booleans()}),
}
MODES = {
    "image/jpeg": ["RGB", "L", "CMYK"],
    "image/png": ["RGB", "RGBA", "L", "LA"],
    "image/webp": ["RGB", "RGBA"],
    "image/gif": ["RGB", "L"],
}


@every_type
@thoroughly
@given(data=st.data())
def test_every_pixel_is_kept(content_type: str, data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(MODES[content_type]))
    image = noise(mode, data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40)))
    original = encode_image(image, content_type, **data.draw(ENCODERS[content_type]))

    media_type, checked = check_photo(original)

    assert media_type == content_type
    assert frames(checked) == frames(original)
    assert check_photo(checked) == (media_type, checked)


@moving_type
@thoroughly
@given(count=st.integers(2, 6), duration=st.integers(20, 500), loop=st.integers(0, 9))
def test_every_frame_of_an_animation_keeps_its_pixels_and_duration(
    content_type: str, count: int, duration: int, loop: int
) -> None:
    original = animation(content_type, count, 12, 9, duration=duration // 10 * 10, loop=loop)

    _, checked = check_photo(original)

    assert frames(checked) == frames(original)
    with Image.open(io.BytesIO(original)) as before, Image.open(io.BytesIO(checked)) as after:
        assert after.info.get("loop") == before.info.get("loop")


def exif(orientation: int = 1) -> Image.Exif:
    noted = Image.Exif()
    noted[0x0112] = orientation
    noted[0x010F] = SECRET.decode()
    noted.get_ifd(0x8825)[1] = "N"
    return noted


def with_jpeg_segment(kind: int, content: bytes) -> bytes:
    original = picture("image/jpeg")
    return original[:2] + jpeg_segment(kind, content) + original[2:]


def with_png_chunk(kind: bytes, content: bytes) -> bytes:
    original = picture("image/png")
    return original[:33] + png_chunk(kind, content) + original[33:]


def with_gif_block(block: bytes) -> bytes:
    original = picture("image/gif")
    return original[:-1] + block + original[-1:]


def with_webp_chunk(kind: bytes) -> bytes:
    original = picture("image/webp", exif=exif())
    return riff(*webp_chunks(original), (kind, SECRET))


def webp_chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    chunks: list[tuple[bytes, bytes]] = []
    at = 12
    while at < len(content):
        size = struct.unpack_from("<I", content, at + 4)[0]
        chunks.append((content[at : at + 4], content[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return chunks


def hidden_in_a_frame() -> bytes:
    secret = SECRET + b"\0" * (len(SECRET) % 2)
    hidden = b"HIDE" + struct.pack("<I", len(secret)) + secret
    return riff(
        *((kind, data + hidden if kind == b"ANMF" else data) for kind, data in webp_chunks(animation("image/webp")))
    )


def jpeg_with_thumbnail() -> bytes:
    original = picture("image/jpeg")
    length = struct.unpack_from(">H", original, 4)[0]
    secret = SECRET + b"\0" * (-len(SECRET) % 3)
    head = original[6 : 6 + 12] + bytes((len(secret) // 3, 1)) + secret
    return original[:2] + jpeg_segment(0xE0, head) + original[4 + length :]


NOTED: dict[str, Callable[[], bytes]] = {
    "JPEG with EXIF": lambda: picture("image/jpeg", exif=exif()),
    "JPEG with a comment": lambda: picture("image/jpeg", comment=SECRET),
    "JPEG with XMP": lambda: with_jpeg_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + SECRET),
    "JPEG with IPTC": lambda: with_jpeg_segment(0xED, b"Photoshop 3.0\0" + SECRET),
    "JPEG with an index of pictures": lambda: with_jpeg_segment(0xE2, b"MPF\0" + SECRET),
    "JPEG with a segment nobody knows": lambda: with_jpeg_segment(0xE9, SECRET),
    "JPEG with a thumbnail": jpeg_with_thumbnail,
    "PNG with EXIF": lambda: picture("image/png", exif=exif()),
    "PNG with text": lambda: with_png_chunk(b"tEXt", b"Comment\0" + SECRET),
    "PNG with international text": lambda: with_png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + SECRET),
    "PNG with a time": lambda: with_png_chunk(b"tIME", SECRET[:7]),
    "PNG with a chunk nobody knows": lambda: with_png_chunk(b"hoLd", SECRET),
    "GIF with a comment": lambda: picture("image/gif", comment=SECRET),
    "GIF with XMP": lambda: with_gif_block(b"!\xff\x0bXMP DataXMP" + bytes((len(SECRET),)) + SECRET + b"\0"),
    "GIF with text": lambda: with_gif_block(b"!\x01\x0c" + b"\0" * 12 + bytes((len(SECRET),)) + SECRET + b"\0"),
    "WebP with EXIF": lambda: picture("image/webp", exif=exif()),
    "WebP with XMP": lambda: picture("image/webp", xmp=SECRET),
    "WebP with a chunk nobody knows": lambda: with_webp_chunk(b"HOLD"),
    "WebP with a chunk hidden in a frame": hidden_in_a_frame,
}


@pytest.mark.parametrize("make", NOTED.values(), ids=NOTED)
def test_metadata_of_a_file_is_removed(make: Callable[[], bytes]) -> None:
    original = make()
    assert SECRET[:7] in original

    _, checked = check_photo(original)

    assert SECRET[:7] not in checked
    assert frames(checked) == frames(original)
    with Image.open(io.BytesIO(checked)) as image:
        assert dict(image.getexif()) == {}
        assert not {"comment", "xmp", "XML:com.adobe.xmp"} & image.info.keys()


@pytest.mark.parametrize("content_type", ["image/jpeg", "image/png", "image/webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_orientation_is_the_only_metadata_that_is_kept(content_type: str, orientation: int) -> None:
    _, checked = check_photo(picture(content_type, exif=exif(orientation)))

    with Image.open(io.BytesIO(checked)) as image:
        assert dict(image.getexif()) == ({0x0112: orientation} if orientation > 1 else {})
    assert SECRET not in checked


@pytest.mark.parametrize(
    "noted", [b"", b"II*\0", b"MM\0*\xff\xff\xff\xff", b"II*\0\x08\0\0\0\xff\xff", b"nonsense" * 9]
)
def test_malformed_metadata_does_not_affect_the_picture(noted: bytes) -> None:
    original = with_jpeg_segment(0xE1, b"Exif\0\0" + noted)

    assert frames(check_photo(original)[1]) == frames(original)


@pytest.mark.parametrize("content_type", ["image/jpeg", "image/png", "image/webp"])
def test_the_colour_profile_of_a_picture_is_kept(content_type: str) -> None:
    profile = b"what red means, and what green"

    _, checked = check_photo(picture(content_type, icc_profile=profile))

    with Image.open(io.BytesIO(checked)) as image:
        assert image.info["icc_profile"] == profile
